"""Admission of a gateway of its own: everything that is wrong is said at once, and nothing is written before."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proctor.admission.standalone import AdmittedGateway, admit_gateway
from proctor.admission.standalone_models import GatewayRequest, Models
from proctor.core.clock import SystemClock
from proctor.core.money import Usd
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.calls import CallRecord
from proctor.evidence.exchanges import unanswered
from proctor.evidence.kinds import Kind

KEYS = {"OPENAI_API_KEY": "sk-planted-0123456789abcdef", "ANTHROPIC_API_KEY": " "}


def request(folder: Path, **changes: Any) -> GatewayRequest:
    """For OpenAI's models, at the prices of a day."""
    fields = {"upstream": "openai", "budget": "5.00", "record": folder / "calls.jsonl", "priced_on": "2026-06-01"}
    return GatewayRequest(**{**fields, **changes})


async def reasons(asked: GatewayRequest, environ: dict[str, str] | None = None) -> list[str]:
    said = await admit_gateway(asked, KEYS if environ is None else environ)
    assert isinstance(said, tuple), "it was admitted"
    return [refusal.reason.id for refusal in said]


async def test_what_is_admitted_has_its_record_and_the_one_key(tmp_path: Path) -> None:
    admitted = await admit_gateway(request(tmp_path, models=("gpt-4o-mini",)), KEYS)
    assert isinstance(admitted, AdmittedGateway)
    assert admitted.keys == {"OPENAI_API_KEY": KEYS["OPENAI_API_KEY"]} and admitted.budget == Usd.parse("5")
    assert admitted.token.run_id == admitted.record.run_id
    await admitted.record.close({})
    said = (tmp_path / "calls.jsonl").read_text()
    assert '"upstream":"openai"' in said and "sk-planted" not in said


async def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "calls.jsonl").write_text("somebody's notes\n")
    asked = request(tmp_path, budget="0", models=("gpt-4o-mini-hack",))
    assert await reasons(asked, {}) == ["money_invalid", "price_unknown", "key_missing", "would_overwrite"]
    assert (tmp_path / "calls.jsonl").read_text() == "somebody's notes\n"


@pytest.mark.parametrize("budget", ["0", "-1", "nan", "inf", "1e3", "", "five", "0.0000000000001", "9" * 40, "1,5"])
async def test_a_budget_is_an_amount_above_zero(tmp_path: Path, budget: str) -> None:
    assert await reasons(request(tmp_path, budget=budget)) == ["money_invalid"]
    assert not list(tmp_path.iterdir()), "nothing was written"


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"upstream": "openay"}, ["provider_unknown"]),
        ({"upstream": "http://u:secret@h/v1", "price": ("1", "2")}, ["invalid_value"]),
        ({"upstream": "ftp://h/v1", "price": ("1", "2")}, ["invalid_value"]),
        ({"upstream": "http://h/v1?x=1", "price": ("1", "2"), "models": ("m",)}, ["invalid_value"]),
        ({"upstream": "http://h/v1", "models": ("m",)}, ["price_unknown"]),
        ({"upstream": "http://h/v1", "price": ("1", "2")}, ["output_unbounded"]),
        ({"upstream": "http://h/v1", "price": ("-1", "2"), "max_output_tokens": 9}, ["invalid_value"]),
        ({"upstream": "http://h/v1", "price": ("a", "2"), "max_output_tokens": 9}, ["invalid_value"]),
        ({"upstream": "openay", "models": ("m",)}, ["provider_unknown"]),
        ({"upstream": "openay", "price": ("1", "2")}, ["provider_unknown"]),
        ({"upstream": "http://h/v1"}, ["price_unknown"]),
        ({"price": ("a", "2")}, ["invalid_value"]),
        ({"upstream": "anthropic"}, ["key_missing"]),
        ({"key_env": "NO_SUCH_KEY"}, ["key_missing"]),
        ({"models": ("gpt-4o-mini", "whisper-1", "")}, ["price_unknown", "invalid_value"]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else None,
)
async def test_each_wrong_word_is_named(tmp_path: Path, changes: dict[str, Any], wanted: list[str]) -> None:
    assert await reasons(request(tmp_path, **changes)) == wanted
    assert not list(tmp_path.iterdir()), "nothing was written"


async def test_no_refusal_repeats_a_password(tmp_path: Path) -> None:
    said = await admit_gateway(request(tmp_path, upstream="http://u:secret@h/v1", price=("1", "2")), KEYS)
    assert isinstance(said, tuple) and all("secret" not in str(refusal.as_record()) for refusal in said)


async def spent(path: Path, charged: str, held: str | None = None) -> None:
    """A record that has charged so much, and holds something for an exchange that never ended."""
    record = await CallRecord.open(path, {}, SystemClock())
    for number, amount in enumerate([charged, *([held] if held else [])]):
        exchange = f"1:m/{number}"
        record.post(Kind.EXCHANGE_ADMITTED, {"exchange": exchange, "model": "m", "held": amount})
        if number == 0:
            end = {"exchange": exchange, "outcome": "settled", "charged": amount, "overrun": False}
            record.post(Kind.EXCHANGE_ENDED, {**end, **unanswered(None, estimated=False)})
    await record.close({})


async def test_a_record_goes_on_below_its_budget_alone(tmp_path: Path) -> None:
    asked = request(tmp_path, models=("gpt-4o-mini",))
    await spent(asked.record, "3.00", held="2.00")
    assert await reasons(asked) == ["ceiling_reached"], "what was in flight counts in full"
    admitted = await admit_gateway(replace(asked, budget="5.01"), KEYS)
    assert isinstance(admitted, AdmittedGateway) and admitted.record.state.total == Usd.parse("5")
    with pytest.raises(Refusal) as refused:
        await admit_gateway(replace(asked, budget="9"), KEYS)
    assert refused.value.reason is Reason.RUN_LOCKED
    await admitted.record.close({})


async def opened(asked: GatewayRequest, environ: dict[str, str] | None = None) -> AdmittedGateway:
    """Admitted, and closed again."""
    admitted = await admit_gateway(asked, KEYS if environ is None else environ)
    assert isinstance(admitted, AdmittedGateway), [str(refusal) for refusal in admitted]
    await admitted.record.close({})
    return admitted


async def test_a_record_may_be_empty_or_stand_in_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    (tmp_path / "calls.jsonl").touch()
    for record in (tmp_path / "calls.jsonl", tmp_path / "some/folder/calls.jsonl"):
        await opened(request(tmp_path, record=record))
        assert record.stat().st_size > 0


async def test_below_a_file_no_record_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "notes").touch(0o755)
    assert await reasons(request(tmp_path, record=tmp_path / "notes/calls.jsonl")) == ["out_unusable"]


async def test_no_record_can_be_made_where_we_may_not_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert await reasons(request(tmp_path)) == ["out_unusable"]
    assert not list(tmp_path.iterdir())


async def test_prices_are_those_of_the_day_that_is_asked_for_or_of_today(tmp_path: Path) -> None:
    for day in ("2026-06-01", None):
        record = tmp_path / f"{day}.jsonl"
        before = SystemClock().utc()[:10]
        await opened(request(tmp_path, record=record, priced_on=day))
        said = json.loads(record.read_text().splitlines()[0])["body"]
        assert said["priced_on"] in ((before, SystemClock().utc()[:10]) if day is None else (day,))


async def test_what_needs_no_key_is_handed_none(tmp_path: Path) -> None:
    assert (await opened(request(tmp_path, upstream="practice"), {})).keys == {}


async def test_a_folder_in_the_records_place_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "calls.jsonl").mkdir()
    assert (await reasons(request(tmp_path)))[0] in ("evidence_unreadable", "out_unusable")


def test_models_are_those_of_the_table_by_exact_names(tmp_path: Path) -> None:
    models = Models(request(tmp_path))
    found = models.resolve("gpt-4o-mini")
    assert found.price.rows and found.context_window == found.max_output_tokens == 128_000
    assert models.resolve("gpt-4o-mini") is found
    assert "gpt-4o-mini" in models.names() and models.api == "chat"
    for name, reason in {"gpt-4o-mini-hack": Reason.PRICE_UNKNOWN, "": Reason.MODEL_NOT_LISTED}.items():
        with pytest.raises(Refusal) as refused:
            models.resolve(name)
        assert refused.value.reason is reason


def test_models_that_are_named_are_all(tmp_path: Path) -> None:
    models = Models(request(tmp_path, models=("gpt-4o-mini",), max_output_tokens=500))
    assert models.names() == ["gpt-4o-mini"] and models.resolve("gpt-4o-mini").max_output_tokens == 500
    with pytest.raises(Refusal) as refused:
        models.resolve("gpt-4o")
    assert refused.value.reason is Reason.MODEL_NOT_LISTED


def test_a_server_of_ones_own_has_the_price_that_is_given_and_no_key(tmp_path: Path) -> None:
    asked = request(
        tmp_path, upstream="http://h:8000/v1/", price=("0.25", "2"), max_output_tokens=64, mutations=("include_usage",)
    )
    found = Models(asked).resolve("any/name")
    assert (found.base_url, found.api, found.api_key_env) == ("http://h:8000/v1", "chat", None)
    assert found.mutations == ("include_usage",) and found.price.source.startswith("--price")
    assert Models(replace(asked, api="anthropic")).resolve("m").api == "anthropic"


def test_the_practice_upstream_needs_nothing(tmp_path: Path) -> None:
    models = Models(request(tmp_path, upstream="practice"))
    assert models.resolve(models.names()[0]).synthetic and models.api == "practice"
