"""The ``posenc`` command, for students and for those who run the course."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import gc
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType

import posenc
from posenc.grading import assignments
from posenc.grading.assignments import CourseError

# What the extra "class" installs and these commands import.
CLASS_MODULES = {
    "IPython",
    "jupyter_client",
    "jupytext",
    "matplotlib",
    "nbconvert",
    "nbformat",
    "nbgrader",
    "sqlalchemy",
    "tqdm",
    "traitlets",
    "yaml",
}
# What a student's own commands import, which every JupyterLab brings along.
STUDENT_MODULES = {"ipykernel", "jupyter_client", "nbclient", "nbformat"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Words of the command line; those of this process if not given.

    Returns
    -------
    int
        Exit status: 0 done, 1 not done, in the way of grading or to be looked at, 2 not understood,
        130 stopped by the user.
    """
    options = _parser().parse_args(arguments)
    if hasattr(sys.stdout, "reconfigure"):
        # Reports quote what students write, and not every terminal has all letters.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return options.run(options)
    except CourseError as error:
        return _fail(str(error))
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if options.run in (_check, _reset) and missing in STUDENT_MODULES:
            return _fail(f"{missing} is not installed; run: pip install nbclient ipykernel")
        if missing not in CLASS_MODULES:
            raise
        return _fail(f'{missing} is not installed; run: pip install "posenc[class]"')
    except KeyboardInterrupt:
        _say("stopped")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="posenc",
        description="For students: check and reset work on your own notebook. "
        "For those who run the course: exercises, grade and demo.",
    )
    parser.add_argument("--version", action="version", version=f"posenc {posenc.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    check = commands.add_parser(
        "check",
        help="run your notebook as grading will, and say what is missing",
        description="Run your notebook as grading will, offline and without changing it. Exit "
        "status 1 if something is in the way of grading; missing points are not.",
    )
    check.add_argument("notebook", type=Path, metavar="NOTEBOOK")
    check.add_argument("-v", "--verbose", action="store_true", help="show the whole reports")
    check.add_argument(
        "--timeout",
        type=_seconds,
        default=assignments.CELL_SECONDS,
        metavar="SECONDS",
        help="stop a cell after this time, as grading does (default: %(default)s)",
    )
    check.add_argument(
        "--seed", help="grade with this course seed, to replay a dispute (for instructors)"
    )
    check.set_defaults(run=_check)

    reset = commands.add_parser(
        "reset",
        help="put a task of your notebook back as it was handed out",
        description="Put the cells of a task back as they were handed out. Your old answer is kept "
        "below the new cell, as text.",
    )
    reset.add_argument("notebook", type=Path, metavar="NOTEBOOK")
    reset.add_argument(
        "task",
        nargs="?",
        metavar="TASK",
        help='name of the function, or "setup" for the first cell',
    )
    reset.add_argument(
        "--keep-answer",
        action="store_true",
        help="leave the answer as it is, and put back only what else grading needs",
    )
    reset.set_defaults(run=_reset, parser=reset)

    exercises = commands.add_parser(
        "exercises",
        help="generate the students' notebooks from solutions/",
        description="Generate the students' notebooks in exercises/ from solutions/. A notebook "
        "that holds answers is copied before it is replaced.",
    )
    exercises.add_argument("names", nargs="*", metavar="ASSIGNMENT", help="default: all")
    how = exercises.add_mutually_exclusive_group()
    how.add_argument(
        "--check", action="store_true", help="write nothing; fail if exercises/ is stale"
    )
    how.add_argument(
        "--if-stale",
        action="store_true",
        help="do nothing if the solutions are unchanged, and leave notebooks that hold answers",
    )
    exercises.set_defaults(run=_exercises)

    grade = commands.add_parser(
        "grade",
        help="grade what students handed in",
        description="Grade what students handed in for an assignment, several side by side, and "
        "write it into nbgrader's gradebook. What was graded before is left alone, so after Ctrl-C "
        "the same command goes on. Exit status 1 if somebody has to look at a submission.",
    )
    grade.add_argument("assignment", metavar="ASSIGNMENT", help="such as 02-sinusoidal")
    grade.add_argument("--student", default="*", metavar="STUDENT", help="default: all")
    grade.add_argument(
        "--jobs",
        type=_count,
        metavar="N",
        help="how many submissions at a time (default: as many as there are processors)",
    )
    grade.add_argument(
        "--force", action="store_true", help="grade again what was graded before, too"
    )
    grade.add_argument(
        "--demo-seed",
        action="store_true",
        help="grade without the course's secret seed, with the practice cases that students can "
        "see; the export marks such grades",
    )
    grade.add_argument("-v", "--verbose", action="store_true", help="show every note of repairs")
    grade.set_defaults(run=_grade)

    demo = commands.add_parser(
        "demo",
        help="grade a sample class of five",
        description="Grade a sample class of five with nbgrader, and show the gradebook.",
    )
    demo.add_argument(
        "--keep",
        type=Path,
        metavar="DIR",
        help="an empty or new folder for the sample course (default: _build/demo)",
    )
    demo.set_defaults(run=_demo)
    return parser


def _seconds(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected whole seconds, at least 1, got {text!r}")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number, at least 1, got {text!r}")
    return int(text)


def _check(options: argparse.Namespace) -> int:
    from posenc.grading import student

    def progress(line: str) -> None:
        if sys.stderr.isatty():
            print(line, file=sys.stderr, flush=True)

    lines, ready = student.check(
        options.notebook,
        seed=options.seed,
        timeout=options.timeout,
        verbose=options.verbose,
        progress=progress,
    )
    for line in lines:
        _say(line)
    return 0 if ready else 1


def _reset(options: argparse.Namespace) -> int:
    from posenc.grading import student

    if not options.task:
        tasks = ", ".join(student.tasks(options.notebook))
        options.parser.error(f"name a task of {options.notebook.name}: {tasks}")
    try:
        for line in student.reset(options.notebook, options.task, keep_answer=options.keep_answer):
            _say(line)
    except ValueError as error:
        return _fail(str(error), status=2)
    return 0


def _exercises(options: argparse.Namespace) -> int:
    root = assignments.find_root()
    try:
        names = assignments.known(options.names)
    except ValueError as error:
        return _fail(str(error), status=2)
    if options.check:
        stale = assignments.stale(root, names)
        if stale:
            return _fail(
                f"exercises/ is not what solutions/ generates ({', '.join(stale)}); "
                "run: posenc exercises"
            )
        _say("exercises/ is what solutions/ generates")
        return 0
    if options.if_stale and assignments.is_released(root, names):
        _say("exercises/ is up to date")
        return 0
    _say(f"generating {len(names)} notebook{'s' if len(names) > 1 else ''} from solutions/")
    for line in assignments.generate(root, names, replace_answers=not options.if_stale):
        _say(line)
    return 0


def _grade(options: argparse.Namespace) -> int:
    root = assignments.find_root()
    # Python would look through all objects once more before it ends.
    atexit.register(gc.freeze)
    from posenc.grading.isolation.sandbox import Sandbox

    try:
        sandbox = Sandbox(options.assignment)
    except RuntimeError as error:
        return _fail(str(error))
    with contextlib.closing(sandbox):
        # Meanwhile the sandbox gets ready.
        with _importing_less():
            from posenc.grading import grade_command

        try:
            done = grade_command.grade(
                root,
                options.assignment,
                student=options.student,
                jobs=options.jobs,
                force=options.force,
                practice=options.demo_seed,
                verbose=options.verbose,
                sandbox=sandbox,
                say=_say,
                warn=_warn,
            )
        except grade_command.Unknown as error:
            return _fail(str(error), status=2)
        except grade_command.Stopped as error:
            return _fail(str(error), status=130)
    return 0 if done else 1


class _Later(ModuleType):
    """A module that is imported when something of it is used."""

    def __getattr__(self, name: str) -> object:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextlib.contextmanager
def _importing_less() -> Iterator[None]:
    """Keep out what grading does not use and would take most of its start."""
    # For formats that no notebook has, jsonschema would import parsers.
    for name in ("rfc3987_syntax", "rfc3986_validator", "isoduration", "webcolors", "uri_template"):
        sys.modules.setdefault(name, None)
    found = find_spec("nbgrader")
    if found and "nbgrader" not in sys.modules:
        # The package's own file imports nbgrader's servers; its modules do without.
        sys.modules["nbgrader"] = module_from_spec(found)
    if "requests" not in sys.modules:
        # Of use where JupyterHub says who is who.
        later = _Later("requests")
        later.__spec__ = find_spec("requests")
        sys.modules["requests"] = later
    # Of use to collect archives; whoever imports it after this gets the real one.
    archives = ModuleType("setuptools.archive_util")
    archives.unpack_archive = archives.unpack_tarfile = archives.unpack_zipfile = None
    stands_in = sys.modules.setdefault(archives.__name__, archives) is archives
    # While modules are loaded, hardly anything is garbage.
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        if stands_in:
            del sys.modules[archives.__name__]


def _demo(options: argparse.Namespace) -> int:
    from posenc.grading import demo

    root = assignments.find_root()
    for line in demo.run(root, options.keep):
        _say(line)
    return 0


def _say(line: str) -> None:
    print(line, flush=True)


def _warn(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _fail(message: str, *, status: int = 1) -> int:
    print(f"posenc: {message}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
