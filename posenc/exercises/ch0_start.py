"""Placeholder."""

EXERCISES = ()
