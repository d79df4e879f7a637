"""A grader that shuts nothing in: what a submission of the corpus finds where nobody stops it.

Started with the folder of a submission, the name of a function and the cells to run; it prints
whether the function returns what is right.
"""

import json
import os
import sys

import numpy as np

import posenc
from posenc.exercises import EXERCISES

ARGUMENTS = {"wavelengths": (8,), "angles": ([1.0, 2.0], [3.0, 4.0]), "verdicts": ()}
NAME = sys.argv[2] if __name__ == "__main__" else "wavelengths"
key = expected = (
    dict.fromkeys("abcdef", "true")
    if NAME == "verdicts"
    else getattr(posenc, NAME)(*ARGUMENTS[NAME])
)


class Judge:
    """Has everything at hand that a careless grader has."""

    def _ask(self, number, args, kwargs):
        return [EXERCISES[NAME].reference][number](*args, **kwargs)

    def grade(self, cells):
        """Return whether the function that the cells define returns what is right."""
        names = {"__name__": "notebook"}
        key = globals()["key"]
        for cell in cells:
            exec(cell, names)
        found = names[NAME](*ARGUMENTS[NAME])
        return found == key if isinstance(key, dict) else bool(np.allclose(found, key))


if __name__ == "__main__":
    child = os.fork()
    if child == 0:
        os.chdir(sys.argv[1])
        print(json.dumps(Judge().grade(json.loads(sys.argv[3]))), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
