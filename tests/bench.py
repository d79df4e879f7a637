"""Measure posenc against the memory floor and, where it is installed, against torch.

Each row runs its functions in turn, several times, in one process; the shortest time counts.
No time is asserted: a loaded machine is slow, not wrong.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import posenc

ROOT = Path(__file__).resolve().parents[1]
HUGE_PAGES = "THP_MEM_ALLOC_ENABLE"
TABLES = [(8192, 4096), (131_072, 128)]
HEADS = (1, 32, 4096, 128)
Functions = dict[str, Callable[[], object]]


def tables() -> Iterator[tuple[str, str, Functions]]:
    for shape in TABLES:
        for dtype in (np.float32, np.float64):
            name = f"table {shape[0]} x {shape[1]} {np.dtype(dtype).name}"
            source, out = np.ones(shape, dtype), np.zeros(shape, dtype)

            def into(out: np.ndarray | None = out, shape=shape, dtype=dtype) -> object:
                return posenc.sinusoidal_table(*shape, dtype=dtype, out=out)

            floor = {"copyto": lambda out=out, source=source: np.copyto(out, source)}
            within = "at most 1.5 x copyto" if dtype is np.float32 else "at most 2.5 x copyto"
            yield (
                f"{name}, into a buffer",
                within,
                {
                    "posenc": into,
                    **floor,
                    **torch_table(shape, dtype, fresh=False),
                },
            )
            yield (
                f"{name}, fresh",
                "4 x faster than torch's best, 9 x its default",
                {
                    "posenc": lambda into=into: into(None),
                    **floor,
                    **torch_table(shape, dtype, fresh=True),
                },
            )


def rotations() -> Iterator[tuple[str, str, Functions]]:
    x = np.random.default_rng(0).standard_normal(HEADS, dtype=np.float32)
    out, positions = np.zeros_like(x), np.arange(HEADS[-2])
    shown = " x ".join(map(str, HEADS))
    bars = {"interleaved": "at most 1.2 x copyto", "half": "2.5 x faster than torch's best"}
    for layout, bar in bars.items():
        yield (
            f"rope {layout} {shown} float32, into a buffer",
            bar,
            {
                "posenc": lambda layout=layout: posenc.rope(x, positions, layout=layout, out=out),
                "copyto": lambda: np.copyto(out, x),
                **torch_rope(x, out, layout),
            },
        )
    token, result = x[:, :, :1].copy(), np.zeros((1, 32, 1, 128), np.float32)
    for layout in bars:
        yield (
            f"rope {layout}, one decode step",
            "at most 20 microseconds",
            {
                "posenc": lambda layout=layout: posenc.rope(token, [77], layout=layout, out=result),
                "copyto": lambda: np.copyto(result, token),
                **torch_rope(token, result, layout, start=77),
            },
        )


def has_torch() -> bool:
    return importlib.util.find_spec("torch") is not None


def with_threads(function: Callable[[], object]) -> Functions:
    """Return the function as torch runs it by default, and on one thread."""
    import torch

    threads = torch.get_num_threads()

    def on(count: int) -> object:
        torch.set_num_threads(count)
        return function()

    counts = {"torch": threads, "torch, 1 thread": 1}
    return {name: lambda count=count: on(count) for name, count in counts.items()}


def torch_table(shape: tuple[int, int], dtype: type, *, fresh: bool) -> Functions:
    """Return the code of PyTorch's tutorial on Transformers, in the given dtype."""
    if not has_torch():
        return {}
    import torch

    kind = torch.float32 if dtype is np.float32 else torch.float64
    buffer = torch.zeros(shape, dtype=kind)

    def build() -> object:
        table = torch.empty(shape, dtype=kind) if fresh else buffer
        position = torch.arange(shape[0], dtype=kind).unsqueeze(1)
        exponents = torch.arange(0, shape[1], 2, dtype=kind)
        frequencies = torch.exp(exponents * (-np.log(10_000.0) / shape[1]))
        table[:, 0::2] = torch.sin(position * frequencies)
        table[:, 1::2] = torch.cos(position * frequencies)
        return table

    return with_threads(build)


def torch_rope(x: np.ndarray, out: np.ndarray, layout: str, start: int = 0) -> Functions:
    """Return the two usual forms: complex numbers for neighbours, rotate-half for halves."""
    if not has_torch():
        return {}
    import torch

    x, out = torch.from_numpy(x).clone(), torch.from_numpy(out).clone()
    d = x.shape[-1]
    positions = torch.arange(start, start + x.shape[-2], dtype=torch.float32)
    frequencies = 1.0 / 10_000 ** (torch.arange(0, d, 2, dtype=torch.float32) / d)

    def interleaved() -> object:
        angles = torch.outer(positions, frequencies)
        turns = torch.polar(torch.ones_like(angles), angles)
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
        return torch.mul(pairs, turns, out=torch.view_as_complex(out.unflatten(-1, (-1, 2))))

    def half() -> object:
        angles = torch.outer(positions, frequencies)
        angles = torch.cat((angles, angles), dim=-1)
        cosines, sines = angles.cos(), angles.sin()
        first, second = x[..., : d // 2], x[..., d // 2 :]
        return x * cosines + torch.cat((-second, first), dim=-1) * sines

    return with_threads(half if layout == "half" else interleaved)


def shortest(functions: Functions, runs: int) -> dict[str, float]:
    """Run the functions in turn and return the shortest time of each, in milliseconds."""
    best = dict.fromkeys(functions, float("inf"))
    once = {}
    for name, function in functions.items():
        begin = time.perf_counter()
        function()
        once[name] = time.perf_counter() - begin
    for _ in range(runs):
        for name, function in functions.items():
            # Calls too short for the clock are timed many at a time. Long ones are repeated, since
            # memory that a virtual machine takes back and gives again is slow once.
            repeats, calls = (3, 1) if once[name] > 1e-3 else (1, 300)
            for _ in range(repeats):
                begin = time.perf_counter()
                for _ in range(calls):
                    function()
                best[name] = min(best[name], (time.perf_counter() - begin) / calls * 1e3)
    return best


def import_times(runs: int) -> dict[str, float]:
    """Return the shortest times of starting Python with each import, in milliseconds."""

    # Compiled modules are kept, as on a user's machine.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def start(module: str) -> None:
        command = [sys.executable, "-c", f"import {module}"]
        subprocess.run(command, check=True, env=environment)

    names = {"posenc": "posenc", "numpy": "numpy"}
    return shortest({k: lambda m=m: start(m) for k, m in names.items()}, 3 * runs)


def measure(runs: int, say: Callable[[str], None]) -> list[dict]:
    """Measure every row; arrays of a row are gone before the next one's are made."""
    rows = []
    for group in (tables, rotations):
        for name, bar, functions in group():
            say(f"measuring: {name}")
            rows.append({"work": name, "bar": bar, "ms": shortest(functions, runs)})
    return rows


def with_huge_pages(runs: int, say: Callable[[str], None]) -> list[dict]:
    """Measure again in a child whose torch asks for huge pages, and return the child's rows."""
    say("now once more with torch's huge pages, in a process of its own")
    command = [sys.executable, __file__, "--runs", str(runs), "--child"]
    environment = {**os.environ, HUGE_PAGES: "1"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


def report(rows: list[dict]) -> str:
    """Return the table; ratios are to posenc of the same process."""
    columns = ["posenc", "copyto", "posenc / copyto", "torch / posenc", "same, best"]
    lines = [f"{'milliseconds':58}" + "".join(f"{name:>17}" for name in columns)]
    for row in rows:
        own = row["ms"]["posenc"]
        floor = row["ms"].get("copyto")
        cells = [
            f"{own:.4g}",
            f"{floor:.4g}" if floor else "",
            f"{own / floor:.2f}" if floor else "",
        ]
        if "torch" in row["ms"]:
            cells += [f"{row['torch / posenc']:.2f}", f"{row['best torch / posenc']:.2f}"]
        lines.append(f"{row['work']:58}" + "".join(f"{cell:>17}" for cell in cells))
        lines.append(f"    bar: {row['bar']}")
    return "\n".join(lines)


def combine(rows: list[dict], again: list[dict]) -> list[dict]:
    """Put torch's times with huge pages beside the others, and form ratios within each process."""
    for row, other in zip(rows, again, strict=True):
        own = row["ms"]["posenc"]
        ratios = {name: ms / own for name, ms in row["ms"].items() if name.startswith("torch")}
        row["torch / posenc"] = ratios["torch"]
        for name, ms in other["ms"].items():
            row["ms"][f"{name}, huge pages"] = ms
            if name.startswith("torch"):
                ratios[f"{name}, huge pages"] = ms / other["ms"]["posenc"]
        row["best torch / posenc"] = min(ratios.values())
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9, help="runs of each function, at least 7")
    parser.add_argument(
        "--json", type=Path, default=ROOT / "_build" / "bench.json", help="where numbers go"
    )
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.runs < 7:
        parser.error("--runs must be at least 7: fewer say more about the machine than the code")

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    rows = measure(arguments.runs, say)
    if arguments.child:
        print(json.dumps(rows))
        return
    if has_torch():
        rows = combine(rows, with_huge_pages(arguments.runs, say))
    else:
        say("torch is not installed here: its columns stay empty (make oracles installs it)")
    say("measuring: import posenc")
    times = import_times(arguments.runs)
    over = times["posenc"] - times["numpy"]

    print(report(rows))
    print(f"import posenc: {over:.1f} ms over import numpy ({times['numpy']:.0f} ms)")
    print("    bar: at most 15 ms over import numpy")
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps({"rows": rows, "import ms": times}, indent=2) + "\n")
    say(f"numbers are in {arguments.json}")


if __name__ == "__main__":
    main()
