"""Submissions that try to get points that they did not earn, or to harm somebody."""

from __future__ import annotations

import os
from pathlib import Path

from corpus import (
    MOST,
    ROOT,
    SETUP,
    Notebook,
    answers,
    at,
    cell,
    cells,
    code,
    complete,
    edited,
    save,
)
from corpus import entry as entry_
from corpus_answers import HEAD, NOTHING, RIGHT, body

SOURCE = f"_build/source/{MOST}/{MOST}.ipynb"
# What a thief finds if nothing is there.
FAILED = "    return np.zeros(d_model // 2)\n"


def theft(name: str, what: str, source: str, *, first: str = "", **how) -> None:
    """Register a function that returns what it steals; ``source`` returns it, or fails."""
    lines = ["try:", *(f"    {line}" for line in source.splitlines())]
    lines += ["except BaseException:", "    pass"]
    sources = body(*lines, then=FAILED)
    sources["wavelengths"] = (
        f"{first}\n{sources['wavelengths']}" if first else sources["wavelengths"]
    )
    answers(f"steal-{name}", what, sources, lost=NOTHING, **how)


# Reading answers.

theft(
    "import",
    "Imports the reference.",
    "import posenc\nreturn posenc.wavelengths(d_model, base=base)",
)
theft(
    "module",
    "Imports the module of the reference.",
    "from posenc.sinusoidal import wavelengths as right\nreturn right(d_model, base=base)",
)
theft(
    "module-unwrapped",
    "Calls the code of the reference as a function of another name.",
    "import types, posenc.sinusoidal as s\n"
    "return types.FunctionType(s.wavelengths.__code__, s.__dict__)(d_model, base=base)",
)
theft(
    "in-other-process",
    "Asks another Python for the reference.",
    "import subprocess, sys, json\n"
    "words = f'import posenc, json; print(json.dumps(list(posenc.wavelengths({d_model}))))'\n"
    "return json.loads(subprocess.run([sys.executable, '-c', words], capture_output=True).stdout)",
)
theft(
    "later-chapter",
    "Works the answer out of a function of a later chapter.",
    "from posenc import rope\nturned = rope(np.eye(d_model)[::2], [1] * (d_model // 2))\n"
    "return 2 * np.pi / np.arccos(np.diag(turned[:, ::2]))",
)
theft(
    "exercises",
    "Asks the list of exercises for the reference.",
    "from posenc.exercises import EXERCISES\n"
    "return EXERCISES['wavelengths'].reference(d_model, base=base)",
)
theft(
    "grading",
    "Asks the checks for the cases and the right values.",
    "import os\nfrom posenc.grading import _judge\nfrom posenc import exercises\n"
    "task = exercises.get('wavelengths')\nfor seed in (None, os.environ.get('POSENC_SEED')):\n"
    "    for case in sum(map(list, _judge.draw_cases(task, seed)), []):\n"
    "        if case.args == (d_model,):\n            return task.reference(d_model, base=base)",
)
theft(
    "getsource",
    "Reads the text of the reference.",
    "import inspect, posenc.sinusoidal as s\n"
    "names = {**vars(s), 'inverse_frequencies': inverse_frequencies}\n"
    "exec(inspect.getsource(s.wavelengths), names)\n"
    "return names['wavelengths'](d_model, base=base)",
)

READ = f"""import json, os
from pathlib import Path
for place in PLACES:
    for name in ("solutions/{MOST}/{MOST}.py", "{SOURCE}"):
        if not os.path.exists(os.path.join(place, name)):
            continue
        text = Path(place, name).read_text()
        if name.endswith('.ipynb'):
            text = '\\n'.join(''.join(cell['source']) for cell in json.loads(text)['cells'])
        start = text.index('def wavelengths')
        names = dict(globals())
        exec(text[start:text.index('### END', start)], names)
        return names['wavelengths'](d_model, base=base)
"""
for name, places in {
    "by-path": [str(ROOT), "/course"],
    "by-way-up": ["..", "../..", "../../..", "../../../..", "../../../../.."],
    "proc-root": [
        f"/proc/1/root{ROOT}",
        f"/proc/self/root{ROOT}",
        "/proc/1/cwd",
        "/proc/self/cwd",
        "/proc/2/cwd",
    ],
}.items():
    theft(
        name,
        f"Reads the solution {name.replace('-', ' ')}.",
        READ.replace("PLACES", repr(places)),
    )
# Libraries are left out: to search them too takes longer than a function may.
SEARCH = """import os
def found(wanted):
    for folder, folders, files in os.walk('/'):
        folders[:] = set(folders) - {'proc', 'sys', 'usr', 'dev', 'site-packages', '__pycache__'}
        for name in files:
            if wanted(name):
                yield os.path.join(folder, name)
"""
theft(
    "by-search",
    "Searches the disk for the solution.",
    "for path in found(lambda name: name.endswith(('.py', '.ipynb'))):\n    try:\n"
    "        text = open(path, errors='replace').read()\n    except OSError:\n        continue\n"
    "    if 'np.pi / frequencies' in text:\n"
    "        return 2 * np.pi / inverse_frequencies(d_model, base=base)",
    first=SEARCH,
)
theft(
    "others",
    "Reads what others handed in.",
    "import glob\nfor up in ('..', '../..', '../../..', '/course/submitted', "
    f"{str(ROOT / 'submitted')!r}):\n"
    "    for path in glob.glob(f'{up}/*/*/*.ipynb'):\n"
    "        if 'np.pi / frequencies' in open(path).read():\n"
    "            return 2 * np.pi / inverse_frequencies(d_model, base=base)",
)
theft(
    "open-files",
    "Reads what other processes have open.",
    "import glob, os\nfor path in glob.glob('/proc/*/environ') + glob.glob('/proc/*/fd/*'):\n"
    "    try:\n        text = os.read(os.open(path, os.O_NONBLOCK), 9999)\n"
    "    except OSError:\n        continue\n"
    "    if b'POSENC_SEED' in text or b'wavelengths' in text:\n"
    "        return 2 * np.pi / inverse_frequencies(d_model, base=base)",
)
theft(
    "memory",
    "Looks for the seed in the memory of its parent, and in its own.",
    "import os\nwanted = bytes(reversed(b'=DEES_CNESOP'))\n"
    "for process in (os.getppid(), 'self'):\n    try:\n"
    "        for line in open(f'/proc/{process}/maps'):\n            if '[stack]' in line:\n"
    "                start, end = (int(n, 16) for n in line.split()[0].split('-'))\n"
    "                with open(f'/proc/{process}/mem', 'rb', buffering=0) as file:\n"
    "                    file.seek(start)\n"
    "                    if wanted in file.read(end - start):\n"
    "                        return 2 * np.pi / inverse_frequencies(d_model, base=base)\n"
    "    except OSError:\n        pass",
)
theft(
    "environment",
    "Looks for the seed in the environment.",
    "import os\nassert 'POSENC_SEED' in os.environ\n"
    "return 2 * np.pi / inverse_frequencies(d_model, base=base)",
)
theft(
    "modules",
    "Searches all imported modules for the reference.",
    "import sys\nfor name, module in list(sys.modules.items()):\n"
    "    right = getattr(module, 'wavelengths', None)\n"
    "    if name.startswith('posenc') and right:\n        return right(d_model, base=base)",
)
theft(
    "gc",
    "Searches all objects for a function of this name.",
    "import gc, types\nfor thing in gc.get_objects():\n"
    "    if isinstance(thing, types.FunctionType) and thing.__name__ == 'wavelengths':\n"
    "        if thing is not wavelengths:\n            return thing(d_model, base=base)",
)
theft(
    "frames",
    "Searches the frames above it for expected values.",
    "import sys\nframe = sys._getframe()\nwhile frame:\n    for value in frame.f_locals.values():\n"
    "        for part in (value, *getattr(value, '__dict__', {}).values()):\n"
    "            if isinstance(part, np.ndarray) and part.shape == (d_model // 2,):\n"
    "                return part\n    frame = frame.f_back",
    quick=True,
)
theft(
    "main",
    "Searches what runs around it for a key.",
    "import sys\ninside = sys.modules['__main__'].__dict__\n"
    "return next(inside[name] for name in ('expected', 'key', 'reference') if name in inside)",
)
theft(
    "question",
    "Asks the judge's side for a function that was not given.",
    "import sys\nframe = sys._getframe(1)\nwhile frame:\n    server = frame.f_locals.get('self')\n"
    "    if hasattr(server, '_ask'):\n        for number in range(50):\n            try:\n"
    "                return server._ask(number, (d_model,), {'base': base})\n"
    "            except Exception:\n                pass\n    frame = frame.f_back",
)
theft(
    "network",
    "Downloads the answer.",
    "import urllib.request\n"
    "urllib.request.urlopen('http://127.0.0.1:8000/02-sinusoidal.html', timeout=1).read()\n"
    "return 2 * np.pi / inverse_frequencies(d_model, base=base)",
)
theft(
    "example",
    "Knows the example in the text and no more.",
    "return {8: [6.283185307, 62.83185307, 628.3185307, 6283.185307]}[d_model]",
)
theft(
    "replaced-helper",
    "Hopes that a right function is put in place of a broken one, and calls the other.",
    "return sinusoidal_table(d_model)",
)

# Saying that it is right.

LIES = {
    "eq": "class Lie:\n    def __eq__(self, other):\n        return True\n    __hash__ = None",
    "all-operators": "class Lie:\n    shape, dtype, ndim, size = (4,), np.dtype(float), 1, 4\n"
    "    def __getattr__(self, name):\n        return lambda *a, **k: True\n"
    "    __eq__ = __le__ = __lt__ = __ge__ = __gt__ = lambda self, other: True\n"
    "    __sub__ = __rsub__ = __add__ = __radd__ = __mul__ = lambda self, other: 0.0\n"
    "    __abs__ = lambda self: 0.0\n    __bool__ = lambda self: True\n    __hash__ = None",
    "array": "class Lie:\n    def __array__(self, *a, **k):\n        return np.zeros(4)\n"
    "    def __array_ufunc__(self, *a, **k):\n        return True\n"
    "    def __array_function__(self, *a, **k):\n        return True",
    "array-endless": "class Lie:\n    def __array__(self, *a, **k):\n        while True:\n"
    "            pass",
    "array-exits": "class Lie:\n    def __array__(self, *a, **k):\n"
    "        __import__('os')._exit(0)",
    "ndarray": "class Sub(np.ndarray):\n    def __array_ufunc__(self, *a, **k):\n"
    "        return np.True_\n    def __array_function__(self, *a, **k):\n        return True\n"
    "    __eq__ = lambda self, other: True\n    __sub__ = lambda self, other: 0\n"
    "def Lie():\n    return np.zeros(4).view(Sub)",
    "float": "class Sub(float):\n    __eq__ = lambda self, other: True\n"
    "    __sub__ = __rsub__ = lambda self, other: 0.0\n    __hash__ = float.__hash__\n"
    "def Lie():\n    return [Sub(1)] * 4",
    "int": "class Sub(int):\n    __eq__ = lambda self, other: True\n"
    "    __sub__ = __rsub__ = lambda self, other: 0\n    __hash__ = int.__hash__\n"
    "def Lie():\n    return [Sub(1)] * 4",
    "str": "class Sub(str):\n    __eq__ = lambda self, other: True\n    __hash__ = str.__hash__\n"
    "def Lie():\n    return Sub('right')",
    "list": "class Lie(list):\n    __eq__ = lambda s, other: True\n    __len__ = lambda self: 4\n"
    "    __iter__ = lambda self: iter([0.0] * 4)",
    "dict": "class Lie(dict):\n    items = lambda self: [[object(), 1]] * 4\n"
    "    __eq__ = lambda self, other: True",
    "class-attribute": "class Lie:\n    __class__ = property(lambda self: np.ndarray)",
    "dtype": "class Lie:\n    __array_interface__ = {'shape': (4,), 'typestr': '<f8',\n"
    "        'data': (16, False), 'version': 3}",
    "report": "class Lie:\n    points, max_points, passed = 3, 3, 1\n"
    "    state, lines = 'right', ()\n    def _repr_mimebundle_(self, *a, **k):\n"
    "        return {'text/plain': '3'}",
    "masked": "def Lie():\n    return np.ma.masked_array(np.zeros(4), mask=True)",
    "structured": "def Lie():\n    return np.zeros(4, dtype=[('a', float)])",
    "dates": "def Lie():\n    return np.zeros(4, dtype='M8[s]')",
    "module": "def Lie():\n    return np",
    "file": "def Lie():\n    return open('/etc/ld.so.cache', 'rb')",
    "lock": "def Lie():\n    import threading\n    return threading.Lock()",
    "exception": "def Lie():\n    return AssertionError()",
    "type": "Lie = lambda: type('Any', (), {})",
    "lazy": "def Lie():\n    return map(float, ['0'] * 4)",
    "lazy-endless": "def Lie():\n    from itertools import count\n    return (x for x in count())",
    "itself": "def Lie():\n    x = []\n    x.append(x)\n    return x",
    "deep": "def Lie():\n    x = []\n    for _ in range(100_000):\n        x = [x]\n    return x",
    "huge-array": "def Lie():\n    return np.zeros(10**8)",
    "huge-view": "def Lie():\n    return np.broadcast_to(0.0, (10**13,))",
    "huge-list": "def Lie():\n    return [0.0] * 10**7",
    "huge-int": "def Lie():\n    return 10 ** 100_000",
    "huge-text": "def Lie():\n    return 'x' * 10**8",
    "huge-set": "def Lie():\n    return {k * (2**61 - 1) for k in range(50_000)}",
    "bomb": "def Lie():\n    x = [0.0]\n    for _ in range(9):\n        x = [x] * 10\n    return x",
    "surrogates": "def Lie():\n    return ['\\ud800', '\\0', {'\\udfff': 1}]",
    "odd-name": "Lie = type('<script>alert(1)</script>' * 1000, (), {})",
}
for name, source in LIES.items():
    answers(
        f"lie-{name}",
        f"Returns something that is no answer: {name}.",
        {"wavelengths": f"{source}\n\n{HEAD}    return Lie()"},
        lost=NOTHING,
        quick=name == "eq",
    )


# Changing what judges. What a notebook breaks for itself stays broken for its later functions.

LATER = NOTHING | dict.fromkeys(("add_positions", "impossible_pairs", "accepts"), 0.0)
CHANGES = {
    "testing": (
        "np.testing.assert_allclose = np.testing.assert_array_equal = lambda *a, **k: None",
        NOTHING,
    ),
    "allclose": (
        "np.allclose = np.isclose = np.array_equal = lambda *a, **k: True",
        NOTHING | {"accepts": 0.0},
    ),
    "numpy": ("np.max = np.subtract = np.linalg.norm = lambda *a, **k: np.float64(0)", NOTHING),
    "builtins": (
        "import builtins\nbuiltins.max = builtins.min = lambda *a: 0\n"
        "builtins.AssertionError = type('A', (BaseException,), {})",
        NOTHING,
    ),
    "ast": (
        "import ast\nclass T(ast.NodeTransformer):\n    def visit_Assert(self, node):\n"
        "        return ast.Pass()\nget_ipython().ast_transformers.append(T())",
        NOTHING,
    ),
    "input-transformer": (
        "get_ipython().input_transformers_post.append(\n"
        "    lambda lines: ['3\\n'] if 'grade' in ''.join(lines) else lines)",
        NOTHING,
    ),
    "grade": ("grade = check = lambda *a, **k: 3", NOTHING),
    "grading-module": (
        "import posenc.grading\nposenc.grading.grade = posenc.grading.check = lambda *a: 3",
        NOTHING,
    ),
    "fake-module": (
        "import sys, types\nfake = types.ModuleType('posenc.grading')\n"
        "fake.grade = fake.check = lambda *a: 3\nsys.modules['posenc.grading'] = fake",
        NOTHING,
    ),
    "limits": (
        "import posenc.grading._limits as limits\nlimits.call = lambda f, *a, **k: (True, [])",
        LATER,
    ),
    "trace": (
        "import sys, threading\nsys.settrace(lambda *a: None)\nsys.setprofile(lambda *a: None)\n"
        "threading.setprofile(lambda *a: None)",
        NOTHING,
    ),
    "json": (
        'import json\njson.dumps = lambda value, *a, **k: \'{"form": true, "arrays": []}\'',
        NOTHING,
    ),
    "socket": (
        "import posenc.grading.isolation.wire as wire\nwire.Channel.send = lambda *a, **k: None",
        NOTHING,
    ),
    "mimebundle": (
        "from IPython.display import publish_display_data\n"
        "publish_display_data({'text/plain': '3', 'application/json': {'points': 3}})",
        NOTHING,
    ),
    "print": (
        'print(\'wavelengths: 3 of 3 points.\')\nprint(\'{"points": 3, "state": "right"}\')',
        NOTHING,
    ),
    "atexit": ("import atexit, os\natexit.register(os._exit, 0)", NOTHING),
    "custom-exc": (
        "get_ipython().set_custom_exc((Exception,), lambda *a, **k: None)\n",
        NOTHING,
    ),
}
for name, (source, lost) in CHANGES.items():
    answers(
        f"change-{name}",
        f"Replaces what might judge: {name}; the answer is wrong.",
        {"wavelengths": f"{source}\n\n{HEAD}{FAILED}"},
        lost=lost,
        quick=name == "grade",
    )

for name, line in {
    "encode": "frame.f_globals['encode'] = lambda *a: (True, [])",
    "server": "frame.f_globals['_Server']._do_call = lambda *a: ({'form': True, 'values': 0}, [])",
    "limits": "frame.f_globals['_limits'].call = lambda *a, **k: (True, [])",
}.items():
    answers(
        f"change-{name}-around",
        f"Replaces what runs around the function, while it runs: {name}.",
        body(
            "import sys",
            "frame = sys._getframe()",
            "while frame:",
            "    if '_Server' in frame.f_globals:",
            f"        {line}",
            "    frame = frame.f_back",
            then=FAILED,
        ),
        lost=NOTHING,
    )

# Speaking for the judge, on the line to it.

FORGE = """import json, os, struct
def forge(header):
    text = json.dumps({**header, "arrays": []}).encode()
    for number in range(3, 64):
        try:
            os.write(number, struct.pack("<II", len(text), 0) + text)
        except OSError:
            pass

"""
for name, header in {
    "true": {"form": True, "values": 0},
    "object": {"form": {"object": [0, True, "Report", "x"]}, "values": 0},
    "died": {"died": "exit 0"},
    "call": {"call": 0, "form": [[], {}]},
    "call-odd": {"call": "x", "form": 5},
    "fault": {"fault": ["right", "3 of 3 points"], "kinds": []},
    "raised": {"raised": ["KeyboardInterrupt", "SystemExit"], "text": "x"},
    "attribute": {"form": {"mine": "__class__"}, "values": 0},
    "array": {"form": {"array": ["<f8", [10**9, 10**9]]}, "values": 0},
    "array-objects": {"form": {"array": ["|O8", [1]]}, "values": 0},
    "shape": {"form": {"objects": [-1, 10**12]}, "values": 0},
    "after": {"form": True, "values": 0, "after": [[5], {"x": 1}]},
    "reply": {"printed": "", "shown": [], "bound": ["grade"], "error": None, "figures": 0},
}.items():
    answers(
        f"forge-{name}",
        f"Sends a message of its own while it runs: {name}.",
        {"wavelengths": f"{FORGE}{HEAD}    forge({header!r})\n{FAILED}"},
        lost=NOTHING,
        quick=name == "true",
    )
answers(
    "forge-bytes",
    "Sends what is no message.",
    {
        "wavelengths": f"import os\n{HEAD}    for number in range(3, 64):\n        try:\n"
        "            os.write(number, b'\\xff' * 100)\n        except OSError:\n"
        f"            pass\n{FAILED}"
    },
    lost=NOTHING,
)


@edited("forge-in-cell", "A last cell sends messages of its own; the answers are right.")
def _(notebook: Notebook) -> None:
    source = FORGE + "forge({'died': 'exit 0'})\nforge({'printed': 3})"
    notebook["cells"] += [code(source, "own-1"), code("x = 1", "own-2")]


# Guessing which calls are checks.

answers(
    "game-visible",
    "Knows the visible checks by heart, and nothing else.",
    {
        "wavelengths": f"{HEAD}    if d_model in (8, 10, 6) and base == 10_000.0:\n    {RIGHT}"
        f"{FAILED}"
    },
    lost=NOTHING,
)
answers(
    "game-first",
    "Right in the first call of its process, and never again.",
    {
        "wavelengths": f"calls = []\n{HEAD}    calls.append(1)\n    if len(calls) > 1:\n"
        f"        return np.zeros(d_model // 2)\n{RIGHT}"
    },
    lost=NOTHING,
)
answers(
    "game-callers",
    "Gives right answers if nobody grades.",
    {
        "wavelengths": f"import sys\n{HEAD}    frame, names = sys._getframe(), set()\n"
        "    while frame:\n        names.add(frame.f_code.co_name)\n        frame = frame.f_back\n"
        f"    if '_called' in names:\n    {FAILED}{RIGHT}"
    },
    lost=NOTHING,
)
P = "def add_positions(x, table, *, start=0):\n"
answers(
    "game-zeroed-input",
    "Sets what it is given to zero, so that zero is right.",
    {"add_positions": f"{P}    x[...] = 0\n    table[...] = 0\n    return x"},
    lost={"add_positions": 0.0},
    quick=True,
)
answers(
    "game-input-changed",
    "Changes a table so that no pair of it is wrong.",
    {
        "impossible_pairs": "def impossible_pairs(table, *, tolerance):\n"
        "    try:\n        table[...] = 0.5 ** 0.5\n    except TypeError:\n"
        "        for row in table:\n            row[:] = [0.5 ** 0.5] * len(row)\n"
        "    return set()"
    },
    lost={"impossible_pairs": 0.0},
)
A = "def accepts(candidate):\n"
for name, source in {
    "always": "    return True",
    "never": "    return False",
    "truthy": "    return 'True'",
    "bool-object": "    return type('B', (), {'__bool__': lambda s: True})()",
    "by-order": "    global n\n    n = globals().get('n', -1) + 1\n    return n % 2 == 0",
    "by-name": "    return 'right' in repr(candidate) + candidate.__name__",
    "by-number": "    return getattr(candidate, 'number', 1) == 0",
    "by-code": "    return 'wrong' not in str(candidate.__globals__)",
    "own": "    return np.allclose(candidate([3], 8), sinusoidal_encoding([3], 8))",
    "own-hidden": "    mine = globals()['sinusoidal_' + 'encoding']\n"
    "    return np.allclose(candidate([3.5, 9e5], 10, base=3.0), mine([3.5, 9e5], 10, base=3.0))",
    "posencs": "    from posenc import sinusoidal_encoding as right\n"
    "    return np.allclose(candidate([3], 8), right([3], 8))",
    "huge-call": "    candidate(range(10**9), 10**6)\n    return True",
    "huge-width": "    candidate([1], 10**9)\n    return True",
    "many-calls": "    while True:\n        candidate([1], 8)",
    "lies-as-arguments": "    candidate(type('L', (), {'__array__': lambda s: 1 / 0})(), 8)\n"
    "    return True",
    "passes-itself": "    candidate(candidate, accepts)\n    return True",
    "raises": "    raise ValueError",
    "exits": "    __import__('os')._exit(0)",
    "keeps": "    kept.append(candidate)\n    return kept[0]([1], 8) is not None",
}.items():
    extra = "kept = []\n" if name == "keeps" else ""
    answers(
        f"test-{name}",
        f"A test of candidates that is none: {name}.",
        {"accepts": f"{extra}{A}{source}"},
        lost={"accepts": 0.0},
    )

# Harming others: the machine, the judge, the next submission.

for name, lines in {
    "fork-bomb": ["import os", "while True:", "    os.fork()"],
    "threads": [
        "import threading, time",
        "while True:",
        "    threading.Thread(target=time.sleep, args=[100]).start()",
    ],
    "memory": ["kept = []", "while True:", "    kept.append(b'x' * 10**8)"],
    "memory-shared": [
        "import mmap, os",
        "for _ in range(40):",
        "    if os.fork() == 0:",
        "        kept = bytearray(b'x') * 10**9",
        "        os._exit(0)",
        "while True:",
        "    pass",
    ],
    "disk": ["n = 0", "while True:", "    n += 1", "    open(f'x{n}', 'wb').write(b'x' * 10**7)"],
    "inodes": ["n = 0", "while True:", "    n += 1", "    open(f'y{n}', 'wb').close()"],
    "shared-memory": [
        "n = 0",
        "while True:",
        "    n += 1",
        "    open(f'/dev/shm/x{n}', 'wb').write(b'x' * 10**7)",
    ],
    "open-files": ["kept = []", "while True:", "    kept.append(open('/etc/ld.so.cache'))"],
    "signals": [
        "import os, signal",
        "for number in range(2, 400):",
        "    for what in (signal.SIGTERM, signal.SIGUSR1, signal.SIGKILL):",
        "        try:",
        "            os.kill(number, what) if number != os.getpid() else None",
        "        except OSError:",
        "            pass",
        "return np.zeros(d_model // 2)",
    ],
    "signals-all": ["import os", "os.kill(-1, 9)"],
    "signals-group": ["import os", "os.killpg(0, 9)"],
    "parent": ["import os", "os.kill(os.getppid(), 9)", "return np.zeros(d_model // 2)"],
    "parent-stopped": ["import os", "os.kill(os.getppid(), 19)", "return np.zeros(d_model // 2)"],
    "descriptors": ["import os", "os.closerange(0, 4096)", "return np.zeros(d_model // 2)"],
    "alarm-moved": [
        "import gc, mmap, struct, sys",
        "frame = sys._getframe()",
        "while frame:",
        "    alarm = getattr(frame.f_locals.get('self'), '_alarm', None)",
        "    if alarm:",
        "        alarm.set(10**9)",
        "    frame = frame.f_back",
        "sum(range(10**14))",
    ],
    "swallows": [
        "while True:",
        "    try:",
        "        while True:",
        "            pass",
        "    except BaseException:",
        "        continue",
    ],
    "daemon": [
        "import os, time",
        "if os.fork() == 0:",
        "    os.setsid()",
        "    if os.fork() == 0:",
        "        while True:",
        "            time.sleep(0.01)",
        "            for number in range(3, 64):",
        "                try:",
        "                    os.write(number, b'\\0' * 64)",
        "                except OSError:",
        "                    pass",
        "return np.zeros(d_model // 2)",
    ],
    "output": ["import os", "while True:", "    os.write(1, b'x' * 10**6)"],
    "unlinks": [
        "import shutil",
        "for place in ('/', '.', '/course', '/usr', '/student', '/tmp'):",
        "    shutil.rmtree(place, ignore_errors=True)",
        "return np.zeros(d_model // 2)",
    ],
    "mounts": [
        "import ctypes, os",
        "libc = ctypes.CDLL(None)",
        "libc.unshare(0x10000000 | 0x20000)",
        "libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)",
        "libc.ptrace(16, os.getppid(), 0, 0)",
        "libc.setuid(0)",
        "return np.zeros(d_model // 2)",
    ],
}.items():
    answers(
        f"harm-{name}",
        f"A function that harms others: {name}.",
        body(*lines, then=""),
        lost=NOTHING,
        quick=name == "parent",
    )

WRITE = (
    SEARCH
    + """import glob, itertools, sqlite3
places = [PLACES, "gradebook.db", "../gradebook.db", "../../gradebook.db", "../../../gradebook.db"]
places += glob.glob("/proc/*/fd/*")
for place in itertools.chain(places, found(lambda name: name == "gradebook.db")):
    try:
        with sqlite3.connect(f"file:{place}?mode=rw", uri=True, timeout=0.1) as database:
            database.execute("update grade set manual_score = 99, auto_score = 99")
    except Exception:
        pass
"""
)
for name, place in {"cell": '"x"', "by-path": repr(str(ROOT / "gradebook.db"))}.items():
    cells(
        f"gradebook-{name}",
        "A cell that gives everybody 99 points.",
        WRITE.replace("PLACES", place),
    )


@entry_("gradebook-link", "The same through a link in the folder that is handed in.")
def _(folder: Path) -> None:
    notebook = complete()
    notebook["cells"].append(code(WRITE.replace("PLACES", '"mine.db"')))
    (folder / "mine.db").symlink_to("../../../gradebook.db")
    save(folder, notebook)


@entry_("steal-by-link", "Reads another's notebook through a link that is handed in.", lost=NOTHING)
def _(folder: Path) -> None:
    notebook = complete()
    (folder / "other.txt").symlink_to(f"../../complete/{MOST}/{MOST}.ipynb")
    (folder / "solution.txt").symlink_to(ROOT / "solutions" / MOST / f"{MOST}.py")
    (folder / "others").symlink_to("../..")
    cell(notebook, "wavelengths")["source"] = (
        f"{HEAD}    from pathlib import Path\n    for path in Path('.').rglob('*'):\n"
        "        try:\n            if 'np.pi' in path.read_text():\n        "
        f"    {RIGHT}        except (OSError, UnicodeError):\n            pass\n{FAILED}"
    )
    save(folder, notebook)


@entry_("steal-hard-link", "Hands in a second name of another's file.", lost=NOTHING)
def _(folder: Path) -> None:
    notebook = complete()
    cell(notebook, "wavelengths")["source"] = f"{HEAD}{FAILED}"
    save(folder, notebook)
    os.link(folder / f"{MOST}.ipynb", folder / "again.txt")


# Claims in the file.


@edited("claim-result", "Says in its metadata that all is right.", lost=NOTHING)
def _(notebook: Notebook) -> None:
    tasks = [
        {
            "grade_id": "grade-wavelengths",
            "points": 3,
            "max_points": 3,
            "state": "right",
            "lines": [],
            "misconceptions": [],
        }
    ]
    notebook["metadata"]["posenc"] = {
        "state": "graded",
        "notes": [],
        "tasks": tasks,
        "seed": "",
        "version": "",
    }
    cell(notebook, "wavelengths")["source"] = f"{HEAD}{FAILED}"


@edited(
    "claim-points", "Gives its tests a thousand points, and adds one.", lost=NOTHING, quick=True
)
def _(notebook: Notebook) -> None:
    for one in notebook["cells"]:
        if one["metadata"].get("nbgrader", {}).get("grade"):
            one["metadata"]["nbgrader"]["points"] = 1000
    bonus = code("1000", "bonus")
    bonus["metadata"] = {
        "nbgrader": {
            "grade": True,
            "grade_id": "bonus",
            "locked": False,
            "points": 1000,
            "schema_version": 3,
            "solution": False,
            "task": False,
        }
    }
    notebook["cells"].append(bonus)
    cell(notebook, "wavelengths")["source"] = f"{HEAD}{FAILED}"


@edited("claim-test", "A test edited into its points.", lost=NOTHING)
def _(notebook: Notebook) -> None:
    for name in ("grade-wavelengths", "check-wavelengths"):
        cell(notebook, name)["source"] = "3"
    cell(notebook, "wavelengths")["source"] = f"{HEAD}{FAILED}"


@edited("claim-output", "Outputs of a test that say that it is right.", lost=NOTHING)
def _(notebook: Notebook) -> None:
    cell(notebook, "wavelengths")["source"] = f"{HEAD}{FAILED}"
    cell(notebook, "grade-wavelengths")["outputs"] = [
        {
            "output_type": "execute_result",
            "data": {"text/plain": "3"},
            "metadata": {},
            "execution_count": 1,
        }
    ]


@edited("claim-test-id", "An answer's cell with the id of a test.", lost=NOTHING)
def _(notebook: Notebook) -> None:
    cell(notebook, "wavelengths")["source"] = f"{HEAD}{FAILED}"
    test = copied_test(notebook)
    test["source"] = "3"
    notebook["cells"].insert(at(notebook, "grade-wavelengths"), test)


def copied_test(notebook: Notebook) -> dict:
    """Return a test's cell as if it were an answer."""
    test = code("3", "grade-wavelengths")
    part = dict(cell(notebook, "grade-wavelengths")["metadata"]["nbgrader"])
    test["metadata"] = {"nbgrader": part | {"locked": False, "solution": True}}
    return test


@edited("claim-setup", "The locked imports bring other checks.", lost=NOTHING)
def _(notebook: Notebook) -> None:
    cell(notebook, SETUP)["source"] += "\ncheck = grade = lambda *a, **k: 3\n"
    cell(notebook, "wavelengths")["source"] = f"{HEAD}{FAILED}"


# One leaves things behind for the next: judged in both orders.

LEAVE = """import builtins, os, sys
import numpy as np
PLACES = ["/tmp", "/student", "/dev/shm", ".", "/var/tmp", "/run", "/course"]
"""
cells(
    "leaves",
    "Leaves its answers wherever it can.",
    LEAVE + "for place in PLACES:\n    try:\n"
    "        open(f'{place}/loot.py', 'w').write('turn = 6.283185307179586')\n"
    "    except OSError:\n        pass\n"
    "builtins.loot = np.loot = 6.283185307179586\nos.environ['LOOT'] = '6.283185307179586'",
    quick=True,
)
theft(
    "leftovers",
    "Looks for what another left.",
    "import builtins, os, sys\nfor place in PLACES:\n    if os.path.exists(f'{place}/loot.py'):\n"
    "        return 6.283185307179586 / inverse_frequencies(d_model, base=base)\n"
    "turn = getattr(np, 'loot', 0) or getattr(builtins, 'loot', 0) or float(os.environ['LOOT'])\n"
    "return turn / inverse_frequencies(d_model, base=base)",
    first=LEAVE,
    quick=True,
)
cells(
    "breaks-numpy",
    "Breaks what it imports, before it ends Python.",
    "import os\nimport numpy\nnumpy.sin = numpy.cos = None\nos._exit(0)",
)

# Other assignments.

answers(
    "ledger-odd",
    "Verdicts that are all words at once, or change.",
    {
        "verdicts": "class Word(str):\n    def __eq__(self, other):\n        return True\n"
        "    __hash__ = str.__hash__\n    def strip(self):\n        return self\n"
        "    def lower(self):\n        return self\n"
        "def verdicts():\n    return dict.fromkeys('abcdef', Word('true imprecise false'))"
    },
    assignment="05-ledger",
    lost={"verdicts": 0.0},
)
answers(
    "ledger-frames",
    "Looks for the key.",
    {
        "verdicts": "import gc, sys\ndef verdicts():\n    for one in gc.get_objects():\n"
        "        if isinstance(one, dict) and set(one) == set('abcdef'):\n            return one\n"
        "    frame = sys._getframe()\n    while frame:\n        if 'key' in frame.f_locals:\n"
        "            return frame.f_locals['key']\n        frame = frame.f_back\n"
        "    return globals()['report'].key"
    },
    assignment="05-ledger",
    lost={"verdicts": 0.0},
)
answers(
    "attention-function",
    "Uses a function that it is given as a way out.",
    {
        "classify_symmetry": "def classify_symmetry(function, x, permutations):\n"
        "    name = getattr(function, '__name__', '')\n    return name if name else 'invariant'"
    },
    assignment="01-attention",
    lost={"classify_symmetry": 0.0},
)
answers(
    "rope-later",
    "Imports the reference of its own chapter under another name.",
    {
        "rope": "import posenc\nrope = posenc.rope",
        "rope_scores": "def rope_scores(q, k, m, n, *, base=1e4):\n    from posenc import rope\n"
        "    return rope(q, m, base=base) @ np.swapaxes(rope(k, n, base=base), -1, -2)",
    },
    assignment="04-learned-rope",
    lost={"rope": 0.0, "rope_scores": 0.0},
    quick=True,
)
answers(
    "start-file",
    "Reads the solution of the first assignment.",
    {
        "angles": "import pathlib\ndef angles(positions, frequencies):\n"
        f"    for up in ('.', '..', '../..', '../../..', {str(ROOT)!r}):\n"
        "        for path in pathlib.Path(up).glob('solutions/*/00-start.py'):\n"
        "            names = {'np': np}\n            exec(path.read_text(), names)\n"
        "            return names['angles'](positions, frequencies)\n    return 0"
    },
    assignment="00-start",
    lost={"angles": 0.0},
)
