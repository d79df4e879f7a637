"""Grade the same class by nbgrader alone and by posenc, and compare time, memory and points.

Processor time is that of the whole tree of processes, also of those that outlive their parents. No
time is asserted: a loaded machine is slow, not wrong. Different points are an error.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook

from posenc.grading import demo
from posenc.grading.assignments import RELEASE, SOURCE

ROOT = Path(__file__).resolve().parents[1]
ASSIGNMENTS = ("02-sinusoidal", "04-learned-rope")
SEED = "a seed for this measurement alone"
STOCK = """
c = get_config()
c.CourseDirectory.course_id = "stock"
c.CourseDirectory.root = {root!r}
"""
BECOME_SUBREAPER = 36
Say = Callable[[str], None]

WRONG = """

right_{name} = {name}

def {name}(*args, **kwargs):
    return np.asarray(right_{name}(*args, **kwargs)) * 1.01
"""


def answers(source: nbformat.NotebookNode) -> dict[str, str]:
    """Return the model answers of an assignment, by the id of their cell."""
    return {
        cell.id: cell.source
        for cell in source.cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    }


def right(_: str, text: str, __: int) -> str:
    return text


def wrong(name: str, text: str, _: int) -> str:
    return text + WRONG.format(name=name)


def blank(*_: object) -> None:
    return None


def partly(_: str, text: str, place: int) -> str | None:
    """Answer every third task rightly, leave every third open, crash in the others."""
    return (text, None, text + "\n\n1 / 0")[place % 3]


KINDS = (right, wrong, blank, partly)


def course(folder: Path, *, stock: bool) -> Path:
    """Make a course folder with its assignments generated."""
    folder.mkdir()
    for name in demo.COURSE_FILES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, folder / name)
    if stock:
        ours = folder.parent / "ours"
        shutil.copytree(ours / SOURCE, folder / "source")
        (folder / "nbgrader_config.py").write_text(STOCK.format(root=str(folder)), "utf-8")
    for name in ASSIGNMENTS:
        words = [sys.executable, "-m", "nbgrader", "generate_assignment", name, "--force"]
        subprocess.run(words, cwd=folder, env=environment(), capture_output=True, check=True)
    return folder


def submit(folder: Path, count: int, names: tuple[str, ...]) -> Iterator[Path]:
    """Hand in so many notebooks; the kinds take turns, and so do the assignments."""
    read = {
        name: [
            nbformat.read(folder / where / name / f"{name}.ipynb", as_version=4)
            for where in (RELEASE, SOURCE)
        ]
        for name in names
    }
    for number in range(count):
        name = names[number % len(names)]
        kind = KINDS[number // len(names) % len(KINDS)]
        released, source = (nbformat.from_dict(notebook) for notebook in read[name])
        solved = answers(source)
        places = {grade_id: place for place, grade_id in enumerate(solved)}
        for cell in released.cells:
            if cell.id in solved:
                cell.source = kind(cell.id, solved[cell.id], places[cell.id]) or cell.source
        path = Path("submitted") / f"{kind.__name__}-{number:03}" / name / f"{name}.ipynb"
        (folder / path).parent.mkdir(parents=True)
        nbformat.write(released, folder / path)
        yield path


def environment() -> dict[str, str]:
    # Python keeps what it compiled, as it does where nobody forbids it.
    left_out = ("POSENC_DB", "PYTHONDONTWRITEBYTECODE")
    kept = {key: value for key, value in os.environ.items() if key not in left_out}
    return kept | {
        # nbgrader starts alembic by its name.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), kept["PATH"]]),
        "POSENC_SEED": SEED,
        "PYTHONPATH": str(ROOT),
        "JUPYTER_CONFIG_DIR": "/nonexistent",
    }


def measured(words: list[str], folder: Path, watch: Callable[[int], None] | None = None) -> dict:
    """Run a command through this file's own wrapper, and return its times."""
    told = folder / "measured.json"
    command = [sys.executable, __file__, "--measure", str(told), *words]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        if watch:
            threading.Thread(target=watch, args=(process.pid,), daemon=True).start()
        said = process.stdout.read()
    found = json.loads(told.read_text("utf-8"))
    if found.pop("status"):
        raise SystemExit(f"{' '.join(words)} failed; it said:\n{said}")
    return found


def measure(told: Path, words: list[str]) -> None:
    """Run a command, wait for all that it started, and write down what it took."""
    with contextlib.suppress(AttributeError):
        # Processes that lose their parent come here, and count.
        ctypes.CDLL(None).prctl(BECOME_SUBREAPER, 1, 0, 0, 0)
    began = time.monotonic()
    process = subprocess.Popen(words)
    process.wait()
    wall = time.monotonic() - began
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    facts = {"status": process.returncode, "wall": wall, "cpu": used.ru_utime + used.ru_stime}
    told.write_text(json.dumps(facts), "utf-8")


def grade(folder: Path, name: str, jobs: int) -> list[str]:
    return [sys.executable, "-m", "posenc.grading.cli", "grade", name, "--jobs", str(jobs)]


def autograde(folder: Path, name: str) -> list[str]:
    return [sys.executable, "-m", "nbgrader", "autograde", name]


def totals(folder: Path) -> dict[str, float]:
    """Return everybody's points."""
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as gradebook:
        return {
            f"{submission.student_id} {assignment.name}": round(submission.score, 6)
            for assignment in gradebook.assignments
            for submission in assignment.submissions
        }


def children(process: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [
            int(child)
            for task in Path(f"/proc/{process}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    return []


def resident(process: int) -> float:
    """Return a process's memory in MB."""
    with contextlib.suppress(OSError):
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 2**20
    return 0.0


class Memory:
    """The judge's memory over time: the command and its processes, without the sandboxes."""

    def __init__(self) -> None:
        self.samples: list[tuple[float, int]] = []

    def watch(self, wrapper: int) -> None:
        """Look twice a second, as long as the command runs."""
        while Path(f"/proc/{wrapper}").exists():
            for command in children(wrapper):
                judges = children(command)
                if judges:
                    self.samples.append((sum(map(resident, (command, *judges))), len(judges)))
            time.sleep(0.5)

    def megabytes(self) -> dict[str, float]:
        """Return the means near the start, the middle and the end."""
        most = max(count for _, count in self.samples)
        used = [memory for memory, count in self.samples if count == most]
        parts = {"start": (0.1, 0.25), "middle": (0.45, 0.6), "end": (0.8, 0.95)}
        means = {}
        for part, (begin, end) in parts.items():
            some = used[int(begin * len(used)) : max(int(end * len(used)), 1)] or used[-1:]
            means[part] = sum(some) / len(some)
        return means


def compared(folder: Path, count: int, jobs: int, say: Say) -> dict:
    """Grade the same notebooks by both."""
    ours, again, stock = (folder / name for name in ("ours", "again", "stock"))
    say("generating the assignments")
    course(ours, stock=False)
    list(submit(ours, count, ASSIGNMENTS))
    shutil.copytree(ours, again)
    course(stock, stock=True)
    shutil.copytree(ours / "submitted", stock / "submitted")
    rows = {what: {"wall": 0.0, "cpu": 0.0} for what in ("posenc", "nbgrader")}
    for name in ASSIGNMENTS:
        # Ours before and after, and the mean of both, so that a machine that gets slower or faster
        # meanwhile favours neither.
        for what, where, words, part in (
            ("posenc", ours, grade(ours, name, jobs), 0.5),
            ("nbgrader", stock, autograde(stock, name), 1.0),
            ("posenc", again, grade(again, name, jobs), 0.5),
        ):
            say(f"grading {name} by {what}")
            run = measured(words, where)
            rows[what] = {key: rows[what][key] + part * run[key] for key in rows[what]}
    points = [totals(where) for where in (ours, again, stock)]
    different = [
        f"{name} ({', '.join(str(each.get(name)) for each in points)})"
        for name in sorted(set().union(*points))
        if len({each.get(name) for each in points}) > 1
    ]
    if different or len(points[0]) != count:
        raise SystemExit(f"the points differ (ours, ours again, nbgrader): {', '.join(different)}")
    return rows


def many(folder: Path, count: int, jobs: int, say: Say) -> dict:
    """Grade a large class of one assignment by ours."""
    place = course(folder / "many", stock=False)
    list(submit(place, count, ASSIGNMENTS[:1]))
    say(f"grading {count} by posenc")
    memory = Memory()
    found = measured(grade(place, ASSIGNMENTS[0], jobs), place, memory.watch)
    return {**found, "count": count, "memory": memory.megabytes()}


def report(count: int, jobs: int, rows: dict, large: dict | None) -> Iterator[str]:
    """Return the table."""
    yield f"{count} notebooks of {' and '.join(ASSIGNMENTS)}, the same points by both"
    yield f"{'':30}{'CPU s':>9}{'per notebook':>14}{'wall s':>9}"
    names = {"nbgrader": "nbgrader autograde", "posenc": f"posenc grade --jobs {jobs}"}
    for what, name in names.items():
        row = rows[what]
        yield f"{name:30}{row['cpu']:9.1f}{row['cpu'] / count:14.3f}{row['wall']:9.1f}"
    times = {key: rows["nbgrader"][key] / rows["posenc"][key] for key in ("cpu", "wall")}
    yield f"    CPU {times['cpu']:.1f}x less (bar: 6x), wall {times['wall']:.1f}x less (bar: 10x)"
    if large:
        memory = " ".join(f"{large['memory'][part]:.0f}" for part in ("start", "middle", "end"))
        yield (
            f"{large['count']} notebooks of {ASSIGNMENTS[0]}: {large['wall']:.1f} s (bar: 45 s for "
            f"300), {large['cpu']:.1f} CPU s"
        )
        yield f"    memory of the judges at the start, the middle and the end: {memory} MB"


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        measure(Path(sys.argv[2]), sys.argv[3:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=40, help="notebooks for both")
    parser.add_argument("--large", type=int, default=300, help="notebooks for ours alone; 0: none")
    parser.add_argument("--jobs", type=int, default=2, help="of posenc grade")
    parser.add_argument(
        "--json", type=Path, default=ROOT / "_build" / "bench-grading.json", help="for numbers"
    )
    options = parser.parse_args()

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as place:
        rows = compared(Path(place), options.count, options.jobs, say)
        large = many(Path(place), options.large, options.jobs, say) if options.large else None
    for line in report(options.count, options.jobs, rows, large):
        print(line)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    facts = {"count": options.count, "jobs": options.jobs, **rows, "large": large}
    options.json.write_text(json.dumps(facts, indent=2) + "\n", "utf-8")
    say(f"numbers are in {options.json}")


if __name__ == "__main__":
    main()
