"""Student code runs shut in: what it can read, take, leave behind, and break."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import gc
import inspect
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from nbformat.v4 import new_code_cell

import posenc
from posenc import exercises
from posenc.exercises import ASSIGNMENTS
from posenc.grading import _check, run
from posenc.grading._guard import CHAPTER_MODULES
from posenc.grading._limits import CallFault
from posenc.grading.isolation import sandbox as sandboxes
from posenc.grading.isolation.sandbox import Sandbox, can_isolate
from posenc.grading.isolation.session import Session

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")
shut_in = pytest.mark.skipif(not can_isolate(), reason="bubblewrap is not installed")
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs to be root"
)


def some(cases, *quick: str) -> list:
    """Return the parameters of a test; all but a few belong to the slow tests."""
    return [
        pytest.param(case, id=str(case), marks=[] if case in quick else pytest.mark.slow)
        for case in cases
    ]


RIGHT = """
import numpy as np

def rotation_matrix(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])
"""


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox("00-start") as ready:
        yield ready


@pytest.fixture(scope="module")
def plain():
    with Sandbox("00-start", isolated=False) as ready:
        yield ready


@pytest.fixture(scope="module", params=["shut in", "plain"])
def either(request):
    if request.param == "shut in" and not can_isolate():
        pytest.skip("bubblewrap is not installed")
    return request.getfixturevalue("sandbox" if request.param == "shut in" else "plain")


def printed(sandbox: Sandbox, *cells: str, seconds: float = 20.0) -> str:
    """Return what the last of some cells prints."""
    with Session(sandbox) as session:
        for cell in cells:
            ran = session.cell(textwrap.dedent(cell), seconds)
        assert not ran.ended, ran
        assert ran.error is None, ran
        return ran.printed


def report(session: Session, name: str = "rotation_matrix"):
    with session.serving() as names:
        return _check.check_in(names, name)


def passes(session: Session) -> bool:
    """Return whether the notebook still works: a right answer gets its points."""
    ran = session.cell(RIGHT, 20.0)
    return not ran.ended and report(session).passed


# What it can read.

WALK = """
import os
for folder, folders, names in os.walk("/", followlinks=False):
    if folder == "/":
        folders[:] = [name for name in folders if name not in ("proc", "sys", "course")]
    for name in folders + names:
        if name in ("posenc", "solutions", "submitted", "gradebook.db"):
            path = os.path.join(folder, name)
            # An empty folder stands for one that is hidden; a command is a line that imports.
            hidden = os.path.isdir(path) and not os.listdir(path)
            if not hidden and os.path.basename(folder) != "bin" and "/nbgrader/" not in folder:
                print(path)
"""
READ = """
import os, pathlib, sys
places = ["/course", "/etc", "/student", "/tmp", "/dev/shm"]
for place in places:
    for folder, folders, names in os.walk(place):
        # Python and its libraries may lie in there; they are looked for by their paths.
        python = (sys.prefix, sys.base_prefix)
        folders[:] = [name for name in folders if os.path.join(folder, name) not in python]
        for name in names:
            try:
                # What links lead to is looked for by its path.
                if not os.path.islink(os.path.join(folder, name)):
                    print(pathlib.Path(folder, name).read_text(errors="replace"), file=out)
            except OSError:
                pass
for process in os.listdir("/proc"):
    if process.isdigit():
        for name in ("environ", "cmdline"):
            try:
                print(pathlib.Path("/proc", process, name).read_text(errors="replace"), file=out)
            except OSError:
                pass
"""
ALL = "import io\nout = io.StringIO()\n" + READ + "everything = out.getvalue()"


def readable(assignment: str) -> str:
    with Sandbox(assignment) as sandbox, Session(sandbox) as session:
        assert session.cell(ALL, 30.0).error is None
        with session.serving() as names:
            return names["everything"]


def code_lines(source: str) -> set[str]:
    """Return the lines of code of a text's functions, without docstrings, long enough to know."""
    lines = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            for statement in body:
                lines |= {line.strip() for line in ast.unparse(statement).splitlines()}
    return {line for line in lines if len(line) >= 24}


def solution_lines(assignment: str) -> set[str]:
    text = (ROOT / "solutions" / assignment / f"{assignment}.py").read_text(encoding="utf-8")
    lines, inside = set(), False
    for line in text.splitlines():
        if "### BEGIN SOLUTION" in line or "### END SOLUTION" in line:
            inside = "BEGIN" in line
        elif inside and len(line.strip()) >= 24:
            lines.add(line.strip())
    return lines


@shut_in
@pytest.mark.parametrize("assignment", some(ASSIGNMENTS, "02-sinusoidal"))
def test_nothing_that_can_be_read_holds_an_answer(assignment, monkeypatch):
    monkeypatch.setenv("POSENC_SEED", "a-seed-that-nobody-knows")
    text = readable(assignment)
    assert "def inverse_frequencies" in text
    normal = text + ast.unparse(ast.parse("None"))
    chapter = ASSIGNMENTS[assignment].chapter
    answers, kept = set(), set()
    for exercise in exercises.EXERCISES.values():
        lines = code_lines(textwrap.dedent(inspect.getsource(exercise.reference)))
        later = ASSIGNMENTS[exercise.assignment].chapter >= chapter
        (answers if later else kept).update(lines)
        if later:
            for idea in exercise.misconceptions:
                answers |= code_lines(textwrap.dedent(inspect.getsource(idea.function)))
    for other, facts in ASSIGNMENTS.items():
        (answers if facts.chapter >= chapter else kept).update(solution_lines(other))
    # What functions of earlier chapters and open modules say anyway is no answer.
    for name in ("_validate.py", "plotting.py"):
        kept |= code_lines((Path(posenc.__file__).parent / name).read_text(encoding="utf-8"))
    # How an encoding is taken apart, which the earlier chapter's table does too.
    kept |= {
        "layout = validate.layout_name(layout)",
        "sines, cosines = pair_columns(encoding, layout)",
    }
    assert answers
    assert [line for line in sorted(answers - kept) if line in normal] == []
    for word in ("a-seed-that-nobody-knows", "POSENC_SEED", "Misconception(", "Criterion("):
        assert word not in text


@shut_in
def test_no_path_leads_to_the_course(sandbox):
    assert printed(sandbox, WALK, seconds=120.0) == ""
    for path in (ROOT / "solutions", ROOT / "posenc", ROOT / "tests", Path.home() / ".ssh"):
        assert printed(sandbox, f"import os; print(os.path.exists({str(path)!r}))") == "False\n"


@shut_in
@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "prefix"),
    [
        ("lib/python3.11/site-packages/posenc", "env"),
        ("lib/python3.11/dist-packages/posenc", "env"),
        ("course/solutions", "env"),
    ],
)
def test_what_is_installed_in_the_environment_is_hidden(tmp_path, monkeypatch, place, prefix):
    environment = tmp_path / prefix
    (environment / place).mkdir(parents=True)
    (environment / place / "secret.pyc").write_text("secret")
    (environment / "seen.txt").write_text("seen")
    if "solutions" in place:
        monkeypatch.chdir(environment / "course")
    tmp_path.chmod(0o755)
    for above in tmp_path.parents[:2]:
        above.chmod(0o755)
    # An environment in the folder of temporary files, as tests and build servers have.
    real = sandboxes._prefixes()
    monkeypatch.setattr(sandboxes, "_prefixes", lambda: real | {environment})
    with Sandbox("00-start") as sandbox:
        hidden = environment / place
        assert printed(sandbox, f"print(open({str(environment / 'seen.txt')!r}).read())")
        cell = f"import os; print(os.path.exists({str(hidden / 'secret.pyc')!r}))"
        assert printed(sandbox, cell) == "False\n"
        with Session(sandbox) as session:
            assert passes(session)


def test_a_course_that_is_also_the_environment_is_refused(tmp_path, monkeypatch):
    (tmp_path / "solutions").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sandboxes, "_prefixes", lambda: {tmp_path})
    with pytest.raises(RuntimeError, match="keep them apart"):
        sandboxes._shut_in({}, [])


@pytest.mark.parametrize("assignment", some(ASSIGNMENTS, "02-sinusoidal"))
def test_the_masked_package_works(assignment):
    chapter = ASSIGNMENTS[assignment].chapter
    known = [
        exercise.name
        for exercise in exercises.EXERCISES.values()
        if ASSIGNMENTS[exercise.assignment].chapter < chapter
        and exercise.reference.__module__.startswith("posenc.")
    ]
    with Sandbox(assignment) as sandbox, Session(sandbox) as session:
        modules = [name for names in CHAPTER_MODULES.values() for name in names]
        lines = [f"import posenc.{name}" for name in [*modules, "plotting", "_validate"]]
        lines += ["import posenc", "from posenc import *"]
        ran = session.cell("\n".join(lines), 20.0)
        assert ran.error is None, ran
        assert not ran.printed
        with session.serving() as names:
            for name in known:
                case = next(iter(exercises.get(name).criteria)).visible()[0]
                if any(map(callable, (*case.args, *case.kwargs.values()))):
                    continue
                got = getattr(names["posenc"], name, None) or names[name]
                expected = exercises.get(name).reference(*case.args, **case.kwargs)
                if isinstance(expected, np.ndarray):
                    np.testing.assert_allclose(got(*case.args, **case.kwargs), expected)
        asked = exercises.for_assignment(assignment)
        mine = [e for e in asked if getattr(posenc, e.name, None) and hasattr(e, "reference")]
        for exercise in mine[:2]:
            for swallowed in (False, True):
                call = f"posenc.{exercise.name}(*args, **options)"
                body = f"try:\n        return {call}\n    except BaseException:\n        return 0.0"
                body = body if swallowed else f"return {call}"
                session.cell(f"def {exercise.name}(*args, **options):\n    {body}", 20.0)
                found = report(session, exercise.name)
                assert found.state == "calls the reference", found
                assert found.points == 0


# What it can take.


@shut_in
def test_there_is_no_network(sandbox):
    cell = """
    import socket
    for family, address in ((socket.AF_INET, ("127.0.0.1", 22)), (socket.AF_INET, ("1.1.1.1", 53))):
        try:
            socket.create_connection(address, timeout=2)
            print("connected")
        except OSError as error:
            print("no")
    print(len(open("/proc/net/dev").readlines()) - 2)
    """
    assert printed(sandbox, cell) == "no\nno\n1\n"


@shut_in
def test_only_a_folder_of_its_own_can_be_written(sandbox):
    cell = """
    import os
    writable = set()
    for folder, folders, names in os.walk("/"):
        if folder == "/":
            folders.remove("proc")
        for path in [folder] + [os.path.join(folder, name) for name in names]:
            if not os.path.islink(path) and os.access(path, os.W_OK):
                writable.add(path)
    devices = {"null", "zero", "full", "random", "urandom", "tty"}
    print(sorted(writable - {f"/dev/{name}" for name in devices}))
    for path in ("/x", "/dev/x", "/usr/x", "/course/x", "/dev/pts/x", "/etc/x"):
        try:
            open(path, "w")
            print(path)
        except OSError:
            pass
    """
    # Where Python lies under /tmp, that stays as it is.
    places = printed(sandbox, cell, seconds=120.0).replace(", '/tmp'", "")
    assert places == "['/dev/shm', '/student']\n"


@shut_in
@as_root
def test_it_is_another_user_without_rights(sandbox):
    cell = """
    import os
    status = dict(line.split(":\\t") for line in open("/proc/self/status") if ":\\t" in line)
    print(os.getuid() >= 200_000, os.getgid(), os.getgroups())
    print({status[f"Cap{kind}"].strip() for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")})
    import ctypes
    libc = ctypes.CDLL(None)
    # New namespaces, a new root, becoming root again.
    print(libc.unshare(0x10000000), libc.unshare(0x00020000), libc.chroot(b"/tmp"), libc.setuid(0))
    """
    lines = printed(sandbox, cell).splitlines()
    assert lines[0].startswith("True")
    assert lines[1:] == ["{'0000000000000000'}", "-1 -1 -1 -1"]


BOMBS = {
    "until it fails": "while True:\n    os.fork()",
    "for ever": "while True:\n    try:\n        os.fork()\n    except OSError:\n        pass",
    "left behind": "for _ in range(60):\n    if not os.fork():\n        time.sleep(1000)",
}


@as_root
@shut_in
@pytest.mark.parametrize("bomb", some(BOMBS, "left behind"))
def test_a_fork_bomb_ends_in_time(sandbox, bomb):
    bomb = BOMBS[bomb]
    started = time.monotonic()
    with Session(sandbox) as session:
        session.cell(RIGHT, 20.0)
        session.cell("import os, time\n" + bomb, 2.0)
        assert report(session).passed
        lines = textwrap.indent(bomb, "    ")
        session.cell(f"import os, time\ndef rotation_matrix(angle):\n{lines}", 5.0)
        assert not report(session).passed
        assert passes(session)
    with Session(sandbox) as session:
        assert passes(session)
    assert time.monotonic() - started < 60


HOGS = {
    "memory": "data = []\nwhile True:\n    data.append(bytearray(1 << 26))",
    "memory by and by": "data = []\nwhile True:\n    data.append(bytearray(1 << 18))",
    "memory in silence": "data = []\ntry:\n    while True:\n"
    "        data.append(bytearray(1 << 18))\nexcept MemoryError:\n    pass",
    "disk": "for n in range(10_000):\n    open(f'f{n}', 'wb').write(bytes(1 << 24))",
    "one file": "f = open('f', 'wb')\nwhile True:\n    f.write(bytes(1 << 20))",
    "file names": "for n in range(1_000_000):\n    open(f'f{n}', 'wb').close()",
    "open files": "kept = [open('/dev/null') for _ in range(1_000_000)]",
    "shared memory": "for n in range(1000):\n    open(f'/dev/shm/{n}', 'wb').write(bytes(1 << 22))",
    "output": "while True:\n    print('x' * 100_000)",
    "errors": "import sys\nwhile True:\n    sys.stderr.write('x' * 100_000)",
    "files 1 and 2": "import os\nwhile True:\n    os.write(1, bytes(1 << 16)); os.write(2, bytes(1 << 16))",  # noqa: E501
    "displays": "from IPython.display import display\nwhile True:\n    display('x' * 10_000)",
    "figures": "import matplotlib.pyplot as plt\nfor n in range(30):\n    plt.figure(); plt.plot([n])",  # noqa: E501
    "a huge figure": "import matplotlib.pyplot as plt\nplt.figure(figsize=(3e4, 3e4)); plt.plot([1])",  # noqa: E501
    "threads": "import threading, time\nfor n in range(10_000):\n"
    "    threading.Thread(target=time.sleep, args=(1000,)).start()",
}


@pytest.mark.parametrize("hog", some(HOGS, "memory by and by", "disk", "threads", "output"))
def test_what_a_cell_takes_is_bounded(sandbox, hog):
    with Session(sandbox) as session:
        started = time.monotonic()
        ran = session.cell(HOGS[hog], 3.0)
        assert time.monotonic() - started < 15
        assert len(ran.printed) < 70_000
        assert len(ran.figures) <= 8
        assert sum(map(len, ran.figures)) + sum(len(str(part)) for part in ran.shown) < 30 << 20
        assert passes(session)


MANY = """
import os, time
held = bytearray(os.urandom(1 << 20)) * 100
children = []
for _ in range(12):
    child = os.fork()
    if child == 0:
        own = bytearray(os.urandom(1 << 20)) * {megabytes}
        time.sleep(3)
        os._exit(0)
    children.append(child)
print(sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


@shut_in
def test_the_memory_of_all_processes_together_is_bounded(monkeypatch):
    monkeypatch.setattr(sandboxes, "MEMORY", 700 << 20)
    with Sandbox("03-rotation") as sandbox, Session(sandbox) as session:
        # What they share counts once: twelve that look like 1.9 GB take 0.8 GB less.
        assert session.cell(MANY.format(megabytes=10), 20.0).printed == f"{[0] * 12}\n"
        ended = ast.literal_eval(session.cell(MANY.format(megabytes=100), 20.0).printed)
        assert set(ended) == {0, -9}
        assert 4 <= ended.count(-9) <= 10
        assert passes(session)


UNCOUNTED = """
import ctypes, os, platform
made = []
try:
    made.append(os.memfd_create("kept"))
except OSError as error:
    print(error.strerror)
libc = ctypes.CDLL(None, use_errno=True)
print(libc.shmget(0, 1 << 20, 0o1600), libc.msgget(0, 0o1600), made)
if platform.machine() == "x86_64":
    print(libc.syscall(0x40000000 + 319, b"kept", 0), os.strerror(ctypes.get_errno()))
"""


@shut_in
def test_memory_that_belongs_to_no_process_is_not_given(sandbox):
    with Session(sandbox) as session:
        printed = session.cell(UNCOUNTED, 20.0).printed.splitlines()
        assert printed[:2] == ["Function not implemented", "-1 -1 []"]
        assert printed[2:] in ([], ["-1 Function not implemented"])


RETURNS = {
    "100 MB": "np.zeros(13_000_000)",
    "too many bytes": "np.zeros(60_000_000)",
    "a million numbers": "list(range(1_000_000))",
    "deep": "deep(100_000)",
    "itself": "loop",
    "a long number": "10 ** 10_000",
    "a set that collides": "{n * (2**61 - 1) for n in range(1, 20_000)}",
    "a broadcast array": "np.broadcast_to(1.0, (10**5, 10**4))",
}
MADE = """
import numpy as np
def deep(n):
    value = []
    for _ in range(n):
        value = [value]
    return value
loop = []
loop.append(loop)
"""


@pytest.mark.parametrize("returned", some(RETURNS, "deep", "itself"))
def test_what_a_function_returns_is_bounded(sandbox, returned):
    with Session(sandbox) as session:
        session.cell(f"{MADE}\ndef rotation_matrix(angle):\n    return {RETURNS[returned]}", 20.0)
        started = time.monotonic()
        assert report(session).points == 0
        assert time.monotonic() - started < 45
        assert passes(session)


# What it leaves behind.

TRACES = {
    "files": (
        "import os\nfor place in ('/student', '/tmp', '/dev/shm', os.getcwd(), os.path.expanduser('~')):\n"  # noqa: E501
        "    open(os.path.join(place, 'left'), 'w').write('x')",
        "import os\nprint([p for p in ('/student', '/tmp', '/dev/shm', os.getcwd()) "
        "if os.path.exists(os.path.join(p, 'left'))])",
        "[]",
    ),
    "the environment": (
        "import os; os.environ['LEFT'] = 'x'",
        "import os; print(os.environ.get('LEFT'))",
        "None",
    ),
    "patches": (
        "import numpy, builtins, IPython, posenc, matplotlib.pyplot as p, json, sys\n"
        "from posenc.grading.isolation import inside, wire\n"
        "for m in (numpy, IPython, posenc, p, json, inside, wire): m.left = 1; sys.path.append('left')\n"  # noqa: E501
        "builtins.left = 1; numpy.cos = builtins.len = wire.encode = None",
        "import numpy, builtins, IPython, posenc, matplotlib.pyplot as p, json, sys\n"
        "from posenc.grading.isolation import inside, wire\n"
        "print([m for m in (numpy, builtins, IPython, posenc, p, json, inside, wire) if hasattr(m, 'left')], "  # noqa: E501
        "numpy.cos(0), 'left' in sys.path)",
        "[] 1.0 False",
    ),
    "names": ("left = 1", "print('left' in globals())", "False"),
    "processes": (
        "import os, time, signal\n"
        "if not os.fork():\n    os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    os.execv('/usr/bin/sleep', ['left-behind', '1000'])",
        "import glob\nprint([p for p in glob.glob('/proc/[0-9]*/cmdline') if 'left' in open(p).read()])",  # noqa: E501
        "[]",
    ),
    "abstract sockets": (
        "import socket; s = socket.socket(socket.AF_UNIX); s.bind('\\0left'); s.listen()",
        "import socket\ntry:\n    socket.socket(socket.AF_UNIX).connect('\\0left'); print('yes')\n"
        "except OSError:\n    print('no')",
        "no",
    ),
    "queues and segments": (
        "import ctypes; c = ctypes.CDLL(None); print(c.shmget(77, 4096, 0o1666), c.msgget(77, 0o1666))",  # noqa: E501
        "import ctypes; c = ctypes.CDLL(None); print(c.shmget(77, 4096, 0), c.msgget(77, 0))",
        "-1 -1",
    ),
    "keys of the kernel": (
        "import ctypes\nc = ctypes.CDLL(None)\n"
        "for ring in (-3, -4, -5): c.syscall(248, b'user', b'left', b'x', 1, ring)",
        "print('left' in open('/proc/keys').read())",
        "False",
    ),
    "terminals": (
        "import os\ntry:\n    os.openpty()\nexcept OSError:\n    pass",
        "import os; print(os.listdir('/dev/pts'))",
        "[]",
    ),
}


ANYBODY = """
import contextlib, os, sys
os.setgroups([])
os.setresgid(4321, 4321, 4321)
os.setresuid(4321, 4321, 4321)
from posenc.grading import _check
from posenc.grading.isolation.sandbox import Sandbox
from posenc.grading.isolation.session import Session
for rich in (False, True):
    with Sandbox("00-start", isolated=True) as sandbox:
        process = sandbox._process.pid
        for _ in range(3):
            with contextlib.closing(sandbox.shared()) as one, Session(one, rich=rich) as session:
                session.cell(sys.argv[1], 20.0)
                with session.serving() as names:
                    assert _check.check_in(names, "rotation_matrix").passed
        assert sandbox._process.pid == process and sandbox._process.poll() is None
print("graded as", os.geteuid())
"""


@as_root
@shut_in
def test_somebody_who_is_not_root_can_grade():
    # What lies in root's own folders can't be read by others, so it is bound above these.
    folders = {Path(sys.base_prefix), Path(sys.prefix), ROOT}
    closed = {
        above
        for folder in folders
        for above in folder.parents
        if above.is_dir() and not above.stat().st_mode & 0o001
    }
    words = ["bwrap", "--dev-bind", "/", "/", "--cap-add", "ALL"]
    for above in sorted(closed):
        words += ["--tmpfs", str(above)]
    for folder in sorted(folders):
        if any(folder.is_relative_to(above) for above in closed):
            for above in reversed(folder.parents[:-1]):
                words += ["--perms", "0755", "--dir", str(above)]
            words += ["--ro-bind", str(folder), str(folder)]
    ended = subprocess.run(
        [*words, sys.executable, "-c", ANYBODY, RIGHT],
        cwd="/",
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": "/tmp"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout == "graded as 4321\n", ended.stderr


STARTS = """
import glob, os

def start():
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.execv("/usr/bin/sleep", ["left-behind", "1000"])
    os.wait()
    return count()

def count():
    lines = [open(path).read() for path in glob.glob("/proc/[0-9]*/cmdline")]
    return sum("left-behind" in line for line in lines)
"""


@shut_in
def test_what_a_call_leaves_running_ends_with_its_task(sandbox):
    with Session(sandbox, rich=False) as session:
        session.cell(STARTS, 20.0)
        with session.serving() as names:
            while names["count"]() == 0:
                names["start"]()
        with session.serving() as names:
            assert names["count"]() == 0
        with session.serving() as names:
            names["start"]()
        assert session.cell("print(count())", 20.0).printed == "0\n"


@shut_in
@pytest.mark.parametrize("trace", some(TRACES, "files", "patches", "processes"))
def test_nothing_of_one_submission_reaches_another(sandbox, trace):
    leave, look, clean = TRACES[trace]
    # Side by side.
    with Session(sandbox) as one, Session(sandbox) as other:
        one.cell(leave, 20.0)
        assert other.cell(look, 20.0).printed.strip() == clean
        assert passes(other)
    # One after the other.
    with Session(sandbox) as session:
        session.cell(leave, 20.0)
    with Session(sandbox) as session:
        assert session.cell(look, 20.0).printed.strip() == clean
        assert passes(session)


@pytest.mark.parametrize("rich", [False, True])
def test_copies_that_are_asked_for_together_are_apart(rich):
    with Sandbox("00-start") as sandbox, contextlib.ExitStack() as open_ones:
        numbers = range(4)
        sessions = [open_ones.enter_context(Session(sandbox.shared(), rich=rich)) for _ in numbers]
        for number, session in zip(numbers, sessions, strict=True):
            assert session.cell(f"mine = {number} + 0", 60.0) is not None
        said = [session.cell("print(mine)", 60.0).printed.strip() for session in sessions]
        assert said == ["0", "1", "2", "3"]


LOADED = """
def loaded():
    import sys

    return [name in sys.modules for name in ("IPython", "matplotlib")]
"""


@pytest.mark.parametrize("rich", [False, True])
def test_ipython_is_there_where_a_cell_needs_it(either, rich):
    with Session(either, rich=rich) as session:
        session.cell(LOADED, 20.0)
        with session.serving() as names:
            assert names["loaded"]() == [rich, rich]
        drawn = session.cell("import matplotlib.pyplot as plt\nplt.plot([1, 2]);\nprint(3)", 60.0)
        assert (drawn.printed, len(drawn.figures), drawn.error) == ("3\n", 1, None)
        assert session.cell("loaded()", 20.0).shown == [{"text/plain": "[True, True]"}]
        assert passes(session)


@pytest.mark.parametrize(
    ("source", "rich"),
    [
        ("import numpy as np\n\ndef f(x, *, base=2.0):\n    return np.sin(x) * base", False),
        ("g = f\ntext = 'words'", False),
        ("print(1)", False),
        ("for _ in range(3):\n    print(1)  # one; two\n1 / 0", False),
        ("@cache\ndef f(x=list()):\n    pass", False),
        ("%matplotlib inline", True),
        ("def f():\n    import matplotlib.pyplot as plt\n    plt.plot([1])", True),
        ("def f(x):\n    display(x)", True),
        ("f(1);", True),
        ("f(1);  # said", True),
        ("f(1)\n# nothing; really", True),
        ("print(_)", True),
        ("_12 + 1", True),
        ("await f()", True),
        ("[x async for x in y]", True),
        ("  indented = 1", True),
        ("!ls", True),
        ("f?", True),
        ("is no Python", True),
    ],
)
def test_a_notebook_that_is_only_python_needs_no_ipython(source, rich):
    assert run._is_rich([new_code_cell(source)]) is rich


AS_IPYTHON = (
    "1 + 1",
    "'a text\\n' * 2",
    "None",
    "x = 3",
    "x = 3\nx",
    "1.5, 2, 'three', None",
    "[0.1] * 3",
    "list(range(200))",
    "{'b': 1, 'a': [1, 2]}",
    "{3, 1, 2}",
    "set()",
    "2 ** 100, True, 1j",
    "np.arange(3)",
    "np.arange(30.0).reshape(5, 6)",
    "np.zeros((200, 200))",
    "np.float64(0.1)",
    "np.float32(0.1)",
    "np.arange(3)[0]",
    "[np.arange(3), np.eye(2)]",
    "np.array(['a', 'b'])",
    "np.array([{}, 1], dtype=object)",
    "range(3)",
    "len",
    "type(1)",
    "object",
    "ValueError('why')",
    "(lambda: 0).__name__",
    "print(1)",
    "print(1)\nprint(2, end='')\n3",
    "import sys\nprint('out'); print('err', file=sys.stderr)\nx = 0",
    "1 / 0",
    "\n\nif True:\n    raise ValueError('why\\nand where')",
    "def f():\n    return g()\ndef g():\n    return [][1]\n\nf()",
    "raise SystemExit(3)",
    "raise KeyboardInterrupt",
    "return 1",
    "yield",
    "x: no_such_name = 1",
    "def f(a: no_such_name):\n    return a",
    "def f():\n    def g(a: no_such_name):\n        return a\nf()",
    "import warnings\nwarnings.warn('careful')\nx = 1",
    "class A:\n    def __repr__(self):\n        return 'shown'\n\nA()",
    "class B:\n    def __repr__(self):\n        raise ValueError('no')\n\nB()",
    "class C(int):\n    def __repr__(self):\n        return 'an int'\n\nC(3)",
    "class D(np.ndarray):\n    def __repr__(self):\n        return 'mine'\n\nnp.zeros(2).view(D)",
    "__name__",
    "globals()['x'] = 5",
    "'a docstring'",
    "import no_such_module",
    "from math import pi\nround(pi, 3)",
    "i = [n for n in range(3)]\ni",
    "assert x == 4, 'x is not 4'",
    "",
    "# only a remark",
    "input('how?')",
)


def test_cells_that_are_only_python_show_what_ipython_shows(sandbox):
    assert not run._is_rich(list(map(new_code_cell, AS_IPYTHON)))
    setup = "import numpy as np\nx = 1"
    with Session(sandbox, rich=True) as full, Session(sandbox, rich=False) as light:
        for source in (setup, *AS_IPYTHON):
            shown = [dataclasses.replace(s.cell(source, 20.0), seconds=0) for s in (full, light)]
            said = [re.sub(r"\S+:\d+: UserWarning", "UserWarning", ran.printed) for ran in shown]
            shown = [
                dataclasses.replace(ran, printed=text.partition("\n  warnings.warn")[0].strip())
                for ran, text in zip(shown, said, strict=True)
            ]
            assert shown[0] == shown[1], source
        assert passes(full)
        assert passes(light)


@pytest.mark.parametrize("rich", [True, False])
def test_an_error_points_to_a_line_of_the_cell(sandbox, rich):
    with Session(sandbox, rich=rich) as session:
        assert session.cell("x = 1\ninput('how many?')", 20.0).error[2] == "2"
        assert session.cell("def f():\n    x = 1\n    1 / 0\n\nf()", 20.0).error[2] == "3"


def test_what_is_printed_takes_no_memory(sandbox):
    with Session(sandbox) as session:
        ran = session.cell("for _ in range(30_000):\n    print('x' * 100_000)", 30.0)
        assert ran.error is None
        memory = "print(open('/proc/self/statm').read().split()[1])"
        assert int(session.cell(memory, 20.0).printed) * 4096 < 300 << 20


ATTACKS = {
    "signals to everyone": "import os, signal; os.kill(-1, signal.SIGKILL)",
    "signals to parents": "import os, signal\nfor p in range(1, 50):\n"
    "    try:\n        os.kill(p, signal.SIGKILL)\n    except OSError:\n        pass",
    "stopping parents": "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)",
    "the group": "import os, signal; os.killpg(0, signal.SIGKILL)",
    "closing files": "import os\nos.closerange(0, 256)",
    "writing to files": "import os\nfor f in range(3, 64):\n    try:\n        os.write(f, b'x' * 100)\n"  # noqa: E501
    "    except OSError:\n        pass",
    "reading from files": "import os\nfor f in range(3, 64):\n    try:\n"
    "        os.set_blocking(f, False); os.read(f, 100)\n    except OSError:\n        pass",
    "tracing parents": "import ctypes, os\nc = ctypes.CDLL(None)\nprint(c.ptrace(16, 1, 0, 0), "
    "c.ptrace(16, os.getppid(), 0, 0))\n",
}


@shut_in
@pytest.mark.parametrize("attack", some(ATTACKS, "signals to everyone", "closing files"))
@pytest.mark.parametrize("where", ["cell", "function"])
def test_an_attack_costs_its_own_task_only(sandbox, attack, where):
    source = ATTACKS[attack]
    if where == "function":
        source = "def rotation_matrix(angle):\n" + textwrap.indent(source, "    ")
    started = time.monotonic()
    with Session(sandbox) as session:
        session.cell("earlier = 1", 20.0)
        session.cell(source, 3.0)
        if where == "function":
            # Whoever runs the graded cell counts a fault as no points.
            with contextlib.suppress(CallFault):
                assert report(session).points == 0
        ran = session.cell("print(earlier)", 20.0)
        assert ran.printed == "1\n", ran
        assert passes(session)
    with Session(sandbox) as session:
        assert passes(session)
    assert time.monotonic() - started < 60


@shut_in
def test_the_keeper_cannot_be_looked_into(sandbox):
    cell = """
    import ctypes, os
    libc = ctypes.CDLL(None)
    print(libc.ptrace(16, 1, 0, 0))
    for name in ("environ", "mem", "fd", "maps"):
        try:
            os.listdir("/proc/1/fd") if name == "fd" else open(f"/proc/1/{name}", "rb").read(1)
            print("read", name)
        except OSError:
            print("no")
    """
    assert printed(sandbox, cell) == "-1\nno\nno\nno\nno\n"


FORGED = """
import os, json, struct, gc, socket, sys
from posenc.grading.isolation import inside
server = next(o for o in gc.get_objects() if isinstance(o, inside._Server))
def send(header, data=b"", size=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    server._talk.socket.settimeout(5)
    server._talk.socket.sendall(struct.pack("<II", len(text) if size is None else size, len(data)) + text + data)
"""  # noqa: E501
MESSAGES = {
    "no json": "send(b'x' * 50)",
    "a list": "send([])",
    "deep": "send(b'[' * 100_000)",
    "deep values": "send(b'{\"arrays\": [], \"values\": 0, \"form\": ' + b'[' * 900 + b']' * 900 + b'}')",  # noqa: E501
    "no form": "send({'arrays': []})",
    "no value": "send({'arrays': [], 'form': {'array': ['<f8', [2, 2]]}, 'values': 0})",
    "an object dtype": "send({'arrays': [8], 'form': {'array': ['|O8', [1]]}, 'values': 1}, bytes(8))",  # noqa: E501
    "a negative shape": "send({'arrays': [8], 'form': {'array': ['<f8', [-5]]}, 'values': 1}, bytes(8))",  # noqa: E501
    "sizes that do not fit": "send({'arrays': [10**9], 'form': None, 'values': 1})",
    "an unknown kind": "send({'arrays': [], 'form': {'pickle': 'x'}, 'values': 0})",
    "an unknown fault": "send({'arrays': [], 'fault': ['grader', 'x'], 'kinds': 7})",
    "a fault of no shape": "send({'arrays': [], 'fault': 7})",
    "an exception of no shape": "send({'arrays': [], 'raised': {'a': 1}})",
    "a function that is not there": "send({'arrays': [], 'call': 99, 'form': [[], {'dict': []}]})",
    "a call of no shape": "send({'arrays': [], 'call': 0})",
    "half a message": "send(b'{', size=1 << 20)",
    "a gigabyte": "send(b'{', size=1 << 30)",
    "numbers that collide": "send({'arrays': [], 'values': 0, 'form': {'set': [n * (2**61 - 1) for n in range(1, 300_000)]}})",  # noqa: E501
    "a long answer": "send({'arrays': [], 'values': 0, 'form': [[] for _ in range(2_000_000)]})",
    "ended": "send({'arrays': [], 'died': {'x': 1}})",
}


@pytest.mark.parametrize("message", some(MESSAGES, "deep values", "an object dtype", "a gigabyte"))
def test_forged_messages_earn_nothing_and_break_nothing(sandbox, message):
    body = textwrap.indent(FORGED + MESSAGES[message] + "\nserver._talk.receive()", "    ")
    with Session(sandbox) as session:
        session.cell(f"def rotation_matrix(angle):\n{body}", 20.0)
        started = time.monotonic()
        found = report(session)
        assert found.points == 0
        assert all(len(line) < 1000 for line in found.lines)
        assert time.monotonic() - started < 40
        assert passes(session)


# Faults that stay local.

FAULTS = {
    "endless": "while True:\n    pass",
    "endless, deaf": "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    "signal.signal(signal.SIGALRM, signal.SIG_IGN)\n"
    "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "endless in C": "np.linalg.svd(np.ones((5000, 5000)))",
    "a crash": "import ctypes; ctypes.string_at(0)",
    "os._exit": "import os; os._exit(0)",
    "sys.exit": "import sys; sys.exit(0)",
    "quit": "quit()",
    "MemoryError": "x = np.ones(10**12)",
    "RecursionError": "f = lambda: f()\nf()",
    "abort": "import os; os.abort()",
    "a thread that exits": "import threading, os\nt = threading.Thread(target=os._exit, args=(3,)); t.start(); t.join()",  # noqa: E501
    "on deletion": "import os\nclass A:\n    def __del__(self): os._exit(0)\na = A(); del a",
}


@pytest.mark.parametrize("fault", some(FAULTS, "a crash", "os._exit"))
@pytest.mark.parametrize("where", ["cell", "function"])
def test_a_fault_stays_local(either, fault, where):
    source = FAULTS[fault]
    started = time.monotonic()
    with Session(either) as session:
        session.cell("import numpy as np\nearlier = 1", 20.0)
        if where == "cell":
            ran = session.cell(source, 1.0)
            assert ran.error or ran.ended, ran
            assert time.monotonic() - started < 12
        else:
            session.cell("def rotation_matrix(angle):\n" + textwrap.indent(source, "    "), 20.0)
            found = report(session)
            assert found.points == 0
            assert found.state in ("crash", "too slow", "out of memory"), found
        assert session.cell("print(earlier)", 20.0).printed == "1\n"
        assert passes(session)
    assert time.monotonic() - started < 60


def test_a_fault_on_some_calls_costs_what_it_breaks(either):
    source = RIGHT.replace(
        "c, s =", "if np.ndim(angle) == 0 and angle < 0: import os; os._exit(1)\n    c, s ="
    )
    with Session(either) as session:
        session.cell(source, 20.0)
        found = report(session)
        assert found.state == "crash"
        assert passes(session)


# Starting and ending.


def processes() -> set[str]:
    """Return all processes, zombies too."""
    return {path.name for path in Path("/proc").glob("[0-9]*")}


def descendants(process: int) -> set[int]:
    found = {process}
    while True:
        more = set(found)
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) in found:
                more.add(int(path.parent.name))
        if more == found:
            return found
        found = more


def left_folders() -> set[Path]:
    import tempfile

    return set(Path(tempfile.gettempdir()).glob("posenc-*"))


JUDGE = """
import sys, time, signal
from posenc.grading.isolation.sandbox import Sandbox
from posenc.grading.isolation.session import Session
sandbox = Sandbox("00-start", isolated=sys.argv[1] == "True")
session = Session(sandbox)
session.cell("import subprocess; p = subprocess.Popen(['sleep', '1000'], start_new_session=True)", 20)
if sys.argv[2] == "busy":
    print("ready", flush=True)
    session.cell("while True: pass", 1000)
print("ready", flush=True)
time.sleep(1000)
"""  # noqa: E501


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    "ending", some([signal.SIGKILL, signal.SIGINT, signal.SIGTERM], signal.SIGKILL)
)
@pytest.mark.parametrize("isolated", [pytest.param(True, marks=shut_in), False])
@pytest.mark.parametrize("state", some(["idle", "busy"], "busy"))
def test_nothing_is_left_however_the_judge_ends(ending, isolated, state):
    before = left_folders()
    words = [sys.executable, "-c", JUDGE, str(isolated), state]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    judge = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    assert judge.stdout.readline() == b"ready\n"
    time.sleep(0.5)
    theirs = descendants(judge.pid)
    assert len(theirs) > 3
    judge.send_signal(ending)
    judge.wait(timeout=20)
    judge.stdout.close()
    until = time.monotonic() + 15
    while time.monotonic() < until:
        left = {p for p in theirs if Path(f"/proc/{p}").exists()} - {judge.pid}
        if not left and left_folders() <= before:
            break
        time.sleep(0.1)
    assert left == set()
    assert left_folders() <= before


def open_files() -> int:
    # What earlier tests left to be collected may hold files.
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


def test_closing_leaves_nothing(either):
    before, files = left_folders(), open_files()
    kind = either.isolated
    with Sandbox("00-start", isolated=kind) as sandbox:
        for _ in range(3):
            with Session(sandbox, {"data/file.txt": b"text"}) as session:
                assert session.cell("print(open('data/file.txt').read())", 5).printed == "text\n"
                assert passes(session)
    assert left_folders() <= before
    assert open_files() == files


@pytest.mark.slow
def test_a_ready_process_that_ended_is_started_again(either):
    with Sandbox("00-start", isolated=either.isolated) as sandbox:
        sandbox._process.kill()
        sandbox._process.wait()
        with Session(sandbox) as session:
            assert passes(session)


def test_where_namespaces_are_forbidden_one_sentence_says_so(tmp_path, monkeypatch):
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(RuntimeError, match="can't shut student code in") as caught:
        Sandbox("00-start").wait()
    assert "\n" not in str(caught.value)


@shut_in
def test_where_no_submission_can_be_shut_in_one_sentence_says_why(tmp_path, monkeypatch):
    fake = tmp_path / "bwrap"
    fake.write_text(
        "#!/bin/sh\n"
        'for word; do [ "$word" = --dev ] && word=--tmpfs; set -- "$@" "$word"; shift; done\n'
        f'exec {sandboxes.shutil.which("bwrap")} "$@"\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(RuntimeError, match=r"can be shut in by itself: .*'/dev/shm'") as caught:
        Sandbox("00-start").wait()
    assert "\n" not in str(caught.value)


def test_without_bubblewrap_a_plain_process_is_used(monkeypatch):
    monkeypatch.setattr(sandboxes.shutil, "which", lambda name: None)
    with Sandbox("00-start") as sandbox, Session(sandbox) as session:
        assert not sandbox.isolated
        assert passes(session)
    assert "read your files" in sandboxes.WEAKER


# What an instructor's own cells see.

CLASSES = """
class Point:
    def __init__(self, x, y=0): self.x, self.y = x, y
    def moved(self, by): return Point(self.x + by, self.y)
    def __add__(self, other): return Point(self.x + other.x)
    def __lt__(self, other): return self.x < other.x
    def __eq__(self, other): return True
    def __len__(self): return 3
    def __iter__(self): return iter([1, 2, 3])
    def __getitem__(self, key): return key * 2
    def __contains__(self, item): return item == 7
    __hash__ = None
class Liar:
    def __eq__(self, other): return True
    def __array__(self, *_, **__): raise RuntimeError
    def __bool__(self): return True
def squares(n):
    if n < 1: raise ValueError("n must be 1 or more")
    return [k * k for k in range(1, n + 1)]
def sum_of_squares(n): return sum(squares(n))
def apply(f, *values): return [f(v) for v in values]
def twice(f): return lambda v: f(f(v))
def lie(): return Liar()
def change(values): values.append(1); values[0] = 9
def table(): return {"a": [1, (2.5, None)], (1, 2): {3}}
def raises(): raise np.linalg.LinAlgError("singular")
class Odd(ValueError): pass
def odd(): raise Odd("odd")
all = abs = lambda *_: True
data = [1, 2]
import numpy as np
"""
INSTRUCTOR = {
    "objects": "p = Point(1)\nassert p.x == 1 and p.moved(2).x == 3\nassert isinstance(p, Point)\n"
    "assert (p + p).x == 2 and p < Point(5)\nassert len(p) == 3 and list(p) == [1, 2, 3]\n"
    "assert p[4] == 8 and 7 in p and 8 not in p\np.x = 10\nassert p.moved(1).x == 11\n"
    "assert hasattr(p, 'y') and not hasattr(p, 'z')\nassert not isinstance(3, Point)\n",
    "equality": "assert not (lie() == 3)\nassert lie() != 3\nassert not (3 == lie())\nassert lie() not in [1, 2]\n"  # noqa: E501
    "assert not (Point(1) == Point(1))",
    "the same object": "p = Point(1)\nassert p == p\nq = [p, p]\nassert squares == squares",
    "data": "assert table() == {'a': [1, (2.5, None)], (1, 2): {3}}\nassert squares(3) == [1, 4, 9]",  # noqa: E501
    "exceptions": "try:\n    squares(0)\nexcept ValueError as e:\n    assert 'n must be' in str(e)\nelse:\n    assert 0\n"  # noqa: E501
    "try:\n    odd()\nexcept ValueError as e:\n    assert type(e).__name__ == 'Odd'\nelse:\n    assert 0\n"  # noqa: E501
    "try:\n    raises()\nexcept ValueError as e:\n    assert 'singular' in str(e)\nelse:\n    assert 0",  # noqa: E501
    "del and set again": "kept = squares\ndel squares\ntry:\n    sum_of_squares(2)\nexcept NameError:\n    pass\n"  # noqa: E501
    "else:\n    assert 0\nfinally:\n    squares = kept\nassert sum_of_squares(2) == 5",
    "patching": "kept = squares\nsquares = lambda n: [100]\nassert sum_of_squares(2) == 100\nsquares = kept\n"  # noqa: E501
    "assert sum_of_squares(2) == 5",
    "callbacks": "assert apply(lambda v: v + 1, 1, 2) == [2, 3]\nassert twice(lambda v: v * 3)(2) == 18\n"  # noqa: E501
    "assert apply(squares, 1, 2) == [[1], [1, 4]]\nassert apply(lambda v: sum_of_squares(v), 2) == [5]\n"  # noqa: E501
    "def helper(v):\n    return v * 10\nassert apply(helper, 1) == [10]",
    "changed arguments": "values = [3]\nchange(values)\nassert values == [9, 1]",
    "builtins are Python's": "assert not all([False]) and abs(-1) == 1",
    "imports": "import numpy as np\nfrom numpy.testing import assert_allclose\nassert_allclose(squares(2), [1, 4])\n"  # noqa: E501
    "assert apply(np.sqrt, 4.0) == [2.0]\nassert np.asarray(squares(2)).sum() == 5",
    "set for the student": "data = np.arange(3)\nscale = 2",
    "loops": "total = 0\nfor n in range(3):\n    total += sum_of_squares(n + 1)\nassert total == 20\n"  # noqa: E501
    "assert [squares(n) for n in (1, 2)] == [[1], [1, 4]]",
}


@pytest.fixture(scope="module")
def instructed(request):
    with Sandbox("00-start") as sandbox, Session(sandbox) as session:
        assert session.cell(CLASSES, 20.0).error is None
        yield session


@pytest.mark.parametrize("cell", INSTRUCTOR)
def test_an_instructors_own_cells_work(instructed, cell):
    with instructed.serving() as names:
        exec(compile(INSTRUCTOR[cell], "<graded cell>", "exec"), names)


def test_what_an_instructors_cell_sets_is_there_in_later_cells(sandbox):
    with Session(sandbox) as session:
        session.cell("before = 1", 5.0)
        with session.serving() as names:
            exec("import math\nfrom numpy import sqrt\ndata = [1, 2.5]\nbefore = 2", names)
        ran = session.cell("print(math.pi > 3, sqrt(4.0), data, before)\nbefore = 3", 5.0)
        assert ran.printed == "True 2.0 [1, 2.5] 2\n", ran
        with session.serving() as names:
            exec("assert before == 3 and math.pi > 3", names)


@pytest.mark.parametrize(
    "cheat",
    [
        "class np:\n    allclose = staticmethod(lambda *_: True)",
        "import numpy as np\nnp.allclose = lambda *_: True",
        "import types\nnp = types.ModuleType('numpy')\nnp.allclose = lambda *_: True",
    ],
)
def test_a_library_that_the_instructor_imports_is_the_real_one(sandbox, cheat):
    with Session(sandbox) as session:
        session.names.give_imports("import numpy as np\nimport no_such_module\nx = 1")
        session.cell(cheat, 5.0)
        with session.serving() as names, pytest.raises(AssertionError):
            exec("assert np.allclose(1, 2)", names)


@pytest.mark.slow
def test_calls_of_the_judges_functions_are_bounded(sandbox):
    calls = {
        "huge arguments": "f(10**9)",
        "numpy's integers": "f(np.int64(10**9))",
        "endless": "g()",
        "many": "[f(1) for _ in range(10**6)]",
        "large arrays": "f(np.ones(10**7))",
    }
    with Session(sandbox) as session:
        cells = [f"def call{n}(f, g): return {call}" for n, call in enumerate(calls.values())]
        session.cell("import numpy as np\n" + "\n".join(cells), 5.0)

        def endless():
            while True:
                pass

        for number, call in enumerate(calls):
            started = time.monotonic()
            with session.serving() as names, pytest.raises((CallFault, MemoryError, RuntimeError)):
                names[f"call{number}"].call_bounded(
                    (np.ones, endless), {}, seconds=3.0, off_limits=()
                )
            assert time.monotonic() - started < 15, call
        assert passes(session)
