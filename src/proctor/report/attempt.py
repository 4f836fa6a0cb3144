"""One attempt for people: how it went, in which worlds, with which grade, tests and files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from proctor.core.boundaries import Boundary
from proctor.evidence.kinds import Kind
from proctor.report.text import amount, count, field, moment, plain, safe, seconds, table
from proctor.report.trial import AttemptTold

_BYTES = frozenset({"memory", "storage", "tmp"})


def attempt_lines(told: AttemptTold, tests: Mapping[str, Any] | None, *, question: bool = False) -> list[str]:
    """Everything about an attempt but its conversation; `tests` is its tests.json, where there is one."""
    lines = [line for name, text in _facts(told, question) for line in field(name, text)]
    lines += _world_facts(_worlds(told))
    limits = [[body["role"], *_limit(limit)] for body in _worlds(told) for limit in body["limits"]]
    if limits:
        lines += ["", *table(["limit of", "what", "wanted", "in force", "how, or why not"], limits)]
    if tests is not None and tests["tests"]:
        lines += ["", *table(["test", "ctrf", "junit"], [_test(test) for test in tests["tests"]])]
    files = [[file["path"], amount(file["size"]), file["role"]] for file in told.files()]
    if files:
        lines += ["", *table(["file", "size", "role"], files, right=[1])]
    return lines


def _facts(told: AttemptTold, question: bool) -> Iterator[tuple[str, str]]:
    admitted, ended = told.last(Kind.ATTEMPT_ADMITTED), told.last(Kind.ATTEMPT_ENDED)
    if ended is None:
        yield "outcome", "in flight, or its process died"
    else:
        why = f" ({ended['exception']})" if ended["exception"] else ""
        yield "outcome", safe(f"{ended['outcome']}{why}" + (f": {ended['message']}" if ended["message"] else ""))
    if admitted is not None:
        if admitted["supersedes"]:
            yield "supersedes", f"{safe(admitted['supersedes'])}, which was interrupted or lost"
        if admitted["replaces"]:
            yield "replaces", f"{safe(admitted['replaces'])}, which infrastructure ended"
        if not question:
            yield "folder", safe(admitted["folder"])
    yield "clock", f"{moment(told.since)} to {moment(told.until)}"
    if ended is not None and ended["timing"]:
        phases = sorted(ended["timing"].items(), key=lambda item: _PHASES.get(item[0], len(_PHASES)))
        yield "phases", safe(" · ".join(f"{phase} {seconds(ns)}" for phase, ns in phases))
    yield from _agent(told)
    yield from _verifier(told)


def _agent(told: AttemptTold) -> Iterator[tuple[str, str]]:
    started, ended = told.last(Kind.AGENT_STARTED), told.last(Kind.AGENT_ENDED)
    if started is not None:
        version = started["version"]
        known = f"version {version['value']}" if version["available"] else f"no version: {version['reason']}"
        limit = "no deadline" if started["timeout_sec"] is None else f"deadline {started['timeout_sec']} s"
        skills = ", ".join(skill["name"] for skill in started["skills"])
        yield "agent", safe(f"{started['agent']}, {known}, {limit}" + (f", skills {skills}" if skills else ""))
    if ended is not None:
        why = f" ({ended['exception']})" if ended["exception"] else ""
        yield "", safe(f"{how_ended(ended['ended'])} after {seconds(ended['duration_ns'])}{why}")


def _verifier(told: AttemptTold) -> Iterator[tuple[str, str]]:
    ended, graded = told.last(Kind.VERIFIER_ENDED), told.last(Kind.ATTEMPT_GRADED)
    for refused in told.said.get(Kind.EXCHANGE_REFUSED, ()):
        yield "refused", safe(f"{refused['reason']}: {refused['message']}")
    if ended is not None:
        yield (
            "verifier",
            safe(f"{ended['assurance']}, {how_ended(ended['ended'])} after {seconds(ended['duration_ns'])}"),
        )
    if graded is None:
        return
    why = f" ({graded['reason']})" if graded["reason"] else ""
    reward = "" if graded["reward"] is None else f", reward {graded['reward']}"
    yield "grade", safe(f"{graded['grade']}{why}{reward}")
    if len(graded["rewards"]) > 1:
        yield "rewards", safe(", ".join(f"{name} = {number}" for name, number in graded["rewards"].items()))
    for sentence in graded["disclosures"]:
        yield "disclosed", safe(sentence)


def how_ended(ended: Mapping[str, Any]) -> str:
    """How a command ended, in words."""
    if ended["start_error"]:
        return f"could not be started: {ended['start_error']}"
    parts = [f"signal {ended['signal']}" if ended["signal"] is not None else f"exit code {ended['exit_code']}"]
    if ended["timed_out"]:
        parts.insert(0, "ran out of time")
    if ended["limit_hit"]:
        parts.append(f"hit its {ended['limit_hit']} limit")
    if ended["leftovers"]:
        parts.append(f"{count(ended['leftovers'], 'process', 'processes')} that it left running ended by force")
    if ended["output_dropped"]:
        parts.append(f"{amount(ended['output_dropped'])} of output not kept")
    return ", ".join(parts)


def _worlds(told: AttemptTold) -> list[Mapping[str, Any]]:
    return told.said.get(Kind.SANDBOX_STARTED, [])


def _world_facts(worlds: list[Mapping[str, Any]]) -> list[str]:
    """A column a world: what is really in force in it."""
    if not worlds:
        return []
    columns = [_facts_of(body) for body in worlds]
    names = sorted({name for column in columns for name in column})
    head = ["sandbox of", *(f"the {body['role']}" for body in worlds)]
    rows = [[name, *(column.get(name) for column in columns)] for name in names]
    return ["", *table(head, [row for row in rows if any(value is not None for value in row[1:])])]


def _facts_of(body: Mapping[str, Any]) -> dict[str, Any]:
    facts = {name.replace("_", " "): _fact(value) for name, value in body["facts"].items()}
    facts["forked"] = "from the agent's world, before the tests" if body["from_snapshot"] else None
    if body["base_substituted"]:
        facts["stands in for"] = _fact(body["base_substituted"]["image"])
    return facts


def _fact(value: Any) -> Any:
    if value in ("", [], {}):
        return None
    return value if isinstance(value, bool) else plain(value) if value is not None else None


def _limit(limit: Mapping[str, Any]) -> list[Any]:
    def shown(value: Any) -> Any:
        return amount(value) if value is not None and limit["name"] in _BYTES else value

    return [limit["name"], shown(limit["wanted"]), shown(limit["enforced"]), limit["how"] or limit["why_not"]]


def _test(test: Mapping[str, Any]) -> list[Any]:
    return [test["name"], _rows(test["ctrf"]), _rows(test["junit"])]


def _rows(rows: Any) -> str | None:
    return ", ".join(str(row["status"]) for row in rows) if isinstance(rows, list) else rows


_ORDER = ("start", Boundary.ENV_READY, "agent", Boundary.PRE_VERIFY, Boundary.POST_VERIFY, "close")
_PHASES = {name: at for at, name in enumerate(_ORDER)}
