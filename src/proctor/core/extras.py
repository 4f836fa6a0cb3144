"""Packages that are optional: those of an extra, as `pyproject.toml` has it, and how to come by them."""

from __future__ import annotations

import re
import shlex
import sys
from importlib import import_module
from importlib.metadata import requires
from typing import Any

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal


def require_extra(module: str, package: str, extra: str, *, does: str, path: str, instead: str = "") -> Any:
    """A module of an optional package; `does` says what it is for, `instead` what can be done without it.

    Raises:
        Refusal: `extra_missing` where it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        # not by a name that an index may give to something else: proctor itself may have come from a clone
        install = shlex.join([sys.executable, "-m", "pip", "install", *_packages(extra)])
        raise Refusal(
            Reason.EXTRA_MISSING,
            f"{does} {package}, which is not installed",
            path=path,
            observed=str(error),
            required=package,
            remedy=f"Install it beside proctor: `{install}` (its extra `{extra}`){instead}.",
        ) from error


def _packages(extra: str) -> list[str]:
    wanted = [each.partition(";") for each in requires("proctor") or ()]
    return [package.strip() for package, _, marker in wanted if re.search(rf"\bextra *== *['\"]{extra}['\"]", marker)]
