"""The journal told for people: one line an entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.core.ids import trial_label
from proctor.core.money import Usd
from proctor.core.reasons import Reason
from proctor.evidence.entries import JOURNAL, Entry
from proctor.evidence.kinds import Kind
from proctor.report.attempt import how_ended
from proctor.report.costs import reached_text
from proctor.report.reading import understood
from proctor.report.summary import ending
from proctor.report.text import count, dollars, moment, safe, seconds


class Teller:
    """Tells entries in order; remembers the names of attempts in flight."""

    def __init__(self) -> None:
        self._labels: dict[str, str] = {}

    def line(self, entry: Entry) -> str:
        """`time  what`, on one line.

        Raises:
            Refusal: `evidence_damaged` where a body is not its kind's.
        """
        with understood(f"{JOURNAL}:{entry.seq + 1}"):
            kind = entry.kind
            what = self._what(kind, entry.body) if isinstance(kind, Kind) else f"{kind} (not known here)"
        return f"{moment(entry.time)}  {safe(what)}"

    def _what(self, kind: Kind, body: Mapping[str, Any]) -> str:
        attempt = body.get("attempt")
        if kind is Kind.ATTEMPT_ADMITTED:
            parts = (body[name] for name in ("task", "model", "arm", "epoch", "number"))
            self._labels[body["attempt"]] = trial_label(*parts)
        if kind is Kind.TRIAL_FINAL:
            return _of_run(kind, body, self._labels.pop(body["attempt"], None))
        if attempt is None:
            return _of_run(kind, body, None)
        return f"{self._labels.get(attempt, attempt)}: {_of_attempt(kind, body)}"


def _of_run(kind: Kind, body: Mapping[str, Any], attempt: str | None) -> str:
    match kind:
        case Kind.RUN_ADMITTED:
            planned = body["planned"]["trials"]
            return (
                f"run {body['run_id']} admitted: {body['study']} · {body['stage']}, {count(planned, 'trial')} planned"
            )
        case Kind.RUN_RESUMED:
            opening = body["opening"]
            after = "" if body["previous_ended"] else ", after a process that ended without a word"
            return f"run resumed by process {opening['pid']} on {opening['host']}{after}"
        case Kind.RUN_RECOVERED:
            aside, lost = count(len(body["quarantined"]), "piece"), count(len(body["lost"]), "attempt")
            return f"recovered: {aside} set aside, {lost} lost"
        case Kind.CHECKPOINT_MADE:
            return f"checkpoint over {count(body['size'], 'entry', 'entries')}"
        case Kind.CHECKPOINT_ANCHORED:
            return f"{count(body['size'], 'entry', 'entries')} anchored at {body['anchor']}"
        case Kind.ANCHOR_FAILED:
            tries = count(body["attempts"], "time")
            return f"anchor {body['anchor']} failed {tries} ({body['reason']}): {body['message']}"
        case Kind.BLOCK_ADMITTED:
            model = f" · {body['model']}" if body["model"] is not None else ""
            return f"block {body['block']} begins: {body['task']}{model} · {body['epoch']}"
        case Kind.BLOCK_ENDED:
            return f"block {body['block']} ends"
        case Kind.TRIAL_FINAL:
            return f"{attempt or body['trial']}: final: {_grade(body)}"
        case Kind.CEILING_REACHED:
            return reached_text(body)
        case Kind.RUN_PAUSED:
            return "paused: nothing new starts"
        case Kind.RUN_UNPAUSED:
            return "goes on"
        case Kind.RUN_DRAINING:
            return f"draining ({body['cause']}): nothing new starts"
        case Kind.RUN_ENDED:
            totals, reason = body["totals"], body["reason"]
            known = Reason.by_id(reason) if reason else None
            have = "has its final" if totals["trials"] == 1 else "have their final"
            done = f"{totals['finals']} of {count(totals['trials'], 'trial')} {have}"
            return f"run ended: {ending(body['exit_status'], known, None)}; {done}"
        case _:
            return kind.id


def _of_attempt(kind: Kind, body: Mapping[str, Any]) -> str:
    match kind:
        case Kind.ATTEMPT_ADMITTED:
            if body["supersedes"]:
                return "begins, in place of one that was interrupted or lost"
            return "begins, in place of one that infrastructure ended" if body["replaces"] else "begins"
        case Kind.SANDBOX_STARTED:
            fork = ", forked from the agent's world" if body["from_snapshot"] else ""
            return f"{body['role']}'s sandbox is up{fork}"
        case Kind.ATTEMPT_BOUNDARY:
            return f"reached {body['boundary']}"
        case Kind.AGENT_STARTED:
            version = body["version"]
            return f"agent {body['agent']} starts" + (f" (version {version['value']})" if version["available"] else "")
        case Kind.AGENT_ENDED:
            why = f" ({body['exception']})" if body["exception"] else ""
            return f"agent over after {seconds(body['duration_ns'])}: {how_ended(body['ended'])}{why}"
        case Kind.VERIFIER_ENDED:
            return f"verifier over after {seconds(body['duration_ns'])}: {how_ended(body['ended'])}"
        case Kind.EXCHANGE_ADMITTED:
            return f"asks {body['model']}, {dollars(Usd.parse(body['held']))} held"
        case Kind.EXCHANGE_ENDED:
            return _answered(body)
        case Kind.EXCHANGE_REFUSED:
            held = dollars(Usd.parse(body["held"]))
            return f"may not ask {body['model']}, {held} would be held: {body['reason']}, {body['message']}"
        case Kind.ANSWER_SCORED:
            return f"answer scored by {body['scorer']}: {body['detail']}"
        case Kind.ATTEMPT_FILES:
            return f"files kept: {len(body['files'])}"
        case Kind.ATTEMPT_GRADED:
            return f"graded {_grade(body)}"
        case Kind.ATTEMPT_ENDED:
            why = f" ({body['exception']})" if body["exception"] else ""
            return f"ends: {body['outcome']}{why}" + (f": {body['message']}" if body["message"] else "")
        case _:
            return kind.id


def _answered(body: Mapping[str, Any]) -> str:
    what = body["error"] or body["finish"] or body["outcome"]
    charged = f"{dollars(Usd.parse(body['charged']))} charged"
    usage = body["usage"]
    if usage is not None:
        charged += f" for {count(sum(usage.values()), 'token')}"
    estimated = ", the worst case" if body["estimated"] else ""
    return f"hears back ({what}): {charged}{estimated}" + (", more than was held" if body["overrun"] else "")


def _grade(body: Mapping[str, Any]) -> str:
    why = f" ({body['reason']})" if body["reason"] else ""
    return f"{body['grade']}{why}" + (f", reward {body['reward']}" if body["reward"] is not None else "")
