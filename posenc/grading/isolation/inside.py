"""What runs where student code runs: one process that is ready, and a copy of it a submission.

Notebooks that are only Python get a copy without IPython and Matplotlib, which is faster.

It knows no answers. A submission gets a fork of the ready process, shut in namespaces of its own.
Every cell and every graded cell runs in a fork of that: whatever ends or hangs is one cell, and the
state before it is still there.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import gc
import importlib
import io
import json
import math
import mmap
import operator
import os
import resource
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from posenc.grading import _limits
from posenc.grading._limits import CallFault, Limit, Watch, called_names
from posenc.grading.isolation import plain
from posenc.grading.isolation.wire import (
    FORWARDED,
    GRACE,
    ITERATORS,
    SEQUENCES,
    TOGETHER_BYTES,
    Channel,
    Gone,
    decode,
    encode,
    readable,
)

TEXT_BYTES = 20_000
FIGURES = 8
FIGURE_BYTES = 1 << 20
MOUNT_PRIVATE = 1 << 18 | 1 << 14
NO_SETUID_NO_DEVICES = 2 | 4
# Of mounts, of shared memory, of processes, and of what is left of a network.
NEW_NAMESPACES = 0x00020000 | 0x08000000 | 0x20000000 | 0x40000000
NEW_USER = 0x10000000
# Calls of the system that Python does not have; x86-64 has numbers of its own, others share theirs.
KEYCTL, CLONE = (250, 56) if os.uname().machine == "x86_64" else (219, 220)
# Of all that a cell displays.
DISPLAYS = 100
DISPLAY_BYTES = 4 << 20
# What the text of a cell is called where something points into it.
CELL = "<cell>"
# What is shown alike by IPython and by Python itself, up to this length.
PLAIN = (bool, int, float, complex, str)
PLAIN_TEXT = 60
DATA = (list, tuple, dict, set, frozenset, range, *ITERATORS, *SEQUENCES)
# How often a submission's memory is looked at, in seconds.
LOOK = 0.2
# A cell has to leave so much memory to those after it.
ROOM = 256 << 20
libc = ctypes.CDLL(None, use_errno=True)
system_call = ctypes.PyDLL(None, use_errno=True).syscall
system_call.restype = ctypes.c_long


def main() -> None:
    """Get ready, then make a copy for each submission that is asked for."""
    settings = json.loads(sys.argv[2])
    control = Channel(socket.socket(fileno=int(sys.argv[1])))
    try:
        notebook = _Notebook()
        builtins.input = _no_input
        gc.collect()
        gc.freeze()
        if settings["namespaces"]:
            _try_copy(settings)
        control.send({"ready": True})
        _serve([control], settings, notebook)
    finally:
        if settings["library"]:
            shutil.rmtree(settings["library"], ignore_errors=True)


class _Notebook:
    """A notebook's names, and the IPython that runs its cells, once a cell needs one."""

    def __init__(self) -> None:
        # Cells must not find this module by the name of theirs.
        module = sys.modules["__main__"] = ModuleType("__main__")
        self.names = module.__dict__
        self._shell: Any = None

    def run(self, source: str, shown: list[dict[str, Any]]) -> BaseException | None:
        """Run a cell, collect what it shows, and return the error that ended it."""
        value = None
        if self._shell is None and not plain.needs_ipython(source):
            try:
                value = plain.evaluate(source, self.names, CELL)
            except BaseException as error:
                return error
            if value is None:
                return None
            if _is_shown_alike(value):
                shown.append({"text/plain": repr(value)})
                return None
        with _displays(self.shell, shown):
            if value is not None:
                self.shell.displayhook(value)
                return None
            result = self.shell.run_cell(source, store_history=False)
            return result.error_before_exec or result.error_in_exec

    @property
    def shell(self) -> Any:
        """Import what runs cells and draws, which takes most of the time and of the memory."""
        if self._shell is None:
            import matplotlib

            matplotlib.use("Agg")
            import matplotlib.pyplot
            from IPython.core.interactiveshell import InteractiveShell
            from traitlets.config import Config

            with contextlib.suppress(ImportError):
                import posenc.plotting  # noqa: F401 - ready before the first notebook asks for it

            config = Config()
            config.HistoryManager.enabled = False
            config.InteractiveShell.colors = "NoColor"
            shell = InteractiveShell.instance(config=config, user_ns=self.names)
            shell.history_manager.outputs = _Forgetful()
            # Figures are collected after each cell, whatever draws them.
            shell.register_magic_function(lambda line: None, magic_name="matplotlib")
            shell.run_cell("None")
            self._shell = shell
        return self._shell


class _Forgetful(dict):
    """Where IPython would keep all that is printed."""

    def __missing__(self, key: object) -> list[Any]:
        return []


def _serve(controls: list[Channel], settings: dict[str, Any], notebook: _Notebook) -> None:
    """Make copies; those for notebooks that need IPython in a fork of its own."""
    channels = {control.socket: control for control in controls}
    rich: Channel | None = None
    while channels:
        for each in readable(list(channels), 3600.0):
            try:
                request, _, files = channels[each].receive(files=2)
            except (Gone, ValueError):
                channels.pop(each).close()
                continue
            if "share" in request:
                other = Channel(socket.socket(fileno=files[0]))
                channels[other.socket] = other
                with contextlib.suppress(Gone):
                    other.send({"ready": True})
                continue
            # Another one for each copy, so that nothing that belongs to a user is shared.
            settings["user"] = settings["user"] and settings["user"] + 1
            if request.get("rich"):
                rich = _forwarded(rich, files, settings, notebook, channels)
            elif _fork_apart(namespaces=settings["namespaces"]) == 0:
                _leave(channels, rich)
                settings["user"] = request.get("user", settings["user"])
                try:
                    _copy(*files, settings, notebook)
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(1)
            for file in files:
                os.close(file)
        _wait_for_ended()
    if rich:
        rich.close()
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def _leave(channels: dict[Any, Channel], rich: Channel | None) -> None:
    """Close in a fork what belongs to the process that was forked."""
    for channel in (*channels.values(), *filter(None, [rich])):
        channel.close()


def _forwarded(
    rich: Channel | None,
    files: list[int],
    settings: dict[str, Any],
    notebook: _Notebook,
    channels: dict[Any, Channel],
) -> Channel:
    """Let the fork that has IPython make a copy, and return the channel to it."""
    for _ in range(2):
        if rich is None:
            ours, theirs = socket.socketpair()
            if os.fork() == 0:
                _die_with_parent()
                _leave(channels, Channel(ours))
                for file in files:
                    os.close(file)
                notebook.shell  # noqa: B018 - makes it
                gc.collect()
                gc.freeze()
                _serve([Channel(theirs)], settings, notebook)
                os._exit(0)
            theirs.close()
            rich = Channel(ours)
        try:
            rich.send({"user": settings["user"]}, files=files)
            return rich
        except Gone:
            # It ended; another one can do it.
            rich.close()
            rich = None
    raise Gone("no process for IPython starts")


def _try_copy(settings: dict[str, Any]) -> None:
    """End with a sentence where the system lets no copy be shut in."""
    child = _fork_apart(namespaces=True)
    if child == 0:
        try:
            _own_files(settings["home"])
            _give_up_rights(settings["user"])
            os._exit(0)
        except OSError as error:
            print(f"no submission can be shut in by itself: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(1)
    if child < 0 or os.waitpid(child, 0)[1]:
        sys.exit(1)


def _fork_apart(*, namespaces: bool) -> int:
    """Fork; the child is the first process of new namespaces, if there are to be any.

    By ``unshare``, only a child of the child would be, and forks are what a copy costs.
    """
    if not namespaces:
        return os.fork()
    python = ctypes.pythonapi
    python.PyOS_BeforeFork()
    child = system_call(CLONE, NEW_NAMESPACES | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        python.PyOS_AfterFork_Child()
        return 0
    number = ctypes.get_errno()
    python.PyOS_AfterFork_Parent()
    if child < 0:
        # Whoever asked for a copy sees its files closed.
        why = os.strerror(number)
        print(f"no submission gets namespaces of its own: {why}", file=sys.stderr, flush=True)
    return child


def _copy(talk: int, life: int, settings: dict[str, Any], notebook: _Notebook) -> None:
    """Shut this process in, and run a submission's session in a child of it."""
    # Without namespaces it has to outlive its parent, to end what is left of the submission.
    if settings["namespaces"]:
        _die_with_parent()
        folder = settings["home"]
        _own_files(folder)
        _give_up_rights(settings["user"])
    else:
        folder = tempfile.mkdtemp(prefix="posenc-")
        os.setsid()
        # Whatever a submission leaves behind becomes a child of this process.
        _prctl(36, 1)
    # Where one submission's words could stay, or keep another from going on.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for file in (0, 1, 2):
        os.dup2(nowhere, file)
    os.close(nowhere)
    for name, value in settings["limits"].items():
        _limit(getattr(resource, f"RLIMIT_{name}"), value)
    # Of all processes, the system should end these first.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    os.chdir(folder)
    os.environ.update(
        HOME=folder,
        TMPDIR=folder,
        IPYTHONDIR=f"{folder}/.ipython",
        MPLCONFIGDIR=f"{folder}/.matplotlib",
    )
    # Modules that lie beside the notebook are found, as in Jupyter.
    sys.path.insert(0, "")
    if settings["namespaces"]:
        # Nobody of the same user may look into the process that stays here.
        _prctl(4, 0)
    if os.fork() == 0:
        _prctl(4, 1)
        os.close(life)
        _session(Channel(socket.socket(fileno=talk)), notebook, sweep=settings["namespaces"])
        os._exit(0)
    os.close(talk)
    if settings["namespaces"]:
        _keep(socket.socket(fileno=life), memory=settings["memory"])
    else:
        _keep(socket.socket(fileno=life), folder=folder)


def _limit(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (value, value))


def _keep(life: socket.socket, *, memory: int = 0, folder: str | None = None) -> None:
    """Wait until the judge has done with this submission; whatever is left of it ends then.

    With a limit for its memory, it is alone in a namespace; else it has a folder to be removed.
    """
    # Whatever loses its parent becomes a child of this process; waited for, its time is counted.
    signal.signal(signal.SIGCHLD, lambda *_: _wait_for_ended())
    _wait_for_ended()
    while not readable([life], LOOK if memory else 3600.0):
        if memory:
            _bound(memory)
    if memory:
        # All that it sees is the student's. The system would end these too, without a count.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(-1, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
    else:
        # The first process of a namespace takes all others with it, and others have to end them.
        for _ in range(100):
            left = _children()
            for process in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            if not left:
                break
            time.sleep(0.01)
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def _seen() -> set[int]:
    """Return the processes that this one sees."""
    return {int(each.name) for each in os.scandir("/proc") if each.name.isdecimal()}


def _bound(most: int) -> None:
    """End processes where all together take too much memory: the youngest first.

    What took it ends so, and the process with the cells before it mostly stays.
    """
    seen = _seen() - {os.getpid()}
    # What they share counts for each, but is quick to find.
    if sum(map(_resident, seen)) <= most:
        return
    sizes = {process: _own_memory(process) for process in seen}
    while sum(sizes.values()) > most:
        youngest = max(sizes)
        with contextlib.suppress(ProcessLookupError):
            os.kill(youngest, signal.SIGKILL)
        del sizes[youngest]


def _resident(process: int) -> int:
    """Return the memory of a process in bytes."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * mmap.PAGESIZE
    except (OSError, IndexError):
        return 0


def _own_memory(process: int) -> int:
    """Return the same, of what several have only its part."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        # One that lets nobody look into it counts in full.
        return _resident(process)


def _wait_for_ended() -> None:
    """Take note of children that ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _children() -> list[int]:
    """Return this process's children, where the system says which these are."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name before it may hold anything.
            if int(path.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(path.parent.name))
    return found


def _die_with_parent() -> None:
    _prctl(1, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        libc.prctl(option, value, 0, 0, 0)


def _checked(result: int, what: str | None = None) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def _own_files(home: str) -> None:
    """Mount what this submission alone can write to; nothing else is writable."""

    def mount(kind: str, target: str, flags: int, options: str | None = None) -> None:
        data = options.encode() if options else None
        name = kind.encode()
        _checked(libc.mount(name, target.encode(), name, flags, data), target)

    _checked(libc.mount(None, b"/", None, MOUNT_PRIVATE, None), "/")
    mount("tmpfs", home, NO_SETUID_NO_DEVICES, "size=64m,nr_inodes=4096,mode=777")
    mount("tmpfs", "/dev/shm", NO_SETUID_NO_DEVICES, "size=16m,nr_inodes=256,mode=777")
    # Terminals are shared by all who see them.
    mount("tmpfs", "/dev/pts", NO_SETUID_NO_DEVICES | 1)
    mount("proc", "/proc", NO_SETUID_NO_DEVICES | 8)
    # An environment may lie there, which stays readable only.
    if not any(Path("/tmp").iterdir()):
        _checked(libc.mount(home.encode(), b"/tmp", None, 4096, None), "/tmp")


def _give_up_rights(user: int | None) -> None:
    """Become a user without any rights, who can't get new ones."""
    # Keys of whoever started this come along otherwise.
    libc.syscall(KEYCTL, 1, None)
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        with contextlib.suppress(OSError):
            _checked(libc.unshare(NEW_USER))
            # Its owner changed with the user, and this makes it readable again.
            libc.prctl(4, 1, 0, 0, 0)
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    with contextlib.suppress(OSError):
        Path("/proc/sys/user/max_user_namespaces").write_text("0")
    for capability in range(64):
        libc.prctl(24, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    _checked(libc.capset(header, (ctypes.c_uint32 * 6)()))
    libc.prctl(47, 4, 0, 0, 0)
    _checked(libc.prctl(38, 1, 0, 0, 0))


class _Alarm:
    """The moment at which whoever waits for this process kills it, in memory that both see."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 8)
        self.at = math.inf

    @property
    def at(self) -> float:
        """By the monotonic clock."""
        return struct.unpack("d", self._memory[:])[0]

    @at.setter
    def at(self, moment: float) -> None:
        self._memory[:] = struct.pack("d", moment)

    def set(self, seconds: float) -> None:
        """Move it to so many seconds from now."""
        self.at = time.monotonic() + seconds


def _session(talk: Channel, notebook: _Notebook, *, sweep: bool) -> None:
    """Do what the judge asks for, each time in a fork, which goes on from there after a cell."""
    # At once, for later a student's values may leave no memory.
    alarm = _Alarm()
    while True:
        request, arrays, files = talk.receive(files=1)
        if request["do"] == "answer":
            talk.send({"answer": True})
            continue
        simple = request["do"] == "cell" and (request["ours"] or _only_defines(request))
        if simple or request.get("last"):
            before, talk = talk, Channel(socket.socket(fileno=files[0]))
            if simple:
                talk.send(_defined(request, notebook.names))
            else:
                process = os.getpid()
                answer = _run_cell(request, arrays, notebook)
                _must_be(process)
                talk.send(*answer)
            before.receive()
            before.close()
            continue
        alarm.at = math.inf
        # Ends when this process does, so that the fork goes on only after the sweep.
        swept, sweeping = os.pipe()
        child = _forked()
        if child == 0:
            os.close(sweeping)
            # So that a signal to the group of this process reaches no other.
            os.setpgid(0, 0)
            talk.close()
            talk = Channel(socket.socket(fileno=files[0]))
            if request["do"] == "serve":
                _Server(talk, notebook.names, alarm).run()
                os._exit(0)
            alarm.set(request["seconds"] + GRACE)
            process = os.getpid()
            reply, data = _run_cell(request, arrays, notebook)
            _must_be(process)
            if _is_full():
                # Nothing could be graded after it.
                os.kill(process, signal.SIGKILL)
            alarm.at = math.inf
            talk.send(reply, data)
            os.read(swept, 1)
            os.close(swept)
            continue
        os.close(files[0])
        os.close(swept)
        ended = _watched(child, talk, alarm)
        if sweep and (not ended or not _is_alone()):
            _sweep({1, os.getpid()} if ended else {1, os.getpid(), child})
        if not ended:
            os._exit(0)
        os.close(sweeping)
        talk.send({"died": ended})


def _only_defines(request: dict[str, Any]) -> bool:
    """Return whether a cell gives names to functions and plain values, and can do nothing else."""
    if request.get("files") or request.get("given"):
        return False
    return plain.bound(request["cell"], sys.modules) is not None


def _defined(request: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    """Run a cell without IPython, whose hooks may be anybody's; it shows nothing."""
    error = None
    before = {name: id(names.get(name)) for name in request["known"]}
    try:
        plain.evaluate(request["cell"], names, CELL)
    except Exception as raised:
        error = raised
    bound = [name for name, value in before.items() if id(names.get(name)) != value]
    error = _error(error, request["seconds"])
    facts = {"bound": bound, "error": error, "forked": False}
    return {"printed": "", "shown": [], "figures": 0, **facts}


def _is_full() -> bool:
    """Return whether this process has hardly any memory left to ask for."""
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, MemoryError):
        return sys.platform == "linux"
    return most != resource.RLIM_INFINITY and pages * resource.getpagesize() > most - ROOM


def _must_be(process: int) -> None:
    """End a process that student code forked, when it comes back from that code."""
    if os.getpid() != process:
        os._exit(0)


def _forked() -> int:
    """Fork; where there are too many processes, wait for those that are ending."""
    for _ in range(50):
        with contextlib.suppress(OSError):
            return os.fork()
        time.sleep(0.02)
    return os.fork()


def _is_alone() -> bool:
    """Return whether nothing runs in this namespace but this process and the first one."""
    try:
        os.kill(-1, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False


def _sweep(kept: set[int]) -> None:
    """End what a cell or a call left running; in a namespace, all that is seen is the student's."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        stopped: set[int] = set()
        # Again, for what was started meanwhile.
        for _ in range(100):
            seen = _seen()
            new = seen - kept - stopped
            if not new:
                break
            for process in new:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process, number)
            stopped |= new
        if not stopped:
            return


def _watched(child: int, talk: Channel, alarm: _Alarm) -> str:
    """Return how a child ended, or nothing where the judge goes on with the child."""
    try:
        ended = os.pidfd_open(child)
    except (AttributeError, OSError):
        ended = None
    try:
        while True:
            watched = [talk.socket] if ended is None else [ended, talk.socket]
            ready = readable(watched, 0.05 if ended else 0.002)
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            if talk.socket in ready:
                try:
                    talk.receive()
                    return ""
                except Gone:
                    # The judge is gone, or has done with all of this.
                    _kill(child)
                    os._exit(0)
            if time.monotonic() > alarm.at:
                _kill(child)
                return "too slow"
    finally:
        if ended is not None:
            os.close(ended)
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    return f"exit {os.WEXITSTATUS(status)}"


def _kill(child: int) -> None:
    """End a child with what it started in its own group."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


class _Text(io.TextIOBase):
    """A text stream that keeps the beginning, however much is printed."""

    def __init__(self) -> None:
        self.text, self.cut = "", False

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        room = TEXT_BYTES - len(self.text)
        self.text += str(text)[:room]
        self.cut = self.cut or len(text) > room
        return len(text)


def _run_cell(
    request: dict[str, Any], arrays: list[bytes], notebook: _Notebook
) -> tuple[dict[str, Any], list[bytes]]:
    """Run a student's cell, and return what it shows and which names it gave a value."""
    for name, data in zip(request.get("files", []), arrays, strict=False):
        # One that has no room here costs that file alone.
        with contextlib.suppress(OSError):
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    if request.get("given"):
        notebook.names.update(decode(request["given"], arrays, imported))
    printed, shown, error = _Text(), [], None
    before = {name: id(value) for name, value in notebook.names.items()}
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            with _limits.alarm(request["seconds"]):
                error = notebook.run(request["cell"], shown)
                figures = _figures()
        except _limits.TooSlow as late:
            error, figures = late, []
    bound = [name for name, value in notebook.names.items() if before.get(name) != id(value)]
    reply: dict[str, Any] = {
        "printed": printed.text + ("\n... the rest is cut\n" if printed.cut else ""),
        "shown": _few([data for data in map(_mime, shown) if data]),
        "bound": sorted(set(request.get("known", ())).intersection(bound)),
        "error": _error(error, request["seconds"]),
        "figures": len(figures),
    }
    return reply, figures


def _is_shown_alike(value: Any) -> bool:
    """Return whether IPython shows a value as Python does."""
    import numpy as np

    if isinstance(value, np.ndarray | np.generic):
        return type(value) in (np.ndarray, np.float64) and value.dtype.kind in "biufc"
    if type(value) in (list, tuple):
        return all(type(item) in PLAIN for item in value) and len(repr(value)) <= PLAIN_TEXT
    return type(value) in PLAIN


def _no_input(*_: object) -> str:
    raise EOFError("nobody answers input() while grading; write the value into the code")


@contextlib.contextmanager
def _displays(shell: Any, shown: list[dict[str, Any]]) -> Any:
    """Collect what a cell displays, and its last value."""
    from IPython.core.displayhook import DisplayHook
    from IPython.core.displaypub import DisplayPublisher

    class Publisher(DisplayPublisher):
        def publish(self, data: Any, *_: Any, **__: Any) -> None:
            if len(shown) < DISPLAYS:
                shown.append(data)

    class Hook(DisplayHook):
        def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
            shown.append(format_dict)

        def write_output_prompt(self) -> None:
            pass

        def finish_displayhook(self) -> None:
            pass

    publisher, hook, system = shell.display_pub, shell.displayhook, sys.displayhook
    shell.display_pub = Publisher(parent=shell)
    shell.displayhook = Hook(parent=shell, shell=shell)
    shell.display_trap.hook = shell.displayhook
    shell.showtraceback = shell.showsyntaxerror = lambda *_, **__: None
    try:
        yield
    finally:
        shell.display_pub, shell.displayhook, sys.displayhook = publisher, hook, system
        shell.display_trap.hook = hook


def _mime(data: Any) -> dict[str, str]:
    """Return the parts of a display that grading keeps: text, and pictures of dots."""
    kept = {}
    for kind, most in (("text/plain", TEXT_BYTES), ("image/png", 4 * FIGURE_BYTES // 3)):
        value = data.get(kind) if isinstance(data, dict) else None
        if isinstance(value, str) and (kind == "text/plain" or len(value) <= most):
            kept[kind] = value[:most]
    return kept


def _few(shown: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the displays that fit."""
    room, kept = DISPLAY_BYTES, []
    for data in shown[:DISPLAYS]:
        room -= sum(map(len, data.values()))
        kept += [data] if room >= 0 else []
    return kept


def _figures() -> list[bytes]:
    """Return the figures that are open, as PNG, and close them."""
    plot = sys.modules.get("matplotlib.pyplot")
    pictures = []
    if plot is not None and plot.get_fignums():
        for number in plot.get_fignums()[:FIGURES]:
            file = io.BytesIO()
            with contextlib.suppress(Exception):
                plot.figure(number).savefig(file, format="png", dpi=72, bbox_inches="tight")
            if 0 < file.tell() <= FIGURE_BYTES:
                pictures.append(file.getvalue())
        plot.close("all")
    return pictures


def _error(error: BaseException | None, seconds: float) -> list[str] | None:
    """Return an error's class, its sentence, and the line of the cell."""
    if error is None:
        return None
    if isinstance(error, _limits.TooSlow):
        return ["TooSlow", f"still running after {seconds:g} seconds", ""]
    line = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        # This file has that name too.
        if frame.f_globals.get("__name__") == "__main__" and frame.f_globals is not globals():
            line = str(number)
    if isinstance(error, SyntaxError):
        line = str(error.lineno or "")
    try:
        sentence = str(error.msg if isinstance(error, SyntaxError) else error)
    except Exception:
        sentence = ""
    return [type(error).__name__, sentence[:500], line]


class _Server:
    """Answers a judge's questions about a notebook's names, in a fork that ends with the task."""

    def __init__(self, talk: Channel, names: dict[str, Any], alarm: _Alarm) -> None:
        self._talk, self._names, self._alarm = talk, names, alarm
        self._objects: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._kept: list[dict[str, Any]] = []
        self._waiting = False

    def run(self) -> None:
        """Answer until the judge has done."""
        while True:
            request, arrays, _ = self._talk.receive()
            if request["do"] == "end":
                return
            self._answer(request, arrays)

    def _answer(self, request: dict[str, Any], arrays: list[bytes]) -> None:
        seconds = request["seconds"]
        before = self._alarm.at
        self._alarm.set(seconds + GRACE)
        process = os.getpid()
        try:
            answer = getattr(self, f"_do_{request['do']}")(request, arrays, seconds)
            _must_be(process)
            self._talk.send(*answer)
        except Gone:
            os._exit(0)
        except BaseException as error:
            _must_be(process)
            self._talk.send(self._fault(error))
        self._alarm.at = before

    def _fault(self, error: BaseException) -> dict[str, Any]:
        if isinstance(error, CallFault):
            cause = error.__cause__
            return {"fault": [error.kind, str(error)], "kinds": _kinds(cause) if cause else []}
        if isinstance(error, MemoryError):
            return {"fault": ["out of memory", "its value is too large"], "kinds": []}
        return {"raised": _kinds(error), "text": str(error)[:500]}

    def _put(self, value: Any) -> dict[str, Any] | None:
        if isinstance(value, _Theirs):
            return {"yours": value.number}
        if isinstance(value, ModuleType):
            return {"module": value.__name__}
        if callable(value) or not _is_data(value):
            number = self._numbers.setdefault(id(value), len(self._objects))
            if number == len(self._objects):
                self._objects.append(value)
            shown = [number, callable(value), type(value).__name__]
            return {"object": [*shown, getattr(value, "__name__", "")]}
        return None

    def _get(self, kind: str, content: Any) -> Any:
        if kind == "function":
            return _Theirs(self._ask, *content)
        if kind == "generator":
            import numpy as np

            return np.random.default_rng(content)
        if kind == "mine":
            return self._target(content)
        return imported(kind, content)

    def _target(self, content: Any) -> Any:
        return self._names[content] if isinstance(content, str) else self._objects[content]

    def _ask(self, number: int, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call a function of the judge's."""
        form, arrays = encode([args, kwargs], self._put)
        self._waiting = True
        self._talk.send({"call": number, "form": form}, arrays)
        reply, data, _ = self._talk.receive()
        while "do" in reply:
            # The function asks in its turn.
            self._answer(reply, data)
            reply, data, _ = self._talk.receive()
        self._waiting = False
        if "raised" in reply:
            raise _known(reply["raised"])(reply["text"])
        return decode(reply["form"], data, self._get)

    def _do_get(self, request: dict, arrays: list[bytes], seconds: float) -> Any:
        form, data = encode(self._names[request["name"]], self._put)
        return {"form": form}, data

    def _do_has(self, request: dict, arrays: list[bytes], seconds: float) -> Any:
        return {"form": request["name"] in self._names}, []

    def _do_set(self, request: dict, arrays: list[bytes], seconds: float) -> Any:
        self._names[request["name"]] = decode(request["form"], arrays, self._get)
        return {"form": None}, []

    def _do_delete(self, request: dict, arrays: list[bytes], seconds: float) -> Any:
        del self._names[request["name"]]
        return {"form": None}, []

    def _do_replace(self, request: dict, arrays: list[bytes], seconds: float) -> Any:
        functions = decode(request["form"], arrays, self._get)
        self._kept.append({name: self._names.get(name, self) for name in functions})
        self._names.update(functions)
        return {"form": None}, []

    def _do_restore(self, request: dict, arrays: list[bytes], seconds: float) -> Any:
        for name, value in self._kept.pop().items():
            if value is self:
                del self._names[name]
            else:
                self._names[name] = value
        return {"form": None}, []

    def _do_names(self, request: dict, arrays: list[bytes], seconds: float) -> Any:
        names = called_names(self._target(request["of"]))
        return {"form": sorted(name for name in names if isinstance(name, str))}, []

    def _do_attribute(self, request: dict, arrays: list[bytes], seconds: float) -> Any:
        form, data = encode(getattr(self._target(request["of"]), request["name"]), self._put)
        return {"form": form}, data

    def _do_operation(self, request: dict, arrays: list[bytes], seconds: float) -> Any:
        operand, args = self._target(request["of"]), decode(request["form"], arrays, self._get)
        value = OPERATIONS[request["name"]](operand, *args)
        form, data = encode(value, self._put)
        return {"form": form}, data

    def _do_call(self, request: dict, arrays: list[bytes], seconds: float) -> Any:
        return self._called(request, request["form"], arrays, seconds, _limits.alarm)

    def _do_calls(self, request: dict, arrays: list[bytes], seconds: float) -> Any:
        """Make calls until one tells of all, or what they give is too much for one message."""
        until = time.monotonic() + seconds
        with _limits.limits() as limit:
            return self._calls(request, arrays, until, limit)

    def _calls(self, request: dict, arrays: list[bytes], until: float, limit: Limit) -> Any:
        answers, data, size, at = [], [], 0, 0
        process = os.getpid()
        for form, count in zip(request["forms"], request["counts"], strict=True):
            left = min(request["each"], until - time.monotonic())
            if left <= 0:
                break
            self._alarm.set(left + GRACE)
            try:
                header, parts = self._called(request, form, arrays[at : at + count], left, limit)
            except Gone:
                raise
            except BaseException as error:
                _must_be(process)
                header, parts = self._fault(error), []
            _must_be(process)
            if self._waiting:
                # Interrupted; what the judge answers now would be taken for its next question.
                os._exit(1)
            at += count
            size += sum(map(len, parts))
            if size > TOGETHER_BYTES:
                break
            answers.append({**header, "count": len(parts)})
            data += parts
            if header.get("fault", [""])[0] in ("too slow", "not written yet"):
                # Mostly, what comes after it ends in the same way.
                break
        return {"answers": answers}, data

    def _called(
        self, request: dict, form_given: Any, arrays: list[bytes], seconds: float, limit: Limit
    ) -> Any:
        """Call a function, and return what it gave, and how it changed its arguments."""
        function = self._target(request["of"])
        args, kwargs = decode(form_given, arrays, self._get)
        watch = Watch(map(self._names.get, request["off_limits"]))

        def called() -> tuple[Any, list[bytes]]:
            # Encoded within the limits too: it may run code of the value's own.
            return encode(function(*args, **kwargs), self._put)

        form, data = _limits.call(called, (), {}, seconds=seconds, watch=watch, until=limit)
        after, changed = encode([args, kwargs], self._put)
        header = {"form": form, "values": len(data)}
        if (after, changed) != (form_given, arrays):
            header["after"] = after
            data = data + changed
        return header, data


def imported(kind: str, content: Any) -> Any:
    """Return a module, or what is imported from one, that both sides have."""
    if kind == "module":
        return importlib.import_module(content)
    if kind == "imported":
        return getattr(importlib.import_module(content[0]), content[1])
    raise Gone(f"unknown: {kind}")


class _Theirs:
    """A function of the judge's."""

    def __init__(self, ask: Callable, number: int, name: str) -> None:
        self._ask, self.number, self.__name__ = ask, number, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # What a candidate may not call is not called from here.
        with _limits.lifted():
            return self._ask(self.number, args, kwargs)


OPERATIONS: dict[str, Callable] = {
    "len": len,
    "bool": bool,
    "list": lambda values: list(_first(values)),
    "next": next,
    "str": str,
    "repr": repr,
    "isinstance": lambda kind, value: isinstance(value, kind),
    "setattr": setattr,
    "delattr": delattr,
    **{name: getattr(operator, f"__{name}__") for name in FORWARDED},
}


def _first(values: Any) -> Any:
    for _, value in zip(range(100_000), values, strict=False):
        yield value


def _is_data(value: Any) -> bool:
    return isinstance(value, DATA) or hasattr(value, "__array__")


def _kinds(error: BaseException) -> list[str]:
    """Return the name of its class, and of those above it that Python itself has."""
    known = (kind for kind in type(error).__mro__ if kind.__module__ == builtins.__name__)
    return [type(error).__name__, *(kind.__name__ for kind in known)]


def _known(kinds: list[str]) -> type[Exception]:
    """Return the first of the classes that Python itself has."""
    for name in kinds:
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            return kind
    return RuntimeError


if __name__ == "__main__":
    main()
