"""Money: integer picodollars, exact in every operation, written with 12 decimals.

Floats never carry money. An amount enters as a decimal string, leaves as one, and is compared as an integer or,
where a rule divides, as an exact `Fraction`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal

PICO_PER_USD = 10**12
# 10^15 dollars: larger than any budget, small enough that no sum of entries leaves 128 bits in a reader's language.
MAX_PICO = 10**27

_DECIMAL = re.compile(r"(-?)(0|[1-9][0-9]{0,15})(?:\.([0-9]{1,12}))?", re.ASCII)


@dataclass(frozen=True, order=True, slots=True)
class Usd:
    """An amount of US dollars as an integer number of picodollars."""

    pico: int

    def __post_init__(self) -> None:
        if type(self.pico) is not int:
            raise TypeError(f"picodollars are an int, not {type(self.pico).__name__}")

    @classmethod
    def parse(cls, text: object, *, path: str | None = None) -> Usd:
        """Read a plain decimal string such as `"0.001234500000"`: no exponent, no sign `+`, at most 12 decimals.

        Raises:
            Refusal: `money_invalid` for anything else, floats and integers included.
        """
        match = _DECIMAL.fullmatch(text) if isinstance(text, str) and len(text) <= 32 else None
        if match is None:
            raise Refusal(
                Reason.MONEY_INVALID,
                "an amount of money is not a plain decimal string",
                path=path,
                observed=repr(text)[:80],
                required='a string such as "145.00", at most 12 decimals',
            )
        sign, whole, decimals = match.group(1), match.group(2), match.group(3) or ""
        pico = int(whole) * PICO_PER_USD + int(decimals.ljust(12, "0"))
        if pico > MAX_PICO:
            raise Refusal(Reason.MONEY_INVALID, "an amount of money is out of range", path=path, observed=text)
        return cls(-pico if sign else pico)

    @classmethod
    def ceil(cls, amount: Fraction) -> Usd:
        """The smallest whole number of picodollars that is not below `amount` dollars: costs round up."""
        scaled = amount * PICO_PER_USD
        return cls(-((-scaled.numerator) // scaled.denominator))

    def fraction(self) -> Fraction:
        """The amount in dollars, exact."""
        return Fraction(self.pico, PICO_PER_USD)

    def __add__(self, other: Usd) -> Usd:
        return Usd(self.pico + other.pico)

    def __sub__(self, other: Usd) -> Usd:
        return Usd(self.pico - other.pico)

    def __neg__(self) -> Usd:
        return Usd(-self.pico)

    def __str__(self) -> str:
        whole, decimals = divmod(abs(self.pico), PICO_PER_USD)
        return f"{'-' if self.pico < 0 else ''}{whole}.{decimals:012d}"


ZERO = Usd(0)


def exact_dollars(amount: Usd) -> str:
    """The amount for people and for study files: exact, without the zeros that say nothing, two decimals at least."""
    whole, _, decimals = str(amount).partition(".")
    return f"{whole}.{decimals.rstrip('0').ljust(2, '0')}"
