"""What a student's machine must be able to do, with nothing but posenc and NumPy installed.

Run as a script on macOS and Windows; tests/test_grading.py runs it here.
"""

import sys

import numpy as np

from posenc.grading import check

if __name__ == "__main__":

    def rotation_matrix(angle):
        """Answer rightly."""
        return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])

    right = check("rotation_matrix")
    assert right.passed, right

    def rotation_matrix(angle):  # noqa: F811 - as a student runs a changed cell again
        """Answer wrongly: clockwise."""
        return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])

    wrong = check("rotation_matrix")
    assert not wrong.passed, wrong
    assert wrong.misconceptions == ("clockwise",), wrong

    def rotation_matrix(angle):  # noqa: F811
        """Never end."""
        while True:
            pass

    slow = check("rotation_matrix")
    assert slow.points == 0, slow
    assert "too slow" in slow.text, slow

    unwanted = {"matplotlib", "nbgrader", "IPython"} & set(sys.modules)
    assert not unwanted, unwanted
    print(right, wrong, slow, sep="\n\n")
