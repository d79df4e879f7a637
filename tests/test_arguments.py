"""Arguments that cannot be served raise one error that says what was got and what was expected."""

import inspect
import re

import pytest
from argument_cases import CASES

import posenc


@pytest.mark.parametrize("name", CASES)
def test_refused(name):
    call, exception, fragments = CASES[name]
    with pytest.raises((ValueError, TypeError, IndexError)) as caught:
        call()
    message = str(caught.value)
    assert type(caught.value) is exception
    for fragment in fragments:
        assert fragment in message


@pytest.mark.parametrize("name", posenc.__all__)
def test_every_argument_has_a_case(name):
    names = [case for case in CASES if re.match(rf"{name}\b", case)]
    for argument, parameter in inspect.signature(getattr(posenc, name)).parameters.items():
        if parameter.kind is not parameter.VAR_KEYWORD:
            assert any(re.search(rf"\b{argument}\b", case) for case in names), argument
