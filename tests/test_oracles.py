"""The comparison with other libraries: what makes it fail, without those libraries."""

import numpy as np
import oracles
import pytest


def row(found, **bounds):
    return oracles.Row("library", "what", found, **bounds)


@pytest.mark.parametrize(
    ("comparison", "status"),
    [
        (row(1e-9, at_most=1e-8), 0),
        (row(0.0, at_most=0.0), 0),
        (row(1e-7, at_most=1e-8), 1),
        (row(np.nan, at_most=1.0), 1),
        (row(np.inf, at_most=1.0), 1),
        (row(2.0, at_least=1.0, reason="a defect"), 0),
        (row(0.0, at_least=1.0, reason="a defect that was mended"), 1),
    ],
)
def test_a_difference_outside_its_bounds_fails(capsys, comparison, status):
    assert oracles.report([row(0.0, at_most=0.0), comparison]) == status
    assert f"2 comparisons, {status} outside" in capsys.readouterr().out


def test_no_comparison_at_all_fails(capsys):
    assert oracles.report([]) == 1


def test_a_library_that_breaks_is_a_failed_row(monkeypatch, capsys):
    def broken():
        raise ImportError("no torch\nsecond line")
        yield

    monkeypatch.setattr(oracles, "SOURCES", (("torch", broken),))
    assert oracles.report(oracles.rows()) == 1
    assert "FAILED ImportError: no torch" in capsys.readouterr().out


def test_arrays_of_other_shapes_are_not_compared():
    with pytest.raises(ValueError, match="shapes differ"):
        oracles.difference(np.zeros((2, 3)), np.zeros((3,)))


def test_differences_are_absolute_or_relative():
    assert oracles.difference([1.0, 2.0], [1.0, 4.0]) == 2.0
    assert oracles.difference([1.0, 2.0], [1.0, 4.0], relative=True) == 0.5
