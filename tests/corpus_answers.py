"""Right answers with all that should cost nothing, and wrong ones and faults that cost one task."""

from __future__ import annotations

from pathlib import Path

from corpus import Notebook, answers, at, cell, cells, code, complete, edited, entry, save

HEAD = "def wavelengths(d_model, *, base=10_000.0):\n"
RIGHT = "    return 2 * np.pi / inverse_frequencies(d_model, base=base)\n"
NOTHING = {"wavelengths": 0.0}


def body(*lines: str, then: str = RIGHT) -> dict[str, str]:
    """Return an answer that does something, and returns what is right if not told."""
    return {"wavelengths": HEAD + "".join(f"    {line}\n" for line in lines) + then}


# Inside a right answer.

for name, lines in {
    "warns": ["import warnings", "warnings.warn('be careful')"],
    "stderr": ["import sys", "print('careful', file=sys.stderr)", "sys.stderr.flush()"],
    "prints": ["print('d_model', d_model)", "print('é' * 10_000)"],
    "prints-much": ["for _ in range(200_000):", "    print('x' * 100)"],
    "writes-fd-2": ["import os", "os.write(2, b'careful'); os.write(1, b'3')"],
    "logs": ["import logging", "logging.error('careful')"],
    "figure": ["import matplotlib.pyplot as plt", "plt.plot([1, 2]); plt.show()"],
    "figures-open": ["import matplotlib.pyplot as plt", "[plt.figure() for _ in range(30)]"],
    "threads": [
        "import threading",
        "thread = threading.Thread(target=np.arange, args=[3])",
        "thread.start(); thread.join()",
    ],
    "thread-left": [
        "import threading, time",
        "threading.Thread(target=time.sleep, args=[100]).start()",
    ],
    "chdir-inside": ["import os", "os.chdir('/')"],
    "seeds-inside": ["import random", "random.seed(1); np.random.seed(1)"],
    "errstate-inside": ["np.seterr(all='raise')"],
    "division-warning": ["np.array([1.0]) / 0"],
    "print-options": ["np.set_printoptions(precision=1)"],
    "displays": [
        "from IPython.display import HTML, display",
        "display(HTML('<script>1</script>'))",
    ],
    "magic-inside": ["get_ipython().run_line_magic('timeit', '-n1 -r1 1')"],
    "subprocess": ["import subprocess", "subprocess.run(['echo', 'x'])"],
    "writes-file": ["from pathlib import Path", "Path('own.txt').write_text('x')"],
    "trace-inside": ["import sys", "sys.settrace(None); sys.setprofile(None)"],
    "catches": ["try:", "    1 / 0", "except ZeroDivisionError:", "    pass"],
    "async-inside": [
        "import asyncio",
        "async def nothing():",
        "    await asyncio.sleep(0)",
        "asyncio.new_event_loop().run_until_complete(nothing())",
    ],
    "global-counter": ["global count", "count = globals().get('count', 0) + 1"],
    "closes-stdout": ["import sys", "sys.stdout.close()"],
    "changes-path": ["import sys", "sys.path.clear()"],
    "recursion-limit": ["import sys", "sys.setrecursionlimit(10_000)"],
    "no-gc": ["import gc", "gc.disable(); gc.collect()"],
    "type-check": ["assert isinstance(d_model, int), type(d_model)"],
    "unused-memory": ["np.ones(10_000_000)"],
    "input-caught": ["try:", "    input()", "except EOFError:", "    pass"],
    "exit-caught": ["try:", "    raise SystemExit", "except SystemExit:", "    pass"],
}.items():
    what = f"A right function: {name.replace('-', ' ')}."
    answers(f"ok-{name}", what, body(*lines), quick=name == "stderr")

# Right answers in another form.

for name, source in {
    "lambda": "wavelengths = lambda d_model, *, base=10_000.0: (\n"
    "    2 * np.pi / inverse_frequencies(d_model, base=base))",
    "partial": "from functools import partial\ndef general(turn, d_model, *, base=10_000.0):\n"
    "    return turn / inverse_frequencies(d_model, base=base)\n"
    "wavelengths = partial(general, 2 * np.pi)",
    "cached": f"from functools import lru_cache\n@lru_cache\n{HEAD}{RIGHT}",
    "decorated": "import functools\ndef loud(f):\n    @functools.wraps(f)\n"
    "    def inner(*args, **kwargs):\n        print('called')\n        return f(*args, **kwargs)\n"
    f"    return inner\n\n@loud\n{HEAD}{RIGHT}",
    "static-method": "class Encoder:\n    @staticmethod\n    def turns(d_model, *, base=1e4):\n"
    f"    {RIGHT}\nwavelengths = Encoder.turns",
    "bound-method": "class Encoder:\n    def turns(self, d_model, *, base=10_000.0):\n"
    f"    {RIGHT}\nwavelengths = Encoder().turns",
    "callable": "class Turns:\n    def __call__(self, d_model, *, base=10_000.0):\n"
    f"    {RIGHT}\nwavelengths = Turns()",
    "unicode": "π2 = 2 * np.pi\ndef größe(ω):\n    return π2 / ω\n"
    f"{HEAD}    ω = inverse_frequencies(d_model, base=base)\n    return größe(ω)",
    "list": f"{HEAD}    return (2 * np.pi / inverse_frequencies(d_model, base=base)).tolist()",
    "long-double": f"{HEAD}    return (2 * np.pi / inverse_frequencies(d_model, base=base))"
    ".astype(np.longdouble)",
    "read-only": f"{HEAD}    found = 2 * np.pi / inverse_frequencies(d_model, base=base)\n"
    "    found.flags.writeable = False\n    return found",
    "strided": f"{HEAD}    found = 2 * np.pi / inverse_frequencies(d_model, base=base)\n"
    "    return np.repeat(found, 2)[::2]",
    "helpers-first": f"def turn():\n    return 2 * np.pi\n\n{HEAD}"
    "    return turn() / inverse_frequencies(d_model, base=base)",
    "redefined": f"{HEAD}    return None\n\n{HEAD}{RIGHT}",
    "timed": f"%%time\n{HEAD}{RIGHT}",
    "shown": f"{HEAD}{RIGHT}\nwavelengths(8)\nprint(wavelengths(8))",
    "then-error": f"{HEAD}{RIGHT}\nassert wavelengths(8)[0] == 0",
    "then-endless": f"{HEAD}{RIGHT}\nwhile True:\n    pass",
    "then-exit": f"{HEAD}{RIGHT}\nimport sys\nsys.exit(1)",
    "then-input": f"{HEAD}{RIGHT}\nd = int(input('d_model? '))",
    "annotated": "from __future__ import annotations\n"
    f"def wavelengths(d_model: int, *, base: float = 1e4) -> np.ndarray:\n{RIGHT}",
    "tabs": HEAD + RIGHT.replace("    ", "\t"),
    "walrus": f"{HEAD}    match d_model:\n        case int():\n            if (n := d_model):\n"
    "                return 2 * np.pi / inverse_frequencies(n, base=base)",
    "try-import": f"try:\n    import torch\nexcept ImportError:\n    torch = None\n{HEAD}{RIGHT}",
    "other-numpy": "import numpy\nfrom numpy import pi\ndef wavelengths(d_model, *, base=1e4):\n"
    "    return 2 * pi / base ** (-2 * numpy.arange(d_model // 2) / d_model)",
    "no-numpy": "import math\ndef wavelengths(d_model, *, base=1e4):\n"
    "    return [2 * math.pi * base ** (2 * i / d_model) for i in range(d_model // 2)]",
}.items():
    what = f"A right answer in this form: {name}."
    answers(f"form-{name}", what, {"wavelengths": source}, quick=name == "callable")

# Cells of the student's own; all answers are right.

for name, source in {
    "figure": "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.show()",
    "figures-20": "import matplotlib.pyplot as plt\nfor _ in range(20):\n    plt.figure()",
    "magics": "%matplotlib inline\n%timeit -n1 -r1 sum(range(10))\n%who\n%config Inline.x = 1",
    "magic-cell": "%%capture captured\nprint(1)",
    "magic-unknown": "%%nonsense\nx",
    "magic-bash": "%%bash\necho hello; exit 3",
    "writefile": "%%writefile helper.py\nvalue = 3",
    "autoreload": "%load_ext autoreload\n%autoreload 2",
    "reset": "%xdel nothing\n%pdb on",
    "shell": "!echo hello\nfiles = !ls /",
    "pip": "%pip install numpy==1.0",
    "help": "np.sin?\nhelp(np.cos)",
    "input": "name = input('Your name? ')",
    "getpass": "import getpass\ngetpass.getpass()",
    "chdir": "import os\nos.chdir('/')",
    "errstate": "np.seterr(all='raise')",
    "warnings-errors": "import warnings\nwarnings.simplefilter('error')",
    "seeds": "import random\nrandom.seed(0)\nnp.random.seed(0)",
    "patched-testing": "np.testing.assert_allclose = lambda *a, **k: 1 / 0",
    "patched-equal": "np.isclose = np.array_equal = lambda *a, **k: False",
    "del-check": "del check, grade",
    "redefined-check": "check = grade = lambda *a, **k: 1 / 0",
    "redefined-print": "def print(*_, **__):\n    raise RuntimeError\nsum = round = 5",
    "await": "import asyncio\nawait asyncio.sleep(0)",
    "async": "async def f():\n    return 3\nawait f()",
    "classes": "class A:\n    def __eq__(self, other):\n        return True\nA()",
    "star-imports": "from math import *\nfrom numpy import *\nfrom posenc import *\n"
    "from posenc.grading import *",
    "long-output": "for number in range(100_000):\n    print('x' * 100)",
    "long-value": "'x' * 10_000_000",
    "long-html": "from IPython.display import HTML\nHTML('<script>alert(1)</script>' * 100_000)",
    "error": "1 / 0",
    "syntax": "def (:",
    "unfinished-string": "'''",
    "exit": "exit()",
    "quit": "quit",
    "sys-exit": "import sys\nsys.exit(3)",
    "interrupt": "raise KeyboardInterrupt",
    "os-exit": "import os\nos._exit(0)",
    "abort": "import os\nos.abort()",
    "segfault": "import ctypes\nctypes.string_at(0)",
    "endless": "while True:\n    pass",
    "endless-caught": "while True:\n    try:\n        while True:\n            pass\n"
    "    except BaseException:\n        pass",
    "sleep": "import time\ntime.sleep(1000)",
    "native-loop": "sum(range(10**14))",
    "no-sigint": "import signal\nsignal.signal(2, signal.SIG_IGN)\nwhile True:\n    pass",
    "stops-itself": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "memory": "x = bytearray(10**12)",
    "memory-slowly": "kept = []\nwhile True:\n    kept.append(bytearray(10**8))",
    "recursion": "def f():\n    f()\nf()",
    "recursion-crash": "import sys\nsys.setrecursionlimit(10**9)\ndef f():\n    f()\nf()",
    "thread-left": "import threading, time\nthreading.Thread(target=time.sleep, args=[9]).start()",
    "thread-endless": "import threading\n\ndef spin():\n    while True:\n        pass\n"
    "threading.Thread(target=spin, daemon=True).start()",
    "traceback-off": "get_ipython().showtraceback = lambda *a, **k: None\n1 / 0",
    "stdout-closed": "import sys\nsys.stdout.close()\nsys.stderr = None",
    "stdout-replaced": "import io, sys\nsys.stdout = sys.stderr = io.StringIO()",
    "fds-closed": "import os\nos.closerange(3, 4096)",
    "network": "import urllib.request\nurllib.request.urlopen('http://example.org', timeout=2)",
    "builtins": "import builtins\nbuiltins.__dict__['isinstance'] = None",
    "hook": "import sys\nsys.excepthook = sys.displayhook = lambda *a: 1 / 0\n3",
    "repr-fails": "class A:\n    def __repr__(self):\n        raise SystemExit\nA()",
    "repr-endless": "class A:\n    def __repr__(self):\n        while True:\n            pass\nA()",
    "getattr": "class A:\n    def __getattr__(self, name):\n        return self\n"
    "    def __call__(self, *a):\n        return self\nA()",
    "namespace-cleared": "get_ipython().user_ns['odd name \\ud800'] = 5",
    "multiprocessing": "import multiprocessing\nwith multiprocessing.Pool(2) as pool:\n"
    "    print(pool.map(abs, [-1, 2]))",
    "atexit": "import atexit\natexit.register(lambda: 1 / 0)",
    "clock": "import time\ntime.monotonic = time.time = time.sleep = lambda *a: 0",
    "sigalrm": "import signal\nsignal.alarm(1)",
    "nice": "import os\nos.nice(19)",
    "random-id": "import uuid, secrets\nuuid.uuid4()\nsecrets.token_hex()",
    "deep-display": "x = []\nfor _ in range(100_000):\n    x = [x]\nx",
    "markdown-like": "# Some text that should be a text\n",
    "empty": "",
    "comment": "# nothing",
}.items():
    what = f"A cell of the student's own: {name}."
    cells(f"own-{name}", what, source, quick=name == "os-exit")

cells("own-many-ends", "Three cells in a row that end Python.", *["import os\nos._exit(3)"] * 3)

EVERYTHING = dict.fromkeys(
    (
        "inverse_frequencies",
        "sinusoidal_encoding",
        "wavelengths",
        "add_positions",
        "impossible_pairs",
        "accepts",
    ),
    0.0,
)
for name, source in {
    "replaced": "get_ipython().run_cell = None",
    "transformed": "get_ipython().input_transformers_cleanup.append(lambda lines: ['1/0'])",
}.items():
    cells(f"own-shell-{name}", "No later cell would run in a kernel; functions do.", source)


@edited("own-clears", "A last cell that forgets all names.")
def _(notebook: Notebook) -> None:
    notebook["cells"].append(code("%reset -f"))


@edited("own-everywhere", "A cell of the student's own between any two.")
def _(notebook: Notebook) -> None:
    given = notebook["cells"]
    notebook["cells"] = []
    for number, one in enumerate(given):
        notebook["cells"] += [one, code(f"x{number} = {number}; print(x{number})", f"own-{number}")]


@entry("reads-own-data", "A cell reads a file that the student handed in.")
def _(folder: Path) -> None:
    notebook = complete()
    (folder / "data").mkdir()
    (folder / "data" / "π.csv").write_text(str(2 * 3.141592653589793), "utf-8")
    cell(notebook, "wavelengths")["source"] = (
        "turn = float(open('data/π.csv').read())\n\n"
        f"{HEAD}    return turn / inverse_frequencies(d_model, base=base)"
    )
    save(folder, notebook)


# Wrong answers and faults inside a function: they cost the task and no other.

for name, (line, word) in {
    "zeros": ("return np.zeros(d_model // 2)", "wrong"),
    "none": ("return None", ""),
    "text": ("return '6.28'", ""),
    "scalar": ("return 2 * np.pi", ""),
    "nan": ("return np.full(d_model // 2, np.nan)", ""),
    "inf": ("return np.full(d_model // 2, np.inf)", ""),
    "shape": ("return (2 * np.pi / inverse_frequencies(d_model, base=base))[:, None]", "shape"),
    "longer": ("return np.append(2 * np.pi / inverse_frequencies(d_model, base=base), 1)", ""),
    "objects": ("return np.array([object()] * (d_model // 2))", ""),
    "strings": ("return (2 * np.pi / inverse_frequencies(d_model, base=base)).astype(str)", ""),
    "complex": ("return (2j * np.pi / inverse_frequencies(d_model, base=base))", ""),
    "not-written": ("raise NotImplementedError", "not written"),
    "error": ("return [][1]", "IndexError"),
    "assertion": ("assert False", "AssertionError"),
    "endless": ("while True: pass", "slow"),
    "sleep": ("__import__('time').sleep(1000)", "slow"),
    "native": ("return sum(range(10**14))", "slow"),
    "recursion": ("return wavelengths(d_model, base=base)", "RecursionError"),
    "exit": ("raise SystemExit", "exit"),
    "sys-exit": ("__import__('sys').exit(0)", "exit"),
    "quit": ("quit()", ""),
    "os-exit": ("__import__('os')._exit(0)", "ended Python"),
    "abort": ("__import__('os').abort()", "crash"),
    "segfault": ("__import__('ctypes').string_at(0)", "crash"),
    "kill": ("__import__('os').kill(__import__('os').getpid(), 9)", ""),
    "stop": ("__import__('os').kill(__import__('os').getpid(), 19)", "slow"),
    "interrupt": ("raise KeyboardInterrupt", ""),
    "generator-exit": ("raise GeneratorExit", ""),
    "base-exception": ("raise type('Odd', (BaseException,), {})('x')", ""),
    "memory": ("return np.ones(10**12)", "memory"),
    "input": ("return float(input('?'))", "input"),
    "generator": ("yield from ()", ""),
    "prints-only": ("print(2 * np.pi / inverse_frequencies(d_model, base=base))", ""),
}.items():
    answers(
        f"bad-{name}",
        f"A wrong function: {name}.",
        body(line, then=""),
        lost=NOTHING,
        word=word,
        quick=name == "os-exit",
    )

answers("bad-coroutine", "A coroutine.", {"wavelengths": "async " + HEAD + RIGHT}, lost=NOTHING)
for name, source in {
    "number": "wavelengths = 3",
    "none": "wavelengths = None",
    "array": "wavelengths = 2 * np.pi / inverse_frequencies(8)",
    "class": "class wavelengths:\n    pass",
    "signature": "def wavelengths():\n    return 3",
    "deleted": f"{HEAD}{RIGHT}\ndel wavelengths",
    "dies-first": f"import os\nos._exit(0)\n{HEAD}{RIGHT}",
    "dies-after": f"{HEAD}{RIGHT}\nimport os\nos._exit(0)",
    "only-text": "The wavelength is 2 pi over the frequency.",
    "import-error": f"import torch_not_installed\n{HEAD}{RIGHT}",
}.items():
    answers(f"bad-{name}-named", f"No function: {name}.", {"wavelengths": source}, lost=NOTHING)

# What a wrong earlier function costs, and partial points.

answers(
    "follows",
    "A wrong function that two later ones use, which are right.",
    {"inverse_frequencies": "def inverse_frequencies(d_model, *, base=1e4):\n    return 0"},
    lost={"inverse_frequencies": 0.0},
)
answers(
    "follows-crash",
    "A function that ends Python, which two later ones use.",
    {
        "inverse_frequencies": "def inverse_frequencies(d_model, *, base=1e4):\n"
        "    __import__('os')._exit(0)"
    },
    lost={"inverse_frequencies": 0.0},
)
answers(
    "partial",
    "The base that is given is ignored, which costs part of the points.",
    {
        "inverse_frequencies": "def inverse_frequencies(d_model, *, base=1e4):\n"
        "    return 1e4 ** (-2 * np.arange(d_model // 2) / d_model)"
    },
    lost={"inverse_frequencies": 2.5},
    word="base",
    quick=True,
)


@edited("all-wrong", "Every answer returns nothing.", lost=EVERYTHING)
def _(notebook: Notebook) -> None:
    for one in notebook["cells"]:
        if one["metadata"].get("nbgrader", {}).get("solution"):
            name = one["metadata"]["nbgrader"]["grade_id"]
            one["source"] = f"def {name}(*_, **__):\n    pass"


@edited("all-crash", "Every answer ends Python.", lost=EVERYTHING)
def _(notebook: Notebook) -> None:
    for one in notebook["cells"]:
        if one["metadata"].get("nbgrader", {}).get("solution"):
            name = one["metadata"]["nbgrader"]["grade_id"]
            one["source"] = f"def {name}(*_, **__):\n    __import__('os')._exit(0)"


@edited("one-line", "Names deleted after the task that they were for.")
def _(notebook: Notebook) -> None:
    notebook["cells"].insert(at(notebook, "grade-wavelengths") + 1, code("del wavelengths"))


# Other assignments.

answers(
    "start-list",
    "Nested lists in place of arrays, and a print.",
    {
        "rotation_matrix": "import math\ndef rotation_matrix(angle):\n    print(angle)\n"
        "    c, s = math.cos(angle), math.sin(angle)\n    return [[c, -s], [s, c]]"
    },
    assignment="00-start",
)
answers(
    "start-endless",
    "A function that does not end.",
    {"split_pairs": "def split_pairs(x):\n    while True:\n        pass"},
    assignment="00-start",
    lost={"split_pairs": 0.0},
    word="slow",
)
answers(
    "attention-crash",
    "A function that ends Python, which another uses.",
    {"softmax": "def softmax(scores, axis=-1):\n    __import__('os')._exit(1)"},
    assignment="01-attention",
    lost={"softmax": 0.0},
)
answers(
    "attention-errstate",
    "Right functions where NumPy raises for what it would warn of.",
    {
        "causal_mean": "import warnings\nwarnings.simplefilter('error')\n"
        "def causal_mean(x):\n    warnings.warn('careful')\n    x = np.asarray(x, dtype=float)\n"
        "    counts = np.arange(1, x.shape[-2] + 1)[:, np.newaxis]\n"
        "    return np.cumsum(x, axis=-2) / counts"
    },
    assignment="01-attention",
)
answers(
    "rotation-exit",
    "A function that calls exit.",
    {"position_kernel": "def position_kernel(offsets, d_model, *, base=1e4):\n    exit()"},
    assignment="03-rotation",
    lost={"position_kernel": 0.0},
)
answers(
    "rope-memory",
    "A function that asks for more memory than there is.",
    {"rope_scores": "def rope_scores(*_, **__):\n    return np.ones(10**13)"},
    assignment="04-learned-rope",
    lost={"rope_scores": 0.0},
    word="memory",
)
answers(
    "ledger-all-true",
    "One word for every sentence.",
    {"verdicts": "def verdicts():\n    return dict.fromkeys('abcdef', 'true')"},
    assignment="05-ledger",
    lost={"verdicts": 1.0},
    quick=True,
)
answers(
    "ledger-sloppy",
    "Right words with capitals and spaces.",
    {
        "verdicts": "def verdicts():\n    words = ' TRUE', 'Imprecise ', 'imprecise', 'FALSE',"
        " 'true', 'False'\n    return dict(zip('abcdef', words))"
    },
    assignment="05-ledger",
)
