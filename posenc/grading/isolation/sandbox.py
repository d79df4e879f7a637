"""Starting the process that student code runs in."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
from importlib.util import find_spec
from pathlib import Path

from posenc.grading.isolation import inside, masked
from posenc.grading.isolation.wire import Channel, Gone, Late

READY_SECONDS = 120
# Per process; the kernel ends one that takes more memory or time, or writes longer files.
LIMITS = {"AS": 4 << 30, "CPU": 300, "FSIZE": 48 << 20, "NOFILE": 256, "CORE": 0}
PROCESSES = 64
# What notebooks import; where they are installed is readable inside.
LIBRARIES = ("numpy", "matplotlib", "IPython")
WEAKER = (
    "bubblewrap is not installed (on Debian and Ubuntu: apt-get install bubblewrap), so student "
    "code runs as an ordinary process: it can read your files, the answers among them, and reach "
    "the network"
)


class Sandbox:
    """A process that is ready to run the notebooks of one assignment.

    Parameters
    ----------
    assignment : str
        Whose answers must not be found in it.
    isolated : bool, optional
        Whether it is shut in; if not given, wherever bubblewrap is installed.
    """

    def __init__(self, assignment: str, *, isolated: bool | None = None) -> None:
        self.isolated = can_isolate() if isolated is None else isolated
        self._folder = tempfile.TemporaryDirectory(prefix="posenc-")
        library = Path(self._folder.name)
        library.chmod(0o755)
        masked.write(library, assignment)
        ours, theirs = socket.socketpair()
        settings = {
            "namespaces": self.isolated,
            "user": None,
            "limits": dict(LIMITS),
            "folder": inside.HOME if self.isolated else self._folder.name,
        }
        if os.geteuid() == 0 and self.isolated:
            # Nobody else's, so that the limit on processes counts these alone.
            settings["user"] = 200_000 + secrets.randbelow(100_000)
            settings["limits"]["NPROC"] = PROCESSES
        else:
            settings["limits"]["NPROC"] = _processes() + PROCESSES
        words = [sys.executable, "-s", "-m", inside.__name__]
        words += [str(theirs.fileno()), json.dumps(settings)]
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": settings["folder"],
            "IPYTHONDIR": f"{settings['folder']}/.ipython",
            "MPLCONFIGDIR": f"{settings['folder']}/.matplotlib",
            "PYTHONPATH": "/course" if self.isolated else str(library),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "MPLBACKEND": "Agg",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "LANG": "C.UTF-8",
        }
        if self.isolated:
            words = _shut_in(library, environment) + words
        self._process = subprocess.Popen(
            words,
            env=environment,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd="/",
        )
        theirs.close()
        self._control = Channel(ours)
        try:
            self._control.receive(seconds=READY_SECONDS)
        except (Gone, Late):
            said = self.close()
            raise RuntimeError(f"the process for student code did not start: {said}") from None

    def copy(self) -> tuple[Channel, socket.socket]:
        """Return a channel to a fresh copy, and what ends it when closed."""
        ours, theirs = socket.socketpair()
        life, other = socket.socketpair()
        # A side that does not read must not keep the judge from going on.
        ours.settimeout(30)
        try:
            self._control.send({}, files=[theirs.fileno(), other.fileno()])
        finally:
            theirs.close()
            other.close()
        return Channel(ours), life

    def close(self) -> str:
        """End it, with all copies, and return what it said."""
        self._control.close()
        self._process.kill()
        said = self._process.communicate()[1].decode(errors="replace").strip()
        self._folder.cleanup()
        return said

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def can_isolate() -> bool:
    """Return whether student code can be shut in here."""
    return sys.platform == "linux" and shutil.which("bwrap") is not None


def _processes() -> int:
    """Return how many processes this user has; on some kernels a limit counts them all."""
    user = os.geteuid()
    try:
        return sum(path.stat().st_uid == user for path in Path("/proc").glob("[0-9]*"))
    except OSError:
        return 1024


def _shut_in(library: Path, environment: dict[str, str]) -> list[str]:
    """Return the words that start bubblewrap: an allowlist of what can be read, and no network."""
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
    if os.geteuid() == 0:
        # Root stays root until a copy becomes another user, which no user namespace knows.
        words = ["bwrap", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
        words += ["--die-with-parent", "--new-session", "--clearenv"]
    words += ["--cap-add", "ALL"]
    for name, value in environment.items():
        words += ["--setenv", name, value]
    folders = _libraries()
    for above in sorted(
        {parent for folder in (*folders, Path("/etc/x")) for parent in folder.parents}
    ):
        words += ["--perms", "0755", "--dir", str(above)] if above != Path("/") else []
    words += ["--ro-bind", "/usr", "/usr"]
    for name in ("/lib", "/lib64", "/bin", "/sbin"):
        path = Path(name)
        if path.is_symlink():
            words += ["--symlink", os.readlink(path), name]
        elif path.is_dir():
            words += ["--ro-bind", name, name]
    for name in ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"):
        words += ["--ro-bind-try", name, name]
    words += ["--proc", "/proc", "--dev", "/dev", "--dir", "/tmp", "--dir", inside.HOME]
    for folder in folders:
        words += ["--ro-bind", str(folder), str(folder)]
    for folder in folders:
        for installed in _installed(folder):
            words += ["--tmpfs", str(installed), "--remount-ro", str(installed)]
    words += ["--ro-bind", str(library), "/course"]
    # The caches of imports; what a submission writes lies in a folder of its own.
    words += ["--tmpfs", inside.HOME, "--remount-ro", "/dev", "--remount-ro", "/"]
    words += ["--chdir", "/"]
    return words


def _libraries() -> list[Path]:
    """Return the folders that hold Python and what notebooks import, outermost ones only."""
    folders = [Path(sys.base_prefix), Path(sys.prefix)]
    folders += [Path(find_spec(name).origin).parents[1] for name in LIBRARIES]
    folders = [folder for folder in folders if not folder.is_relative_to("/usr")]
    return [
        folder
        for number, folder in enumerate(folders)
        if not any(
            folder.is_relative_to(other) and (folder != other or number > at)
            for at, other in enumerate(folders)
            if at != number
        )
    ]


def _installed(folder: Path) -> list[Path]:
    """Return where a folder of libraries holds ``posenc`` itself."""
    places = {Path(path) for path in (*sys.path, *sysconfig.get_paths().values()) if path}
    places = {place for place in places if place.is_relative_to(folder)}
    return sorted(place / "posenc" for place in places if (place / "posenc").is_dir())
