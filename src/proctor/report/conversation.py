"""The conversation of an attempt with its model, read back from the recorded bodies: what was new in each exchange."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proctor.core.models import Message, Role
from proctor.core.money import Usd
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import shown_blob
from proctor.evidence.runfolder import RunFolder
from proctor.gateway.wire.base import Reply
from proctor.gateway.wire.formats import WIRES, answer, api_of_route, conversation
from proctor.report.text import count, dollars, fitted, safe, safe_output, seconds
from proctor.report.trial import AttemptTold
from proctor.study import Design

# enough to follow what happened; `--full` shows the rest
_MESSAGE_LINES, _MESSAGE_CHARS = 12, 1200
_FIRST, _LAST = 6, 18
_INDENT, _WHO = "  ", 10
_WITHHELD = f"{Reason.EVIDENCE_WITHHELD.id}: this public copy of the run leaves it out"


@dataclass(frozen=True)
class Turn:
    """One exchange. `new` are the messages that no exchange before it had; `dropped` counts earlier ones that it lacks.

    `ended` is its `exchange.ended`, None while it is in flight; `unread` says why the request's messages cannot be
    told. `withheld` are the bodies, of `request` and `response`, that a public copy leaves out.
    """

    admitted: Mapping[str, Any]
    ended: Mapping[str, Any] | None
    new: tuple[Message, ...]
    dropped: int
    reply: Reply | None
    unread: str | None
    withheld: tuple[str, ...] = ()

    def as_record(self) -> dict[str, Any]:
        """For JSON, complete."""
        ended = None if self.ended is None else {name: self.ended[name] for name in _ENDED}
        return {
            "exchange": self.admitted["exchange"],
            "model": self.admitted["model"],
            "held": self.admitted["held"],
            "route": self.admitted["route"],
            "retries": self.admitted["retries"],
            "mutations": list(self.admitted["mutations"]),
            "ended": ended,
            "new_messages": [_message(message) for message in self.new],
            "earlier_messages_dropped": self.dropped,
            "unread": self.unread,
            "withheld": list(self.withheld),
            "answer": None if self.reply is None else _reply(self.reply),
        }


_ENDED = (
    "outcome",
    "http_status",
    "error",
    "resolved_model",
    "finish",
    "usage",
    "charged",
    "estimated",
    "overrun",
    "flags",
    "timing",
)


def turns(run: RunFolder, design: Design, arm: str, told: AttemptTold) -> list[Turn]:
    """The exchanges of an attempt in order.

    Raises:
        Refusal: `evidence_damaged`, `evidence_unreadable`: a body is not what was written; `format_unknown`: of a
            wire format that this version does not have.
    """
    ends = {body["exchange"]: body for body in told.said.get(Kind.EXCHANGE_ENDED, ())}
    found: list[Turn] = []
    known: list[Message] = []
    for admitted in told.said.get(Kind.EXCHANGE_ADMITTED, ()):
        api = _api(design, arm, admitted)
        ended = ends.get(admitted["exchange"])
        asked = shown_blob(run, admitted["request"])
        messages, unread = ([], _WITHHELD) if asked is None else _messages(api, asked)
        kept = _common(known, messages)
        reply = None
        withheld = [] if asked is not None else ["request"]
        if ended is not None and ended["response"] is not None:
            body = shown_blob(run, ended["response"])
            reply = None if body is None else answer(api, body)
            withheld += [] if body is not None else ["response"]
        dropped = len(known) - kept if unread is None else 0
        found.append(Turn(admitted, ended, tuple(messages[kept:]), dropped, reply, unread, tuple(withheld)))
        if unread is None:
            said = [Message(Role.ASSISTANT, reply.text, reply.calls)] if reply is not None and reply.whole else []
            known = [*messages, *said]
    return found


def _api(design: Design, arm: str, admitted: Mapping[str, Any]) -> str:
    """The wire format of an exchange: its route's, as agents inside have a choice; else its model's."""
    try:
        api = api_of_route(admitted["route"]) or design.model(str(admitted["model"]), arm).api
    except KeyError as error:
        raise Refusal(Reason.EVIDENCE_DAMAGED, "an exchange names a model that the design has not") from error
    if api not in WIRES:
        raise Refusal(Reason.FORMAT_UNKNOWN, "the wire format is not known", observed=api, required=sorted(WIRES))
    return api


def _messages(api: str, body: bytes) -> tuple[list[Message], str | None]:
    try:
        return conversation(api, body), None
    except Refusal as refusal:
        return [], str(refusal)


def _common(known: Sequence[Message], messages: Sequence[Message]) -> int:
    """How many messages both begin with; a message that came back is known by what it says, not by its native form."""
    pairs = zip(known, messages, strict=False)
    return next(
        (at for at, (one, other) in enumerate(pairs) if _said(one) != _said(other)), min(len(known), len(messages))
    )


def _said(message: Message) -> tuple[Any, ...]:
    return message.role, message.text, [(call.id, call.name) for call in message.calls], message.call_id


def _message(message: Message) -> dict[str, Any]:
    calls = [{"id": call.id, "name": call.name, "arguments": call.raw} for call in message.calls]
    return {
        "role": message.role.value,
        "text": message.text,
        "calls": calls,
        "call_id": message.call_id,
        "tool": message.tool,
    }


def _reply(reply: Reply) -> dict[str, Any]:
    error = reply.error
    return {
        "text": reply.text,
        "thoughts": reply.thoughts,
        "calls": [{"id": call.id, "name": call.name, "arguments": call.raw} for call in reply.calls],
        "finish": reply.finish.value,
        "flags": [flag.value for flag in reply.flags],
        "error": None if error is None else {"kind": error.kind, "code": error.code, "message": error.message},
    }


def turn_lines(found: Sequence[Turn], *, synthetic: bool, full: bool) -> Iterator[str]:
    """The conversation for people; without `full`, long messages and the middle of many exchanges are left out."""
    hidden = range(0) if full or len(found) <= _FIRST + _LAST else range(_FIRST, len(found) - _LAST)
    for number, turn in enumerate(found):
        if number in hidden:
            if number == hidden.start:
                yield ""
                yield f"{count(len(hidden), 'exchange')} not shown: --full shows all"
            continue
        yield ""
        yield from _turn(number, turn, synthetic, full)


def _turn(number: int, turn: Turn, synthetic: bool, full: bool) -> Iterator[str]:
    again = "" if turn.admitted["retries"] is None else f", sends {turn.admitted['retries'].rpartition('/')[2]} again"
    head = safe(f"exchange {number}{again}  {_ended(turn)}") + (" SYNTHETIC" if synthetic else "")
    yield from fitted(head, 0)
    if turn.unread is not None:
        yield f"{_INDENT}(the request cannot be read: {safe(turn.unread)})"
    if turn.dropped:
        yield f"{_INDENT}({count(turn.dropped, 'earlier message')} not sent any more)"
    for message in turn.new:
        yield from said(message.tool or message.role.value, message.text, full)
        for call in message.calls:
            yield from said("calls", f"{call.name} {call.raw}", full)
    if "response" in turn.withheld:
        yield f"{_INDENT}(the answer cannot be read: {_WITHHELD})"
    reply = turn.reply
    if reply is None:
        return
    if reply.thoughts:
        yield from said("thinks", reply.thoughts, full)
    if reply.text or not reply.calls:
        yield from said("answers", reply.text, full)
    for call in reply.calls:
        yield from said("calls", f"{call.name} {call.raw}", full)
    if reply.error is not None:
        yield from said("error", " ".join(filter(None, [reply.error.kind, reply.error.message])), full)


def _ended(turn: Turn) -> str:
    ended = turn.ended
    if ended is None:
        return "in flight"
    parts = [str(ended["outcome"]), *filter(None, [ended["finish"], ended["error"]])]
    if "last_byte" in ended["timing"]:
        parts.append(str(seconds(ended["timing"]["last_byte"])))
    usage = ended["usage"]
    if usage is not None:
        parts.append(", ".join(f"{tokens:,} {bucket.replace('_', ' ')}" for bucket, tokens in usage.items()))
    cost = dollars(Usd.parse(ended["charged"]))
    parts.append(cost + (" estimated" if ended["estimated"] else "") + (" OVERRUN" if ended["overrun"] else ""))
    return " · ".join([*parts, *ended["flags"]])


def said(who: str, text: str, full: bool) -> Iterator[str]:
    """A text of several lines beside who said it, cut unless `full`."""
    shown = text if full else text[:_MESSAGE_CHARS]
    lines = safe_output(shown).split("\n")
    if not full:
        lines = lines[:_MESSAGE_LINES]
    left = len(text) - len("\n".join(shown.split("\n")[: len(lines)]))
    parts = [part for line in lines for part in fitted(line, len(_INDENT) + _WHO + 1)]
    for number, line in enumerate(parts):
        yield f"{_INDENT}{'' if number else safe(who):{_WHO}} {line}".rstrip()
    if left > 0:
        yield f"{_INDENT}{'':{_WHO}} … {left:,} more characters: --full shows all"
