"""TOML whose integers fit in 64 bits, and are refused where they do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core import toml


@given(st.integers(-(2**66), 2**66), st.booleans())
def test_integers_are_those_of_64_bits(number: int, deep: bool) -> None:
    text = f"a = [{{b = {number}}}]\n" if deep else f"[a]\nb = {number}\n"
    if -(2**63) <= number < 2**63:
        assert toml.loads(text)["a"] == ([{"b": number}] if deep else {"b": number})
    else:
        with pytest.raises(ValueError, match="64 bits"):
            toml.loads(text)


def test_one_that_could_not_be_written_out_is_refused() -> None:
    with pytest.raises(ValueError, match="64 bits"):
        toml.loads(f"a = 0x{'f' * 20_000}\n")
