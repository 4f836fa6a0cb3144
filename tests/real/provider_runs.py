"""Studies whose models answer on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from real_runs import Proctor

from money_runs import Plan, sums, write_study
from scripted_provider import ScriptedProvider

# in no form that a provider's keys have: known because it is the key, and not by its looks
KEY = "planted/secret+0123456789"
VARIABLE = "SCRIPTED_PROVIDER_KEY"
# a dollar for a token
PRICE = 'input = "1"\noutput = "1"\nper = "1"\nsource = "made up for a test"\n'

MOST = 100


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as it:
        yield it


def model(name: str, base_url: str, api: str = "chat", **more: Any) -> str:
    values = {"provider": "mine", "api": api, "model": f"{name}-1", "base_url": base_url, "api_key_env": VARIABLE}
    values |= {"max_output_tokens": MOST, "request_timeout": "10m", **more}
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in values.items()]
    return f"{''.join(lines)}[models.{name}.price]\n{PRICE}"


def study_of(proctor: Proctor, models: Mapping[str, str], *, rows: int = 1, each: int = 20_000, **more: Any) -> Path:
    money = Plan(dict.fromkeys(models, "1000"), allocation=str(each * len(models)), margin=str(each * len(models)))
    values: dict[str, Any] = {"stage": "lanes = 1\nreplacements = 0\n", **more}
    return write_study(proctor.home / "study", rows=sums(rows), models=models, money=money, **values)
