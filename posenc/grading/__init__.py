"""Checking answers: :func:`check` while you work, :func:`grade` in the locked cells.

Both judge a function by the values that it returns, never by what it prints, and both return a
:class:`Report`.
"""

from posenc.grading._check import PRACTICE_SEED, check, grade
from posenc.grading._report import Report

__all__ = ["PRACTICE_SEED", "Report", "check", "grade"]
