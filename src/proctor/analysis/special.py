"""What scipy computes for us, loaded when a comparison needs it: its import takes a quarter of a second."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

# what a double can still say: no p-value is zero
SMALLEST = sys.float_info.min


def binomial_at_most(hits: Any, draws: Any) -> Any:
    """P(X <= hits) for X binomial(draws, 1/2); arrays give arrays."""
    return _special().bdtr(hits, draws, 0.5)


def binomial_at_least(hits: Any, draws: Any, share: Any = 0.5) -> Any:
    """P(X >= hits) for X binomial(draws, share), accurate in the upper tail; arrays give arrays."""
    return _special().bdtrc(hits - 1, draws, share)


def beta_quantile(one: float, other: float, share: float) -> float:
    """The value below which a beta(one, other) variable lies with probability `share`."""
    return float(_special().betaincinv(one, other, share))


def t_quantile(degrees: int, share: float) -> float:
    """The value below which Student's t with so many degrees of freedom lies with probability `share`."""
    return float(_special().stdtrit(degrees, share))


def log_choose(draws: int, hits: Any) -> Any:
    """Natural logarithm of the number of ways to choose `hits` out of `draws`; arrays give arrays."""
    log_gamma = _special().gammaln
    return log_gamma(draws + 1) - log_gamma(hits + 1) - log_gamma(draws - hits + 1)


def _special() -> Any:
    return import_module("scipy.special")
