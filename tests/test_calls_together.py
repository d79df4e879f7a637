"""Calls that are asked for together give what each of them gives alone."""

from __future__ import annotations

import contextlib
import copy
import os
import textwrap
import time

import numpy as np
import pytest

from posenc import exercises
from posenc.grading import _check, _judge
from posenc.grading._guard import Guard
from posenc.grading._limits import CallFault
from posenc.grading.isolation.sandbox import Sandbox
from posenc.grading.isolation.session import Session, _RemoteFunction

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")
RIGHT = """c, s = np.cos(angle), np.sin(angle)
right = np.array([[c, -s], [s, c]])
"""
BODIES = {
    "right": "return right",
    "wrong": "return right + 1",
    "counts": "global count\ncount += 1\nreturn right * count",
    "raises": "raise ValueError('no')",
    "an error of its own": "class Odd(IndexError): pass\nraise Odd('odd')",
    "raises in turn": "global count\ncount += 1\nif count % 2: raise KeyError(count)\nreturn right",
    "not written": "raise NotImplementedError",
    "partly written": "if angle: raise NotImplementedError\nreturn right",
    "exits in Python": "exit()",
    "interrupts": "raise KeyboardInterrupt",
    "ends": "import os\nos._exit(3)",
    "ends once": "global count\ncount += 1\nif count == 3: os._exit(3)\nreturn right",
    "forks": "if os.fork() == 0: return right + 1\nos.wait()\nreturn right",
    "an object": "return object()",
    "a function": "return lambda: right",
    "long text": "return 'x' * 3_000_000",
    "text that is too long": "return ['x' * 3_000_000] * 3",
    "off limits": "return helper(angle)",
}
# What a server sends that is not as agreed, in place of what was asked for.
FORGED = """
import sys
frame = sys._getframe()
while not (frame.f_code.co_name == "run" and "self" in frame.f_locals):
    frame = frame.f_back
talk = frame.f_locals["self"]._talk
talk.send({header}, {arrays})
talk.receive()
"""
LIES = {
    "no list": ("{'answers': 7}", "[]"),
    "no answers": ("{}", "[]"),
    "more than was asked": ("{'answers': [{'form': 1.0, 'values': 0, 'count': 0}] * 999}", "[]"),
    "answers of no shape": ("{'answers': [7, None]}", "[]"),
    "a count that is none": ("{'answers': [{'form': 1.0, 'values': 0, 'count': True}]}", "[]"),
    "a count below zero": ("{'answers': [{'form': 1.0, 'values': 0, 'count': -1}]}", "[b'x']"),
    "more arrays than came": ("{'answers': [{'form': 1.0, 'values': 0, 'count': 2}]}", "[b'x']"),
    "an array that is none": (
        "{'answers': [{'form': {'array': ['|O8', [1]]}, 'values': 1, 'count': 1}]}",
        "[bytes(8)]",
    ),
    "no values": ("{'answers': [{'form': 1.0, 'count': 0}] * 2}", "[]"),
}


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox("00-start") as ready:
        yield ready


def cell(body: str, *, name: str = "rotation_matrix", arguments: str = "angle") -> str:
    start = "import os, time\nimport numpy as np\ncount = 0\nlog = []\n"
    return f"{start}def {name}({arguments}):\n" + textwrap.indent(body, "    ")


def judged(sandbox: Sandbox, source: str, seed: str | None, name: str = "rotation_matrix"):
    """Return what judging a function shows, in words that can be compared."""
    exercise = exercises.get(name)
    with Session(sandbox) as session:
        assert session.cell(source, 20.0).error is None
        with session.serving() as names:
            results = _judge.judge(exercise, names[name], seed=seed, guard=Guard(exercise))
        with session.serving() as names:
            report = _check.check_in(names, name, seed=seed)
    shown = [
        (str(result.failure), str(result.fault), result.right, result.observations)
        for result in results
    ]
    return repr(shown).replace("object at 0x", ""), report.lines


def alone(monkeypatch) -> None:
    """Let all calls be made one by one."""
    monkeypatch.setattr(_RemoteFunction, "call_many", lambda *_, **__: [])


def questions(monkeypatch) -> list[str]:
    """Return a list that fills with what sessions are asked for."""
    asked: list[str] = []
    ask = Session.ask

    def noted(self, request, *rest):
        asked.append(request["do"])
        return ask(self, request, *rest)

    monkeypatch.setattr(Session, "ask", noted)
    return asked


@pytest.mark.parametrize("seed", [None, "a seed"])
@pytest.mark.parametrize("body", BODIES)
def test_together_and_alone_give_the_same(sandbox, monkeypatch, body, seed):
    source = cell(RIGHT + BODIES[body])
    together = judged(sandbox, source, seed)
    alone(monkeypatch)
    assert together == judged(sandbox, source, seed)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("split_pairs", "x[...] = 0\nreturn x"),
        ("split_pairs", "global log\nlog.append(x)\nlog[0][...] += 1\nreturn x"),
        ("split_pairs", "return x[..., 0::2], x[..., 1::2]"),
    ],
)
def test_changed_arguments_are_seen(sandbox, monkeypatch, name, body):
    source = cell(body, name=name, arguments="x, *_")
    together = judged(sandbox, source, "a seed", name)
    alone(monkeypatch)
    assert together == judged(sandbox, source, "a seed", name)


def test_right_answers_take_one_message(sandbox, monkeypatch):
    asked = questions(monkeypatch)
    judged(sandbox, cell("return angle", name="angles", arguments="angle, *_"), None, "angles")
    # It is judged twice.
    assert asked.count("calls") == 2
    assert asked.count("call") == 0


def answers(session: Session, name: str, calls: list[tuple], **limits: float) -> list:
    """Return what calls give that are asked for together."""
    limits = {"seconds": 5.0, "total": 20.0, **limits}
    with session.serving() as names:
        found = names[name].call_many([(args, {}) for args in calls], **limits, off_limits=())
        shown = []
        for answer, args in zip(found, calls, strict=False):
            try:
                shown.append(answer.give(args, {}))
            except CallFault as fault:
                shown.append(fault.kind)
        return shown


def test_a_slow_call_is_the_last_of_those_together(sandbox):
    with Session(sandbox) as session:
        session.cell("import time\ndef f(n):\n    time.sleep(n)\n    return n", 20.0)
        calls = [(0,), (0,), (60,), (0,)]
        assert answers(session, "f", calls, seconds=0.3) == [0, 0, "too slow"]


def test_a_call_that_is_not_written_is_the_last_of_those_together(sandbox):
    with Session(sandbox) as session:
        session.cell("def f(n):\n    if n: raise NotImplementedError\n    return n", 20.0)
        assert answers(session, "f", [(0,), (1,), (0,)]) == [0, "not written yet"]


def test_a_task_that_is_not_written_takes_one_question_of_each_kind(sandbox, monkeypatch):
    asked = questions(monkeypatch)
    judged(sandbox, cell(BODIES["not written"]), None)
    # It is judged twice, and what it calls is known until another cell runs.
    assert sorted(asked) == ["calls", "calls", "get", "get", "names"]


def test_calls_together_end_with_the_time_for_all(sandbox):
    with Session(sandbox) as session:
        session.cell("import time\ndef f(n):\n    time.sleep(n)\n    return n", 20.0)
        started = time.monotonic()
        found = answers(session, "f", [(0.3,)] * 50, total=1.0)
        assert 0 < len(found) <= 4
        assert time.monotonic() - started < 10


def test_a_slow_function_is_asked_no_more_than_its_time_allows(sandbox):
    exercise = exercises.get("angles")
    with Session(sandbox) as session:
        session.cell(cell("while True: pass", name="angles", arguments="*_, **__"), 20.0)
        with session.serving() as names:
            guard = Guard(exercise, call_seconds=0.3, total_seconds=1.0)
            results = _judge.judge(exercise, names["angles"], seed="a seed", guard=guard)
            assert guard.total_seconds <= 4.0
            assert guard.call_seconds == 1.0
            assert names["angles"].slow()
    assert {result.fault.kind for result in results if result.fault} == {"too slow"}


def test_calls_and_answers_that_are_too_large_are_left_to_be_made_alone(sandbox):
    with Session(sandbox) as session:
        session.cell(
            "import numpy as np\ndef f(x): return np.zeros(len(x) if x.ndim else 10**6)", 9
        )
        small, large = np.zeros(3), np.zeros(10**6)
        assert len(answers(session, "f", [(small,), (small,), (large,), (small,)])) == 2
        assert len(answers(session, "f", [(small,), (np.float64(0),), (small,)])) == 1
        assert answers(session, "f", [(large,)]) == []


def test_functions_of_the_judges_can_be_called(sandbox):
    with Session(sandbox) as session:
        session.cell("def f(g, n): return g(n) + 1", 20.0)
        calls = [(lambda n: 10 * n, n) for n in range(3)]
        assert answers(session, "f", calls) == [1, 11, 21]


def test_a_call_interrupted_while_the_judge_computes_leaves_the_next_question_alone(sandbox):
    def slow(_):
        # Longer than the call may take, by the other side's clock alone.
        time.sleep(0.6)

    with Session(sandbox) as session:
        body = "import time\ndef f(g, n):\n    if g: time.sleep(0.2); g(n)\n    return n"
        session.cell(body, 20.0)
        with session.serving() as names:
            function = names["f"]
            calls = [((None, 1), {}), ((slow, 2), {}), ((None, 3), {})]
            assert function.call_many(calls, seconds=0.5, total=9.0, off_limits=()) == []
            for n in range(3):
                assert function(None, n) == n


def test_a_process_that_ends_counts_nothing_and_is_no_loss(sandbox):
    kill = (
        "import os, signal\ndef f(n):\n    if n:\n        os.kill(os.getppid(), signal.SIGKILL)\n"
    )
    kill += "        os._exit(0)\n"
    with Session(sandbox) as session:
        session.cell(kill + "    return n", 20.0)
        assert answers(session, "f", [(0,), (1,)]) == []
        assert session._losses == 0
        assert answers(session, "f", [(0,), (0,)]) == [0, 0]


@pytest.mark.parametrize("lie", LIES)
def test_a_server_that_lies_gains_nothing(sandbox, lie):
    header, arrays = LIES[lie]
    body = FORGED.format(header=header, arrays=arrays)
    with Session(sandbox) as session:
        assert session.cell(cell(body), 20.0).error is None
        with session.serving() as names, contextlib.suppress(CallFault):
            # What it sends later may be no answer either.
            assert _check.check_in(names, "rotation_matrix").points == 0
        assert session.cell(cell(RIGHT + "return right"), 20.0).error is None
        with session.serving() as names:
            assert _check.check_in(names, "rotation_matrix").passed


def test_copied_arguments_are_those_of_deepcopy():
    rows = np.arange(12.0).reshape(3, 4)
    fixed = np.arange(3)
    fixed.flags.writeable = False
    kept = (rows, [rows, rows.T, rows[::-1, ::2]], {"base": 3, "none": None}, fixed, len, 2**80)
    kept += (np.float32(1), np.array(["a"]), np.array([[1], {}], dtype=object), {1, 2}, True, "x")
    mine, theirs = _judge.copied(kept), copy.deepcopy(kept)
    assert mine[0] is mine[1][0] is not rows
    assert mine[2] is not kept[2]
    assert mine[8] is not kept[8]
    assert mine[8][0] is not kept[8][0]
    for one, two in zip((*mine[1], *mine), (*theirs[1], *theirs), strict=True):
        assert type(one) is type(two)
        if isinstance(one, np.ndarray):
            assert one.dtype == two.dtype
            assert one.strides == two.strides
            assert one.flags.writeable
            np.testing.assert_array_equal(one, two)
        elif not isinstance(one, list | dict):
            assert one == two
