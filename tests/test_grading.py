"""What a student reads: every message, triggered by the code that deserves it."""

import os
import random
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import posenc
from posenc import exercises
from posenc.exercises import EXERCISES
from posenc.grading import _check, _guard, _judge, check, grade
from posenc.grading._guard import Guard

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def no_course_seed(monkeypatch):
    monkeypatch.delenv("POSENC_SEED", raising=False)
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)


def notebook(source, call):
    """Run source and then a call in one namespace, as cells of a notebook do."""
    namespace = {"np": np, "posenc": posenc, "check": check, "grade": grade}
    exec(source, namespace)
    return eval(call, namespace)


RIGHT = """
def inverse_frequencies(d_model, *, base=10_000.0):
    return base ** (-np.arange(0, d_model, 2) / d_model)
"""
IGNORES_BASE = """
def inverse_frequencies(d_model, *, base=10_000.0):
    return 10_000.0 ** (-np.arange(0, d_model, 2) / d_model)
"""


def with_body(body):
    return f"def inverse_frequencies(d_model, *, base=10_000.0):\n    {body}\n"


def test_a_right_answer():
    report = notebook(RIGHT, "check('inverse_frequencies')")
    assert report.passed
    assert (report.points, report.max_points, report.misconceptions) == (4, 4, ())
    assert len(report.lines) == 1
    assert "4 of 4 visible checks pass; grading runs the same 4 on new cases" in report.text


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(st.floats(), st.floats(), st.floats(-1e-6, 1e-6)), max_size=4),
    st.sampled_from([(1e-6, 1e-6), (1e-12, 0.0), (0.0, 0.0)]),
    st.booleans(),
)
def test_what_is_close_is_what_numpy_says(numbers, tolerances, near):
    wanted = np.array([one for one, _, _ in numbers])
    other = np.array([one + little if near else two for one, two, little in numbers])
    atol, rtol = tolerances
    with np.errstate(all="ignore"):
        says = bool(np.isclose(other, wanted, atol=atol, rtol=rtol, equal_nan=True).all())
        assert _judge._is_close(other, wanted, atol, rtol) is says


def test_integers_that_overflowed_are_compared_as_numbers():
    smallest = np.iinfo(np.int64).min
    wanted = np.array([smallest, 5])
    assert _judge._is_close(wanted.astype(float), wanted, 1e-6, 1e-6)
    assert not _judge._is_close(wanted + np.array([0.0, 1.0]), wanted, 1e-6, 1e-6)


def test_a_recognised_misconception():
    report = notebook(IGNORES_BASE, "check('inverse_frequencies')")
    assert (report.points, report.state) == (2.5, "wrong")
    assert report.misconceptions == ("base ignored",)
    call, difference, idea, counts, place = report.lines
    assert call == "inverse_frequencies(8, base=500) is wrong: 2.5 of 4 points."
    assert difference == (
        "first difference at [1]: expected 0.211474, got 0.1; largest error 0.111; "
        "3 of 4 entries differ; yours is float64 of shape (4,)"
    )
    assert idea.startswith("Recognised: base ignored - ")
    assert counts == (
        "Not right yet: values at another base; an integer base. "
        "2 of 4 visible checks pass; grading runs the same 4 on new cases."
    )
    assert place == 'Read chapter 2, "Frequencies" (02-sinusoidal.html#sinusoidal-frequencies).'
    # The call that is shown can be repeated.
    assert (report.args, report.kwargs) == ((8,), {"base": 500})


def test_two_wrong_ideas_at_once_are_both_named():
    source = """
def sinusoidal_encoding(positions, d_model, *, base=10_000.0):
    angles = np.asarray(positions)[..., None] * base ** (-np.arange(0, d_model, 2) / d_model)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)
"""
    report = notebook(source, "check('sinusoidal_encoding')")
    assert report.misconceptions == ("halves", "odd d_model accepted")
    assert ". Also: odd d_model accepted - " in report.text


def test_the_idea_that_explains_the_call_shown_is_named_first():
    source = """
def softmax(scores, axis=-1):
    weights = np.exp(scores)
    return weights / weights.sum()
"""
    report = notebook(source, "check('softmax')")
    assert report.lines[0].startswith("softmax([[")
    assert report.misconceptions[0] == "sums to one over all"
    assert "overflow" in report.misconceptions


def test_an_idea_that_explains_only_the_first_failing_check_is_named_as_such():
    source = """
def sinusoidal_encoding(positions, d_model, *, base=10_000.0):
    positions = np.asarray(positions).astype(int)
    angles = positions[..., None] * 10_000.0 ** (-np.arange(0, d_model, 2) / d_model)
    if d_model % 2:
        raise ValueError("odd")
    return np.stack([np.sin(angles), np.sin(angles)], axis=-1).reshape(*positions.shape, d_model)
"""
    report = notebook(source, "check('sinusoidal_encoding')")
    assert report.misconceptions == ()
    assert "In the first of these, your answer is that of: sine only - " in report.text


def test_an_idea_of_the_first_failing_check_is_named_beside_one_that_is_recognised():
    source = """
def inverse_frequencies(d_model, *, base=10_000.0):
    if isinstance(base, int):
        raise ValueError("Integers to negative integer powers are not allowed.")
    return 10_000.0 ** (-np.arange(0, d_model, 2) / d_model)
"""
    report = notebook(source, "check('inverse_frequencies')")
    assert report.misconceptions == ("integer powers of an integer",)
    assert "In the first of these, your answer is that of: base ignored - " in report.text
    assert "Recognised: integer powers of an integer - " in report.text
    assert len(report.lines) <= 6


def test_properties_that_do_not_count_yet_are_said_not_to():
    report = notebook(
        with_body("return np.linspace(1, 0.5, d_model // 2)"), "check('inverse_frequencies')"
    )
    assert report.points == 0
    assert "1 of 4 visible checks pass, but count only once a check of values does" in report.text


@pytest.mark.parametrize(
    ("body", "state", "says", "words"),
    [
        (
            "raise NotImplementedError()",
            "not written yet",
            "inverse_frequencies: not written yet: its cell raises NotImplementedError.",
            "",
        ),
        ("return 1 / 0", "crash", "crashes", "crash: ZeroDivisionError: division by zero"),
        (
            "return np.ones(3)[base:]",
            "crash",
            "crashes",
            "crash: TypeError: slice indices must be integers",
        ),
        ("raise SystemExit", "crash", "crashes", "crash: it calls exit"),
        ("return", "wrong", "is wrong", "expected an array, got None: is there a `return`?"),
        ("return np.ones(3)", "wrong", "is wrong", "expected shape (4,), got shape (3,)"),
        (
            "return 'frequencies'",
            "wrong",
            "is wrong",
            "expected real numbers, got dtype <U11 (a str)",
        ),
        (
            "return [[1], [2, 3]]",
            "wrong",
            "is wrong",
            "expected an array of shape (4,), got a list of 2",
        ),
        (
            "return np.ones(d_model // 2) * 1j",
            "wrong",
            "is wrong",
            "expected real numbers, got dtype complex128",
        ),
        (
            "return np.append(np.ones(d_model // 2 - 1), np.nan)",
            "wrong",
            "is wrong",
            "not finite: first at [3]: expected 0.001, got nan; 1 of 4 entries are nan or infinite",
        ),
        (
            "raise MemoryError",
            "out of memory",
            "runs out of memory",
            "out of memory: it asked for more memory than there is",
        ),
        (
            "return posenc.inverse_frequencies(d_model, base=base)",
            "calls the reference",
            "calls the reference",
            "calls the reference: it calls posenc's inverse_frequencies",
        ),
        (
            "return 1 / (posenc.wavelengths(d_model, base=base) / 6.283185307179586)",
            "calls the reference",
            "calls the reference",
            "calls the reference: it calls posenc's wavelengths",
        ),
    ],
)
def test_words(body, state, says, words):
    source = with_body(body)
    report = notebook(source, "check('inverse_frequencies')")
    assert (report.points, report.state) == (0, state)
    assert says in report.lines[0]
    # The report shows the first failure, whose criterion may be a property; look at all findings.
    results = _judge.judge(
        EXERCISES["inverse_frequencies"],
        notebook(source, "inverse_frequencies"),
        guard=Guard(EXERCISES["inverse_frequencies"]),
    )
    assert words in "\n".join(str(result.failure) for result in results)


def test_other_results_than_arrays_have_words_of_their_own():
    def failure(got, expected):
        with pytest.raises(exercises.Failure) as caught:
            _judge.compare(got, expected, atol=1e-6, rtol=1e-6)
        return str(caught.value)

    assert failure("neither", "invariant") == "expected 'invariant', got 'neither'"
    assert failure(None, "invariant") == "expected 'invariant', got None"
    assert failure(np.bool_(True), False) == "expected False, got True"
    assert failure(1, True) == "expected True, got an int"
    pairs = {(0, 1), (2, 3)}
    assert failure([(0, 1), (5, 5)], pairs) == (
        "expected 2 in all, got 2; missing (2, 3); too many (5, 5)"
    )
    assert failure(3, pairs) == "expected a set of pairs of integers, got an int"
    assert failure({7}, pairs) == "expected a set of pairs of integers, got a set of 1, such as 7"
    assert failure({(0, 1.5)}, pairs) == "expected pairs of integers, got fractions"
    assert failure((1.0, 2.0), (1.0, 3.0)) == "value 2 of 2: expected 3, got 2"
    for right, expected in (
        (np.array([[2, 3], [0, 1]]), pairs),
        (np.bool_(False), False),
        ([1, 3.0], (1, 3.0)),
    ):
        _judge.compare(right, expected, atol=1e-6, rtol=1e-6)


def test_not_run_yet_and_not_a_function():
    assert "not run yet: run the cell that defines softmax" in notebook("", "check('softmax')").text
    report = notebook("softmax = 3", "check('softmax')")
    assert "not a function: softmax is 'int' here" in report.text
    assert report.points == 0


def test_what_is_accepted_but_should_be_refused():
    source = """
def lookup(table, positions):
    return np.asarray(table)[np.asarray(positions)]
"""
    report = notebook(source, "check('lookup')")
    assert report.state == "not refused"
    assert "is not refused: " in report.lines[0]
    assert "expected a ValueError or an IndexError, but the call returned" in report.lines[1]


KEY = {label: ("true", f"why {label}") for label in "abcdef"}


def test_a_task_with_a_secret_key(monkeypatch):
    def verdicts(**changed):
        answers = dict.fromkeys("abcdef", "true") | changed
        return f"def verdicts():\n    return {answers!r}"

    report = notebook(verdicts(b="maybe", c=""), "check('verdicts')")
    assert (report.points, report.state) == (0, "wrong")
    assert report.lines == (
        "verdicts: 4 of 6 answered.",
        "Without one of the words true, imprecise or false: b ('maybe'), c.",
    )
    assert notebook(verdicts(), "check('verdicts')").text == (
        "verdicts: 6 of 6 answered; the course holds the key and counts the points."
    )
    for source, words in {
        "def verdicts(): raise NotImplementedError()": "verdicts: not written yet",
        "def verdicts(): return 1 / 0": "verdicts() crashes.\ncrash: ZeroDivisionError",
        "def verdicts(): return ['true'] * 6": "verdicts() is wrong.\nexpected a dict, got 'list'",
        "": "verdicts: not run yet",
    }.items():
        assert words in notebook(source, "check('verdicts')").text

    graded = notebook(verdicts(d="False ", f="unsure"), f"grade('verdicts', key={KEY})")
    assert (graded.points, graded.max_points) == (2, 3)
    assert graded.lines == (
        "verdicts: 2 of 3 points.",
        "d: yours is 'false', the verdict is 'true': why d",
        "Without one of the words true, imprecise or false: f ('unsure').",
    )
    assert graded._repr_mimebundle_()["text/plain"] == "2"
    assert notebook(verdicts(a=" TRUE"), f"grade('verdicts', key={KEY})").passed

    # A student has no key: nbgrader's validation must not call that a failure.
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    alone = notebook(verdicts(), "grade('verdicts')")
    assert not alone._repr_mimebundle_()["text/plain"].replace(".", "").isdigit()
    with pytest.raises(AssertionError, match="imprecise or false: a"):
        notebook(verdicts(a=""), "grade('verdicts')")
    # Grading without the key is a mistake of the course's, and earns nobody points.
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert notebook(verdicts(), "grade('verdicts')")._repr_mimebundle_()["text/plain"] == "0"
    for wrong in (f"grade('softmax', key={KEY})", "grade('verdicts', key={'a': ('true', '')})"):
        with pytest.raises(ValueError, match="is not graded by this key"):
            notebook("def softmax(scores): pass", wrong)


def test_unknown_name():
    with pytest.raises(ValueError, match="no exercise is called 'softmx'; did you mean softmax"):
        check("softmx")
    with pytest.raises(
        ValueError, match=r"no exercise is called '\?'; there are rotation_matrix, "
    ):
        check("?")


def test_too_slow_is_said_in_time_and_hides_nothing_else():
    source = """
def inverse_frequencies(d_model, *, base=10_000.0):
    while base != 10_000.0:
        pass
    return base ** (-np.arange(0, d_model, 2) / d_model)
"""
    report = notebook(source, "check('inverse_frequencies')")
    assert (report.points, report.state) == (2.5, "too slow")
    assert report.lines[:2] == (
        "inverse_frequencies(8, base=500) is too slow: 2.5 of 4 points.",
        "too slow: still running after 5 seconds",
    )


def test_too_slow_is_seen_through_a_bare_except():
    source = """
def inverse_frequencies(d_model, *, base=10_000.0):
    for _ in range(4):
        try:
            while True:
                pass
        except BaseException:
            pass
    raise KeyError("swallowed")
"""
    guard = Guard(EXERCISES["inverse_frequencies"], call_seconds=0.3)
    results = _judge.judge(
        EXERCISES["inverse_frequencies"], notebook(source, "inverse_frequencies"), guard=guard
    )
    assert _judge.earned(results) == 0


def test_the_reference_is_off_limits_through_a_name_kept_before_and_a_bare_except():
    source = """
kept = posenc.inverse_frequencies
def inverse_frequencies(d_model, *, base=10_000.0):
    try:
        return kept(d_model, base=base)
    except BaseException:
        return base ** (-np.arange(0, d_model, 2) / d_model)
"""
    report = notebook(source, "check('inverse_frequencies')")
    assert report.points == 0
    assert "calls the reference" in report.text


@pytest.mark.parametrize(
    "given",
    [
        "def sinusoidal_encoding(positions, d_model, *, base=1e4): return posenc.angles",
        "sinusoidal_encoding = (lambda base: lambda *args, **kwargs: base)(3)",
        "class Own:\n    def encode(self, *args): return self\nsinusoidal_encoding = Own().encode",
    ],
    ids=["a function", "a closure", "a method"],
)
def test_what_a_task_asks_to_do_without_is_seen_by_any_name_and_is_unharmed(given):
    source = f"""
{given}
kept, before = sinusoidal_encoding, sinusoidal_encoding(1, 2)
def accepts(candidate):
    try:
        kept(1, 2)
    except BaseException:
        pass
    return True
"""
    report = notebook(source, "check('accepts')")
    assert report.points == 0
    assert "calls what is off limits: it calls your" in report.text
    assert notebook(source, "(check('accepts'), kept(1, 2) == before)[1]")


def test_every_module_of_answers_belongs_to_a_chapter():
    modules = {path.stem for path in (ROOT / "posenc").glob("[!_]*.py")} - {"plotting"}
    assert modules == {name for names in _guard.CHAPTER_MODULES.values() for name in names}
    for exercise in EXERCISES.values():
        files, earlier, later = _guard._answers(exercise.assignment)
        code = exercise.reference.__code__
        assert code in later
        assert code not in earlier
        # nearest_repeat is graded after the chapter whose module holds it.
        assert code.co_filename in files or exercise.name == "nearest_repeat"


def test_functions_of_earlier_chapters_may_be_used():
    source = """
def shift_matrix(offset, d_model, *, base=10_000.0):
    matrix = np.zeros((d_model, d_model))
    for pair, frequency in enumerate(posenc.inverse_frequencies(d_model, base=base)):
        block = posenc.rotation_matrix(offset * frequency).T
        matrix[2 * pair : 2 * pair + 2, 2 * pair : 2 * pair + 2] = block
    return matrix
"""
    assert notebook(source, "check('shift_matrix')").passed


def test_an_unusual_type_of_an_argument_is_part_of_the_call():
    source = """
def angles(positions, frequencies):
    return np.asarray(positions)[..., np.newaxis] * np.asarray(frequencies)
"""
    report = notebook(source, "check('angles')")
    assert " of int8, " in report.lines[0]
    assert report.args[0].dtype == np.int8


def test_changes_its_input():
    source = """
def add_positions(x, table, *, start=0):
    if start < 0 or start + x.shape[-2] > len(table):
        raise IndexError("outside the table")
    x += table[start : start + x.shape[-2]]
    return x
"""
    report = notebook(source, "check('add_positions')")
    assert (report.points, report.state) == (3.5, "changes its input")
    assert report.lines[0] == (
        "add_positions(array of shape (4, 8), array of shape (6, 8)) changes its input: "
        "3.5 of 4 points."
    )
    assert report.misconceptions == ("changes x",)


def test_warnings_prints_and_the_random_state_cost_nothing(capsys):
    source = """
import random, sys, warnings
def inverse_frequencies(d_model, *, base=10_000.0):
    print("here"); print("there", file=sys.stderr)
    warnings.warn("careful"); np.log(np.array(-1.0)); np.random.seed(3); random.seed(3)
    return base ** (-np.arange(0, d_model, 2) / d_model)
"""
    np.random.seed(1)  # noqa: NPY002
    random.seed(1)
    expected = np.random.RandomState(1).random(), random.Random(1).random()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = notebook(source, "check('inverse_frequencies')")
    assert report.passed
    assert (np.random.random(), random.random()) == expected  # noqa: NPY002
    assert capsys.readouterr() == ("", "")


def test_an_earlier_function_that_fails_is_replaced_by_a_right_one():
    source = (
        IGNORES_BASE
        + """
def wavelengths(d_model, *, base=10_000.0):
    return 2 * np.pi / inverse_frequencies(d_model, base=base)
"""
    )
    report = notebook(source, "check('wavelengths')")
    assert report.points == 3
    assert "(scored with a right inverse_frequencies in place of yours)" in report.text
    # The student's own function is back afterwards.
    assert (
        notebook(source, "(check('wavelengths'), inverse_frequencies(4, base=100.0)[1])")[1] == 0.01
    )


def test_an_earlier_function_that_is_missing_is_replaced_too():
    source = """
def wavelengths(d_model, *, base=10_000.0):
    return 2 * np.pi / inverse_frequencies(d_model, base=base)
"""
    report = notebook(source, "check('wavelengths')")
    assert report.points == 3
    assert "(scored with a right inverse_frequencies in place of yours)" in report.text
    namespace = {"np": np, "check": check}
    exec(source, namespace)
    eval("check('wavelengths')", namespace)
    assert "inverse_frequencies" not in namespace


def test_grading_without_a_course_seed_says_so():
    report = notebook(RIGHT, "grade('inverse_frequencies')")
    assert report.mode == "practice"
    assert "the cases are drawn from the practice seed, not the course's" in report.text


def test_grading_hides_its_inputs_and_shows_a_visible_case_that_fails_alike(monkeypatch):
    monkeypatch.setenv("POSENC_SEED", "a secret")
    report = notebook(IGNORES_BASE, "grade('inverse_frequencies')")
    assert (report.mode, report.points) == ("graded", 2.5)
    assert report.misconceptions == ("base ignored",)
    assert report.lines[0] == "inverse_frequencies(8, base=500) is wrong: 2.5 of 4 points."
    for cases in _judge.draw_cases(EXERCISES["inverse_frequencies"], "a secret"):
        for case in cases:
            assert f"base={case.kwargs.get('base', 'none')}" not in report.text
    assert "a secret" not in report.text


def test_grading_a_failure_that_no_visible_case_shows(monkeypatch):
    monkeypatch.setenv("POSENC_SEED", "a secret")
    visible_only = """
def inverse_frequencies(d_model, *, base=10_000.0):
    known = {10_000.0, 500.0, 100}
    return (base if base in known else 7.0) ** (-np.arange(0, d_model, 2) / d_model)
"""
    assert notebook(visible_only, "check('inverse_frequencies')").passed
    report = notebook(visible_only, "grade('inverse_frequencies')")
    assert report.points == 2.5
    assert report.lines[0] == "inverse_frequencies is wrong: 2.5 of 4 points."
    assert "cases drawn for grading alone; no visible case shows it" in report.lines[1]
    assert "Not right yet: values at another base; an integer base." in report.text


def test_another_seed_draws_other_cases(monkeypatch):
    first = notebook(IGNORES_BASE, "check('inverse_frequencies', seed=1)")
    again = notebook(IGNORES_BASE, "check('inverse_frequencies', seed=1)")
    second = notebook(IGNORES_BASE, "check('inverse_frequencies', seed=2)")
    assert first == again
    assert first.lines != second.lines


def test_what_nbgrader_reads_is_a_number_and_people_read_the_report():
    graded = notebook(IGNORES_BASE, "grade('inverse_frequencies')")._repr_mimebundle_()
    assert float(graded["text/plain"]) == 2.5
    assert "Recognised: base ignored" in graded["text/html"]
    checked = notebook(IGNORES_BASE, "check('inverse_frequencies')")
    assert checked._repr_mimebundle_()["text/plain"] == checked.text


def test_html_and_text_say_the_same():
    from bs4 import BeautifulSoup

    report = notebook(with_body("raise ValueError('<b>bold</b>')"), "check('inverse_frequencies')")
    page = BeautifulSoup(report._repr_html_(), "html.parser")
    assert page.get_text("\n").replace("\n", "") == report.text.replace("\n", "")
    assert page.find("b") is None


def test_the_section_to_read_is_a_link_where_the_notebook_has_the_book_s_address():
    from bs4 import BeautifulSoup

    source = 'SITE = "https://example.org/course/"\n' + IGNORES_BASE
    report = notebook(source, "check('inverse_frequencies')")
    address = "https://example.org/course/02-sinusoidal.html#sinusoidal-frequencies"
    assert report.lines[-1] == f'Read chapter 2, "Frequencies" ({address}).'
    (link,) = BeautifulSoup(report._repr_html_(), "html.parser").find_all("a")
    assert (link["href"], link.get_text()) == (address, address)
    for other in ("'javascript:alert(1)'", "3", "'https://<b>'"):
        report = notebook(f"SITE = {other}\n" + IGNORES_BASE, "check('inverse_frequencies')")
        assert report.lines[-1].endswith("(02-sinusoidal.html#sinusoidal-frequencies).")
        assert "<a" not in report._repr_html_()


def test_validation_raises_with_the_report(monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    with pytest.raises(AssertionError, match="Recognised: base ignored"):
        notebook(IGNORES_BASE, "grade('inverse_frequencies')")
    assert notebook(RIGHT, "grade('inverse_frequencies')").passed


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_reports_are_short_and_print_everywhere(exercise):
    for misconception in exercise.misconceptions:
        for seed, mode in ((None, "visible"), ("x", "practice"), ("y", "graded")):
            report = _check._report(
                exercise, _outside(misconception.function), seed=seed, mode=mode
            )
            assert misconception.name in report.misconceptions
            assert misconception.explanation in report.text
            assert len(report.lines) <= 6
            for encoding in ("cp936", "cp1252", "ascii"):
                report.text.encode(encoding)


def _outside(function):
    """Copy a function of the catalogue, whose files are off limits, into this file."""

    def permitted(*args, **kwargs):
        from posenc.grading._guard import lifted

        with lifted():
            return function(*args, **kwargs)

    return permitted


def test_a_student_needs_numpy_alone_and_no_posix(tmp_path):
    hide = """
import os, sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"fcntl", "resource", "matplotlib", "nbgrader", "IPython"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hidden())
for name in ("fork", "getuid", "setsid", "killpg"):
    vars(os).pop(name, None)
"""
    script = tmp_path / "student.py"
    script.write_text(hide + (ROOT / "tests/student_smoke.py").read_text("utf-8"), "utf-8")
    for encoding in ("cp936", "cp1252"):
        done = subprocess.run(
            [sys.executable, script],
            env={**os.environ, "PYTHONIOENCODING": encoding},
            capture_output=True,
            text=True,
            encoding=encoding,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "too slow" in done.stdout


@pytest.mark.parametrize("seed", ["a", "b", "c"])
def test_to_count_calls_earns_nothing(seed):
    right = len(EXERCISES["accepts"].criteria[0].visible())
    calls = []

    def accepts(candidate):
        calls.append(candidate)
        return len(calls) <= right

    assert check(accepts).points == 4
    calls.clear()
    assert check(accepts, seed=seed).points == 0
