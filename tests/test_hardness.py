"""The table of hardness says what the graders do, and does not hide what they miss."""

from dataclasses import replace

import numpy as np
import pytest

from posenc import exercises
from posenc.exercises import EXERCISES, get
from posenc.exercises._model import Misconception
from posenc.grading import _judge, hardness


@pytest.fixture
def wavelengths_alone(monkeypatch):
    """Put a changed exercise in the place of all."""

    def put(**changes):
        changed = replace(get("wavelengths"), **changes)
        monkeypatch.setitem(exercises.EXERCISES, "wavelengths", changed)
        monkeypatch.setattr(hardness, "EXERCISES", {"wavelengths": changed})
        _judge._wrong_results.cache_clear()

    yield put
    _judge._wrong_results.cache_clear()


def with_idea(name, function):
    idea = Misconception(name, function, "wrong", "sinusoidal-wavelengths")
    return (*get("wavelengths").misconceptions, idea)


def right(d_model, *, base=10_000.0):
    return 2 * np.pi * base ** (np.arange(0, d_model, 2) / d_model)


def test_every_mutant_is_killed_and_named_and_every_variant_accepted():
    rows = hardness.table(seeds=1)
    assert [row.function for row in rows] == list(EXERCISES)
    assert sum(row.points for row in rows) == sum(each.points for each in EXERCISES.values())
    for row in rows:
        assert not row.problems, row.problems
        assert row.killed == row.diagnosed == row.mutants == len(get(row.function).misconceptions)
        assert row.accepted == row.variants == len(get(row.function).variants) + 1


def test_the_command_prints_the_table_and_its_totals(wavelengths_alone, capsys):
    wavelengths_alone()
    assert hardness.main(["--seeds", "2"]) == 0
    printed = capsys.readouterr()
    first, row, total = printed.out.splitlines()
    assert first.split()[:3] == ["function", "points", "mutants"]
    assert row.split()[0] == "wavelengths"
    assert total.split()[1:] == row.split()[1:]
    assert not printed.err


def test_a_mutant_that_keeps_its_points_is_listed(wavelengths_alone, capsys):
    wavelengths_alone(misconceptions=with_idea("nothing wrong", right))
    assert hardness.main(["--seeds", "1"]) == 1
    assert "wavelengths: the mutant 'nothing wrong' keeps all its points" in capsys.readouterr().out


def test_a_mutant_that_one_seed_does_not_notice_survives(wavelengths_alone):
    def sometimes(d_model, *, base=10_000.0):
        # The visible cases have no other sizes.
        return right(d_model, base=base) * (1 if d_model in (8, 16) else 2)

    wavelengths_alone(misconceptions=with_idea("sometimes right", sometimes))
    (row,) = hardness.table(seeds=1)
    assert row.survivors == ("sometimes right",)
    assert row.killed == row.mutants - 1
    assert "on the visible cases" in row.problems[0]


def test_a_right_form_that_is_rejected_is_listed(wavelengths_alone, capsys):
    wavelengths_alone(variants={"not right": lambda d_model, *, base=1.0: right(d_model) + 1})
    assert hardness.main(["--seeds", "1"]) == 1
    assert "wavelengths: the variant 'not right' loses points for" in capsys.readouterr().out


def test_two_mutants_that_no_output_tells_apart_are_both_named(wavelengths_alone):
    (first, *_) = get("wavelengths").misconceptions
    wavelengths_alone(misconceptions=with_idea("the same by another name", first.function))
    (row,) = hardness.table(seeds=1)
    assert row.diagnosed == row.mutants


def test_a_mutant_with_the_name_of_another_is_listed(wavelengths_alone, capsys):
    (first, *_) = get("wavelengths").misconceptions

    def like_the_first(d_model, *, base=10_000.0):
        wrong = first.function(d_model, base=base)
        return wrong if d_model in (8, 16) else np.multiply(wrong, 3)

    wavelengths_alone(misconceptions=with_idea("like the first where it shows", like_the_first))
    assert hardness.main(["--seeds", "1"]) == 1
    listed = capsys.readouterr().out
    assert "the mutant 'like the first where it shows' is called" in listed
    assert f"the mutant {first.name!r} is called" in listed


@pytest.mark.parametrize("number", ["-1", "many", "1.5"])
def test_the_number_of_seeds_is_whole(number, capsys):
    with pytest.raises(SystemExit):
        hardness.main([f"--seeds={number}"])
    assert f"expected a whole number of seeds, got '{number}'" in capsys.readouterr().err


@pytest.mark.slow
def test_with_twenty_seeds():
    assert [problem for row in hardness.table() for problem in row.problems] == []
