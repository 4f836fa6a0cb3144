"""Providers over HTTP, from the command line: every way to go wrong is typed, settled, and leaves the run whole."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from provider_runs import KEY, VARIABLE, model, provider, study_of
from real_runs import Proctor, bodies, ended, entries, finals, proctor

from money_runs import check_money
from proctor.core.money import Usd
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_blob
from proctor.evidence.runfolder import RunFolder
from scripted_provider import USAGE, ScriptedProvider

__all__ = ["proctor", "provider"]
pytestmark = pytest.mark.real

GOOD = USAGE[0] + USAGE[1]
TRIES = 5


def ran(proctor: Proctor, study: Path, *, keys: Mapping[str, str] | None = None) -> tuple[int, str, Path]:
    """The run, after it was seen that it ended on the record, verifies, and keeps no secret."""
    run = proctor.home / "run"
    proctor.env |= {VARIABLE: KEY} if keys is None else keys
    status, said = proctor("run", study, "--out", run, "--waive", "git_dirty", "--yes", "--quiet")
    assert (run / "journal.jsonl").exists(), said
    assert ended(run)["exit_status"] == status, said
    proctor.check(run)
    check_money(run)
    assert KEY not in said
    check_secret_is_nowhere(run)
    return status, said, run


def check_secret_is_nowhere(run: Path) -> None:
    """In no file, in no blob, in no spelling that JSON has."""
    spellings = {KEY.encode(), json.dumps(KEY).encode()[1:-1], KEY.replace("/", "\\/").encode()}
    for path in run.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert not [spelling for spelling in spellings if spelling in data], path
    for entry in entries(run):
        for value in entry.body.values():
            if isinstance(value, dict) and "blob" in value:
                data = read_blob(RunFolder(run), value)
                assert not [spelling for spelling in spellings if spelling in data], entry


@dataclass(frozen=True)
class Wanted:
    """What becomes of one row's attempt: outcome, exception, grade's reason; and how each of its exchanges ends.

    `charged` is a number of dollars, or None for what was held.
    """

    outcome: str
    exception: str | None
    reason: str | None
    outcomes: tuple[str, ...]
    error: str | None
    charged: int | None = 0
    estimated: bool = False
    flags: frozenset[str] = frozenset()


def _again(reason: str, outcome: str, charged: int | None = 0, *, flags: tuple[str, ...] = ()) -> Wanted:
    """Tried five times, and then given up."""
    return Wanted(
        "infrastructure", reason, reason, (outcome,) * TRIES, reason, charged, charged is None, frozenset(flags)
    )


def _answered(charged: int | None, *flags: str) -> Wanted:
    return Wanted("completed", None, None, ("settled",), None, charged, charged is None, frozenset(flags))


FAILURES: dict[str, Wanted] = {
    "down": _again("provider_unreachable", "released"),
    "limited": _again("rate_limited", "released"),
    "broken": _again("provider_failed", "released"),
    "said-200": _again("provider_failed", "settled", None),
    "slow": _again("provider_timeout", "settled", None),
    "no-json": _again("reply_unreadable", "settled", None),
    "empty": _again("reply_unreadable", "settled", None),
    "number": _again("reply_unreadable", "settled", None),
    "cut": _again("reply_unreadable", "settled", None),
    "large": Wanted(
        "completed", "reply_too_large", "reply_too_large", ("settled",), "reply_too_large", None, estimated=True
    ),
    "bomb": Wanted(
        "completed", "reply_too_large", "reply_too_large", ("settled",), "reply_too_large", None, estimated=True
    ),
    "rejects": Wanted("completed", "request_rejected", "request_rejected", ("released",), "request_rejected"),
    "context": Wanted("completed", "context_exceeded", None, ("released",), "context_exceeded"),
    "unmetered": _answered(None, "no_usage"),
    "negative": _answered(None, "usage_invalid", "no_usage"),
    "well": _answered(GOOD),
}


def test_every_failure_is_typed_and_settled_and_the_others_go_on(
    proctor: Proctor, provider: ScriptedProvider, tmp_path: Path
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{unused.getsockname()[1]}"
        models = {
            way: model(
                way,
                closed if way == "down" else f"{provider.url}/{way}",
                request_timeout="1s" if way == "slow" else "10m",
            )
            for way in FAILURES
        }
        status, said, run = ran(proctor, study_of(proctor, models))
    # some finals are ungraded
    assert status == 1, said
    by_model = {body["model"]: body["attempt"] for body in bodies(run, Kind.ATTEMPT_ADMITTED)}
    ends = {body["attempt"]: body for body in bodies(run, Kind.ATTEMPT_ENDED)}
    grades = {body["attempt"]: body for body in bodies(run, Kind.TRIAL_FINAL)}
    held = {body["exchange"]: body["held"] for body in bodies(run, Kind.EXCHANGE_ADMITTED)}
    for way, wanted in FAILURES.items():
        attempt = by_model[way]
        end, grade = ends[attempt], grades[attempt]
        exchanges = [body for body in bodies(run, Kind.EXCHANGE_ENDED) if body["attempt"] == attempt]
        assert tuple(body["outcome"] for body in exchanges) == wanted.outcomes, way
        assert {body["error"] for body in exchanges} == {wanted.error}, way
        assert {body["estimated"] for body in exchanges} == {wanted.estimated}, way
        for body in exchanges:
            charged = held[body["exchange"]] if wanted.charged is None else str(Usd(wanted.charged * 10**12))
            assert body["charged"] == charged, way
            assert wanted.flags <= set(body["flags"]), way
        assert (end["outcome"], end["exception"]) == (wanted.outcome, wanted.exception), way
        reason = "no_answer" if way == "context" else wanted.reason
        assert grade["reason"] == reason, way
    assert len(finals(run)) == len(FAILURES)
    retried = [body["retries"] for body in bodies(run, Kind.EXCHANGE_ADMITTED) if body["retries"]]
    assert len(retried) == sum(len(wanted.outcomes) - 1 for wanted in FAILURES.values())
    for words in (["results", run], ["show", run], ["logs", run], ["report", run], ["status", run]):
        code, told = proctor(*words)
        assert (code, "Traceback" in told) == (0, False), told


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("key", "key_rejected"),
        ("quota", "quota_exhausted"),
        ("quota-429", "quota_exhausted"),
        ("model", "model_not_found"),
    ],
)
def test_what_would_end_every_attempt_stops_the_run_and_can_be_mended(
    proctor: Proctor, provider: ScriptedProvider, way: str, reason: str
) -> None:
    base = f"{provider.url}/{way}"
    status, said, run = ran(proctor, study_of(proctor, {"mine": model("mine", base)}, rows=6))
    assert (status, ended(run)["reason"]) == (5, reason), said
    assert reason in said
    assert len(provider.asked) == 1, "never sent again"
    assert finals(run) == {}
    assert check_money(run).total == Usd(0)
    again, said = proctor("resume", run, "--waive", "git_dirty", "--yes", "--quiet")
    assert (again, ended(run)["reason"]) == (5, reason), said
    proctor.check(run)
    assert check_money(run).outcomes == {"released": 2}


@pytest.mark.parametrize("api", ["chat", "anthropic", "gemini"])
def test_each_format_answers_with_and_without_tools(proctor: Proctor, provider: ScriptedProvider, api: str) -> None:
    study = study_of(
        proctor,
        {"mine": model("mine", f"{provider.url}/well", api)},
        rows=3,
        arms='[arms.bare]\ntools = []\n[arms.tool]\ntools = ["times"]\n',
        top='[tools.times]\npython = "tools:times"\n',
    )
    (study.parent / "tools.py").write_text('def times(a: int, b: int) -> str:\n    return f"result-{a * b}"\n')
    status, said, run = ran(proctor, study)
    assert status == 0, said
    assert {grade for grade, _, _ in finals(run).values()} == {"pass"}
    assert {asked.key for asked in provider.asked} == {KEY}
    # one exchange for each row, and where there is a tool one more
    assert check_money(run).total == Usd(3 * (1 + 2) * GOOD * 10**12)
    trial = next(body["trial"] for body in bodies(run, Kind.ATTEMPT_ADMITTED) if body["arm"] == "tool")
    shown = proctor("show", run, trial, "--full")[1]
    assert ("times" in shown, "result-" in shown) == (True, True), shown


def test_an_overrun_is_charged_disclosed_and_followed_by_no_block(proctor: Proctor, provider: ScriptedProvider) -> None:
    models = {"mine": model("mine", f"{provider.url}/overrun")}
    status, said, run = ran(proctor, study_of(proctor, models, rows=4))
    assert (status, ended(run)["reason"]) == (4, "overrun"), said
    counted = check_money(run)
    assert (counted.overruns, counted.total) == (1, Usd(5_011 * 10**12))
    assert len(bodies(run, Kind.BLOCK_ADMITTED)) == 1
    assert "overrun" in proctor("results", run)[1]


def test_usage_that_contradicts_itself_is_charged_and_flagged(proctor: Proctor, provider: ScriptedProvider) -> None:
    models = {"mine": model("mine", f"{provider.url}/contradictory")}
    status, said, run = ran(proctor, study_of(proctor, models))
    assert status == 0, said
    (body,) = bodies(run, Kind.EXCHANGE_ENDED)
    assert body["flags"], "what does not fit together is said"
    assert Usd.parse(body["charged"]) >= Usd(12 * 10**12)


def test_a_limited_provider_that_recovers_costs_what_it_answered(proctor: Proctor, provider: ScriptedProvider) -> None:
    models = {"mine": model("mine", f"{provider.url}/recovers")}
    status, said, run = ran(proctor, study_of(proctor, models))
    assert status == 0, said
    assert [body["outcome"] for body in bodies(run, Kind.EXCHANGE_ENDED)] == ["released", "settled"]
    assert check_money(run).total == Usd(GOOD * 10**12)


def test_a_key_that_a_provider_repeats_is_kept_nowhere(proctor: Proctor, provider: ScriptedProvider) -> None:
    status, said, run = ran(
        proctor, study_of(proctor, {"mine": model("mine", f"{provider.url}/echo")}), keys={VARIABLE: KEY}
    )
    assert status == 0, said
    assert "[redacted:" in proctor("show", run, next(iter(finals(run))), "--full")[1]
    for words in (["show", run], ["results", run, "--jsonl"], ["logs", run], ["report", run]):
        assert KEY not in proctor(*words)[1]


def test_a_key_is_found_beside_the_study(proctor: Proctor, provider: ScriptedProvider) -> None:
    study = study_of(proctor, {"mine": model("mine", f"{provider.url}/well")})
    (study.parent / ".env").write_text(f'export {VARIABLE}="{KEY}"\n')
    status, said, _ = ran(proctor, study, keys={})
    assert status == 0, said
    assert {asked.key for asked in provider.asked} == {KEY}


@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_key_is_refused_before_anything(
    proctor: Proctor, provider: ScriptedProvider, value: str | None
) -> None:
    study, run = study_of(proctor, {"mine": model("mine", f"{provider.url}/well")}), proctor.home / "run"
    if value is not None:
        proctor.env[VARIABLE] = value
    status, said = proctor("run", study, "--out", run, "--waive", "git_dirty", "--yes", "--json")
    assert (status, "key_missing" in said, VARIABLE in said) == (3, True, True), said
    assert not (run / "journal.jsonl").exists()
    assert provider.asked == []


def test_nobody_who_agrees_means_nothing_is_sent(proctor: Proctor, provider: ScriptedProvider) -> None:
    study, run = study_of(proctor, {"mine": model("mine", f"{provider.url}/well")}), proctor.home / "run"
    proctor.env[VARIABLE] = KEY
    status, said = proctor("run", study, "--out", run, "--waive", "git_dirty", "--json")
    assert (status, "spend_not_confirmed" in said) == (3, True), said
    assert provider.asked == []
