"""Graders notice mechanical changes to the references, but for those that change nothing."""

import pytest
from mutation import KNOWN, examine, mutants

from posenc.exercises import EXERCISES

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", EXERCISES)
def test_every_mutant_loses_points_or_is_known_to_be_as_good(name):
    findings = examine(EXERCISES[name])
    assert not findings.missed, "\n".join(findings.missed)
    assert not findings.stale, "\n".join(findings.stale)


def test_there_are_many_mutants_of_each_reference():
    counts = {name: sum(1 for _ in mutants(exercise)) for name, exercise in EXERCISES.items()}
    assert min(counts.values()) >= 4, counts
    assert sum(counts.values()) >= KNOWN["mutants"], counts


def test_what_is_known_concerns_functions_that_there_are():
    groups = [group for kind in ("same", "close", "never_run") for group in KNOWN[kind]]
    assert {name for group in groups for name in group["changes"]} <= set(EXERCISES)
    reasons = [group["reason"] for group in groups]
    assert len(set(reasons)) == len(reasons)
