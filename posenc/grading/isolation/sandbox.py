"""Starting the process that student code runs in."""

from __future__ import annotations

import copy
import errno
import json
import os
import secrets
import shutil
import site
import socket
import struct
import subprocess
import sys
import sysconfig
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import posenc
from posenc.grading.isolation import masked
from posenc.grading.isolation.wire import Channel, Gone, Late

READY_SECONDS = 120
# Until a copy has to have taken a message.
PATIENCE = 10.0
HOME = "/student"
COURSE = "/course"
# Per process; the kernel ends one that takes more memory or time, or writes longer files.
LIMITS = {"AS": 2 << 30, "CPU": 300, "FSIZE": 48 << 20, "NOFILE": 256, "CORE": 0}
PROCESSES = 64
# Of all processes of a submission together.
MEMORY = 3 << 30
# Of whom student code becomes one where root starts it; each copy takes the next.
USERS = (200_000, 300_000)
# What notebooks import; where they are installed is readable inside.
LIBRARIES = ("numpy", "matplotlib", "IPython")
# What takes memory that belongs to no process, so that no limit would count it: memfd_create,
# memfd_secret, shmget and msgget, by the machine's name and its number for Linux's filters.
UNCOUNTED = {
    "x86_64": (0xC000003E, (319, 447, 29, 68)),
    "aarch64": (0xC00000B7, (279, 447, 194, 186)),
}
# Another way to make the same calls, on x86_64.
OTHER_CALLS = 0x40000000
WEAKER = (
    "bubblewrap is not installed (on Debian and Ubuntu: apt-get install bubblewrap), so student "
    "code runs as an ordinary process: it can read your files, the answers among them, and reach "
    "the network"
)


class Sandbox:
    """A process that gets ready to run the notebooks of one assignment.

    Parameters
    ----------
    assignment : str
        Whose answers must not be found in it.
    isolated : bool, optional
        Whether it is shut in; if not given, wherever bubblewrap is installed.

    Raises
    ------
    RuntimeError
        If there can be none on this system, with one sentence.
    """

    def __init__(self, assignment: str, *, isolated: bool | None = None) -> None:
        if not hasattr(os, "fork"):
            raise RuntimeError("grading needs Linux or macOS; on Windows, run it in WSL")
        self.isolated = can_isolate() if isolated is None else isolated
        self._library = masked.package(assignment)
        self._is_shared, self._next = False, None
        self._start()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        settings = {
            "namespaces": self.isolated,
            "user": None,
            "limits": dict(LIMITS),
            "memory": MEMORY,
            "home": HOME,
            "library": None,
        }
        if _can_change_user() and self.isolated:
            # Nobody else's, so that the limit on processes counts these alone.
            settings["user"] = USERS[0] + secrets.randbelow(USERS[1] - USERS[0])
            settings["limits"]["NPROC"] = PROCESSES
        else:
            settings["limits"]["NPROC"] = _processes() + PROCESSES
        files: list[int] = [theirs.fileno()]
        if self.isolated:
            start = _shut_in(self._library, files)
        else:
            # It removes the folder itself, so that none is left where this process is killed.
            start, settings["library"] = [], _written(self._library)
        home = settings["library"] or HOME
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": home,
            "IPYTHONDIR": f"{home}/.ipython",
            "MPLCONFIGDIR": f"{home}/.matplotlib",
            "PYTHONPATH": settings["library"] or COURSE,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "MPLBACKEND": "Agg",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "LANG": "C.UTF-8",
        }
        words = [sys.executable, "-s", "-P", "-m", "posenc.grading.isolation.inside"]
        words += [str(theirs.fileno()), json.dumps(settings)]
        self._process: subprocess.Popen | None = subprocess.Popen(
            start + words,
            env=environment,
            pass_fds=files,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd="/",
        )
        theirs.close()
        for file in files[1:]:
            os.close(file)
        self._control = Channel(ours, patience=PATIENCE)
        self._ready = False

    def wait(self) -> None:
        """Wait until it is ready.

        Raises
        ------
        RuntimeError
            If it does not start, with one sentence.
        """
        if self._ready:
            return
        try:
            self._control.receive(seconds=READY_SECONDS)
        except (Gone, Late):
            said = (self.close().splitlines() or ["it said nothing"])[-1][:300]
            why = "the process for student code did not start"
            if self.isolated and said.startswith("bwrap"):
                why = (
                    "bubblewrap can't shut student code in (user namespaces may be forbidden here; "
                    "as root it needs none)"
                )
            raise RuntimeError(f"{why}: {said}") from None
        self._ready = True

    def shared(self) -> Sandbox:
        """Return another one that has this one's process, for a fork of this process.

        Raises
        ------
        Gone
            If that ended.
        """
        ours, theirs = socket.socketpair()
        try:
            self._control.send({"share": True}, files=[theirs.fileno()])
        finally:
            theirs.close()
        other = copy.copy(self)
        # Only whoever started a process can ask how it is.
        other._process, other._control = None, Channel(ours, patience=PATIENCE)
        other._is_shared, other._ready = True, False
        return other

    def copy(self, *, rich: bool = True) -> tuple[Channel, socket.socket]:
        """Return a channel to a fresh copy, and what ends it when closed.

        One that is ``rich`` has IPython and Matplotlib at hand; others import them when needed.
        """
        try:
            self.wait()
            if self._process and self._process.poll() is not None:
                raise Gone("it ended")
            if rich or not self._is_shared:
                return self._copied(rich)
            # The next one is made meanwhile, for the system takes its time over it.
            ready, self._next = self._next or self._copied(rich), self._copied(rich)
            return ready
        except Gone:
            # Something ended it, such as the system where memory was short.
            self.close()
            self._start()
            self.wait()
            return self._copied(rich)

    def _copied(self, rich: bool) -> tuple[Channel, socket.socket]:
        ours, theirs = socket.socketpair()
        life, other = socket.socketpair()
        try:
            self._control.send({"rich": rich}, files=[theirs.fileno(), other.fileno()])
        except BaseException:
            ours.close()
            life.close()
            raise
        finally:
            theirs.close()
            other.close()
        return Channel(ours, patience=PATIENCE), life

    def close(self) -> str:
        """End it, with all copies, and return what it said."""
        self._control.close()
        for each in self._next or ():
            each.close()
        self._next = None
        if self._process is None:
            return ""
        # Without the judge it ends by itself, and clears up; killed too early, bubblewrap may leave
        # a process behind.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=10.0)
        self._process.kill()
        said = b""
        with suppress(subprocess.TimeoutExpired, ValueError):
            said = self._process.communicate(timeout=2.0)[1]
        self._process.stderr.close()
        return said.decode(errors="replace").strip()

    def __enter__(self) -> Sandbox:
        self.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def can_isolate() -> bool:
    """Return whether student code can be shut in here."""
    return sys.platform == "linux" and shutil.which("bwrap") is not None


def _can_change_user() -> bool:
    """Return whether this is root, and not only in a container that knows no other users."""
    if os.geteuid() != 0:
        return False
    try:
        lines = Path("/proc/self/uid_map").read_text().splitlines()
    except OSError:
        return True
    mapped = [(int(first), int(first) + int(count)) for first, _, count in map(str.split, lines)]
    return any(first <= USERS[0] and 2 * USERS[1] <= end for first, end in mapped)


def _processes() -> int:
    """Return how many processes this user has; on some kernels a limit counts them all."""
    user = os.geteuid()
    try:
        return sum(path.stat().st_uid == user for path in Path("/proc").glob("[0-9]*"))
    except OSError:
        return 1024


def _written(library: dict[str, str]) -> str:
    """Write the package into a new folder."""
    folder = tempfile.mkdtemp(prefix="posenc-")
    for name, text in library.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def _shut_in(library: dict[str, str], files: list[int]) -> list[str]:
    """Return the words that start bubblewrap: an allowlist of what can be read, and no network.

    The files of the package, and the filter of calls, are added to ``files``: they are on no disk.
    """
    program = shutil.which("bwrap") or "bwrap"
    words = [program, "--unshare-all"]
    if _can_change_user():
        # Root stays root until a copy becomes another user, which no user namespace knows.
        words = [program, "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    words += ["--die-with-parent", "--new-session", "--cap-add", "ALL"]
    folders = _libraries()
    for above in sorted(
        {parent for folder in (*folders, Path("/etc/x")) for parent in folder.parents}
    ):
        words += ["--perms", "0755", "--dir", str(above)] if above != Path("/") else []
    words += ["--ro-bind", "/usr", "/usr"]
    for name in ("/lib", "/lib64", "/bin", "/sbin"):
        path = Path(name)
        if path.is_symlink():
            words += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            words += ["--ro-bind", name, name]
    for name in ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"):
        words += ["--ro-bind-try", name, name]
    words += ["--proc", "/proc", "--dev", "/dev", "--dir", "/tmp", "--dir", HOME]
    for folder in folders:
        words += ["--ro-bind", str(folder), str(folder)]
    bound = [Path("/usr"), *folders]
    hidden = [root for root in _courses() if _within(root, bound)]
    for root in hidden:
        if root in _prefixes():
            raise RuntimeError(f"{root} is a course and a Python environment; keep them apart")
        words += ["--tmpfs", str(root)]
        for folder in _prefixes():
            words += ["--ro-bind", str(folder), str(folder)] if _within(folder, [root]) else []
    for place in _installed(bound):
        words += ["--tmpfs", str(place), "--remount-ro", str(place)]
    for root in hidden:
        words += ["--remount-ro", str(root)]
    for name, text in library.items():
        files.append(_in_memory(name, text.encode()))
        words += ["--perms", "0444", "--file", str(files[-1]), f"{COURSE}/{name}"]
    if os.uname().machine in UNCOUNTED:
        files.append(_in_memory("filter", _filter(*UNCOUNTED[os.uname().machine])))
        words += ["--seccomp", str(files[-1])]
    # The caches of imports; what a submission writes lies in a folder of its own.
    words += ["--tmpfs", HOME, "--remount-ro", "/dev", "--remount-ro", "/"]
    words += ["--chdir", "/"]
    return words


def _in_memory(name: str, content: bytes) -> int:
    """Return an open file that is on no disk."""
    file = os.memfd_create(name)
    os.write(file, content)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _filter(machine: int, calls: tuple[int, ...]) -> bytes:
    """Return a program of the system's that lets these calls, and those of other machines, fail."""
    load, equal, at_least, end = 0x20, 0x15, 0x35, 0x06
    fail, allow = 0x00050000 | errno.ENOSYS, 0x7FFF0000
    steps = [(load, 0, 0, 4), (equal, 0, len(calls) + 3, machine), (load, 0, 0, 0)]
    # Each jumps over what is left, and over what allows the call.
    steps += [(at_least, len(calls) + 1, 0, OTHER_CALLS)]
    steps += [(equal, len(calls) - at, 0, call) for at, call in enumerate(calls)]
    steps += [(end, 0, 0, allow), (end, 0, 0, fail)]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def _within(path: Path, folders: list[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _prefixes() -> set[Path]:
    """Return the folders that hold Python and what notebooks import."""
    folders = {Path(sys.base_prefix), Path(sys.prefix)}
    for name in LIBRARIES:
        found = find_spec(name)
        if found is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        folders.add(Path(found.origin).parents[1])
    return folders


def _libraries() -> list[Path]:
    """Return the outermost of them."""
    folders = {folder for folder in _prefixes() if not folder.is_relative_to("/usr")}
    return sorted(folder for folder in folders if not _within(folder, [*folders - {folder}]))


def _courses() -> list[Path]:
    """Return folders with solutions that lie around this package, or where this process works."""
    starts = (Path(posenc.__file__).resolve().parent, Path.cwd())
    around = {folder for start in starts for folder in (start, *start.parents)}
    return sorted(folder for folder in around if (folder / "solutions").is_dir())


def _installed(bound: list[Path]) -> list[Path]:
    """Return where the folders that are bound hold ``posenc`` itself."""
    places = {Path(path) for path in (*sys.path, *sysconfig.get_paths().values()) if path}
    places |= {Path(path) for path in (*site.getsitepackages(), site.getusersitepackages())}
    for folder in (*bound, Path("/usr/local")):
        for pattern in ("lib/python*/site-packages", "lib/python*/dist-packages"):
            places |= set(folder.glob(pattern))
    places = {place for place in places if _within(place, bound)}
    return sorted(place / "posenc" for place in places if (place / "posenc").is_dir())
