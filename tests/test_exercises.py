"""The catalogue: every misconception is caught and named, every right variant is accepted."""

import inspect

import numpy as np
import pytest

from posenc.exercises import ASSIGNMENTS, EXERCISES, KEYED, SECTIONS, for_assignment, get
from posenc.grading import _judge, hardness
from posenc.grading._guard import Guard

# None runs the visible cases.
SEEDS = (None, "a", "b", "c")
MANY_SEEDS = tuple(f"seed {number}" for number in range(20))

# Points that the course promises, function by function.
POINTS = {
    "rotation_matrix": 2,
    "split_pairs": 1,
    "angles": 2,
    "softmax": 2,
    "self_attention": 6,
    "equivariance_gap": 4,
    "classify_symmetry": 3,
    "causal_mean": 2,
    "prefix_order_gap": 3,
    "inverse_frequencies": 4,
    "sinusoidal_encoding": 8,
    "wavelengths": 3,
    "add_positions": 4,
    "impossible_pairs": 2,
    "accepts": 4,
    "shift_matrix": 6,
    "shift_encoding": 4,
    "position_kernel": 3,
    "shift_linearity": 4,
    "toeplitz_r2": 3,
    "lookup": 2,
    "lookup_gradient": 4,
    "rope": 9,
    "rope_scores": 3,
    "relative_errors": 4,
    "convert_layout": 3,
    "nearest_repeat": 2,
}
CHAPTER_POINTS = [5, 20, 25, 20, 25, 5]

MUTANTS = [
    pytest.param(exercise, misconception, id=f"{exercise.name}: {misconception.name}")
    for exercise in EXERCISES.values()
    for misconception in exercise.misconceptions
]
VARIANTS = [
    pytest.param(exercise, function, id=f"{exercise.name}: {name}")
    for exercise in EXERCISES.values()
    for name, function in {**exercise.variants, "reference": exercise.reference}.items()
]


def judged(exercise, function, seed):
    return _judge.judge(exercise, function, seed=seed, guard=Guard(None))


def alike(exercise, misconception, seed):
    """Return the names of the misconceptions that no output tells from this one, its own too."""
    wrong = {seed: _judge._wrong_results(exercise.name, seed)}
    return {
        name
        for name in wrong[seed]
        if hardness._never_apart(exercise, wrong, name, misconception.name)
    }


def findings(results):
    return [f"{r.criterion.name}: {r.failure}" for r in results if not r.passed]


def test_the_promised_functions_and_points():
    assert [(name, exercise.points) for name, exercise in EXERCISES.items()] == list(POINTS.items())
    assert {name: task.points for name, task in KEYED.items()} == {"verdicts": 3}
    by_chapter = [sum(task.points for task in for_assignment(name)) for name in ASSIGNMENTS]
    assert by_chapter == CHAPTER_POINTS
    assert sum(by_chapter) == 100


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_points_come_in_halves_and_properties_lead(exercise):
    assert all(criterion.points % 0.5 == 0 for criterion in exercise.criteria)
    assert any(criterion.kind == "value" for criterion in exercise.criteria)
    # Reports show the first failure, and a property says more than a value.
    kinds = ["property" if c.kind == "property" else "another" for c in exercise.criteria]
    assert kinds == sorted(kinds, reverse=True)
    names = [criterion.name for criterion in exercise.criteria]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_the_catalogue_is_rich_enough(exercise):
    assert len(exercise.misconceptions) >= 2
    assert len(exercise.variants) >= 4
    assert exercise.assignment in ASSIGNMENTS
    assert exercise in for_assignment(exercise.assignment)
    names = [misconception.name for misconception in exercise.misconceptions]
    assert len(set(names)) == len(names)
    for misconception in exercise.misconceptions:
        assert misconception.section in SECTIONS
        # This chapter's, or one that came before it.
        page_chapter = int(SECTIONS[misconception.section].page.split("-")[0])
        assert page_chapter <= ASSIGNMENTS[exercise.assignment].chapter
        assert misconception.explanation.isascii()
        assert not misconception.explanation.endswith(".")
        own = set(inspect.signature(misconception.function).parameters)
        assert own <= set(inspect.signature(exercise.reference).parameters)


@pytest.mark.parametrize(("exercise", "function"), VARIANTS)
def test_right_variants_get_full_points(exercise, function):
    for seed in SEEDS:
        results = judged(exercise, function, seed)
        assert _judge.earned(results) == exercise.points, (seed, findings(results))


@pytest.mark.parametrize(("exercise", "misconception"), MUTANTS)
def test_misconceptions_lose_points_and_are_named(exercise, misconception):
    for seed in SEEDS:
        results = judged(exercise, misconception.function, seed)
        assert _judge.earned(results) < exercise.points, seed
        named = set(_judge.recognise(exercise, results, seed=seed))
        assert named == alike(exercise, misconception, seed), seed


@pytest.mark.slow
@pytest.mark.parametrize(("exercise", "function"), VARIANTS)
def test_right_variants_with_many_seeds(exercise, function):
    for seed in MANY_SEEDS:
        results = judged(exercise, function, seed)
        assert _judge.earned(results) == exercise.points, (seed, findings(results))


@pytest.mark.slow
@pytest.mark.parametrize(("exercise", "misconception"), MUTANTS)
def test_misconceptions_with_many_seeds(exercise, misconception):
    for seed in MANY_SEEDS:
        results = judged(exercise, misconception.function, seed)
        assert _judge.earned(results) < exercise.points, seed
        named = set(_judge.recognise(exercise, results, seed=seed))
        assert named == alike(exercise, misconception, seed), seed


def like_the_reference(exercise, fill):
    def function(*args, **kwargs):
        expected = exercise.reference(*args, **kwargs)
        if isinstance(expected, tuple):
            return tuple(fill(np.asarray(part)) for part in expected)
        if isinstance(expected, str | bool | set):
            return type(expected)()
        return fill(np.asarray(expected))

    return function


CONSTANTS = (
    "",
    "invariant",
    "equivariant",
    "neither",
    True,
    False,
    1,
    (0.0, 0.0),
    (1, 1.0),
    (0, 1),
)


EMPTY_ANSWERS = {
    "None": lambda exercise: lambda *args, **kwargs: None,
    "a crash": lambda exercise: lambda *args, **kwargs: 1 / 0,
    "a ValueError": lambda exercise: lambda *args, **kwargs: int("no"),
    "the first argument": lambda exercise: lambda *args, **kwargs: args[0],
    "zero": lambda exercise: lambda *args, **kwargs: 0.0,
    "zeros": lambda exercise: like_the_reference(exercise, np.zeros_like),
    "ones": lambda exercise: like_the_reference(exercise, np.ones_like),
    "nan": lambda exercise: like_the_reference(exercise, lambda part: part * np.nan),
    "noise": lambda exercise: like_the_reference(
        exercise, lambda part: np.random.default_rng(0).standard_normal(part.shape)
    ),
}


EMPTY_ANSWERS |= {
    f"always {constant!r}": lambda exercise, constant=constant: lambda *args, **kwargs: constant
    for constant in (*CONSTANTS, set())
}


@pytest.mark.parametrize("answer", EMPTY_ANSWERS)
@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_empty_answers_earn_nothing(exercise, answer):
    function = EMPTY_ANSWERS[answer](exercise)
    for seed in SEEDS:
        assert _judge.earned(judged(exercise, function, seed)) == 0, seed


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_a_seed_draws_the_same_cases_again_and_another_seed_others(exercise):
    def drawn(seed):
        return repr([[vars(case) for case in cases] for cases in _judge.draw_cases(exercise, seed)])

    assert drawn("one") == drawn("one")
    assert drawn("one") != drawn("two")


def test_unknown_names_are_met_with_the_known_ones():
    with pytest.raises(ValueError, match="did you mean softmax"):
        get("soft_max")
    with pytest.raises(ValueError, match="02-sinusoidal"):
        for_assignment("02-sinus")
