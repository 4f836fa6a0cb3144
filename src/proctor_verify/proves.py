"""What evidence shows where all of it holds, and what no evidence of this form can show: in words, for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from proctor_verify import notes
from proctor_verify.anchors import Receipt
from proctor_verify.disclosed import disclosed
from proctor_verify.elsewhere import Head, Place, first_entries
from proctor_verify.errors import Unreadable
from proctor_verify.prices import dollars, usd
from proctor_verify.report import Result, Status, plain
from proctor_verify.run import Run
from proctor_verify.scope import Scope
from proctor_verify.tables import Group
from proctor_verify.vocabulary import GRADES

NO_KEY = "who signed: any key could have; give the operator's with --key"
_ANEW = "that its operator made it anew since, or left a run out, could not be known here"
NO_ANCHOR = f"when: no anchor shows that this journal stood at an earlier time; {_ANEW}"
AT_ONCE = (
    "since when checkpoints stand at an anchor: their times are the operator's, who could have put all of them there "
    "at once; ask who keeps the anchor"
)
LEFT_OUT = "what was left out: other runs of this study, of which nobody was shown anything"
OF_PROVIDERS = "the provider's word: which model answered, and which tokens it counted, are as it said"
OF_MODELS = "what a model knows already: that it had not seen the tasks before"
OF_TASKS = "what the tasks measure: grades follow from their tests, whatever these are worth"


def shown(run: Run, results: Sequence[Result]) -> tuple[str, ...]:
    """What follows from the checks that pass, one sentence each."""
    seen = {result.check: result.seen for result in results}
    passed = {result.check for result in results if result.status is Status.PASS}
    hold = passed | {result.check for result in results if result.status is Status.NOT_APPLICABLE}
    claims = ((needs.split(), said) for needs, said in _claims(run, seen))
    return tuple(plain(said) for needs, said in claims if needs[0] in passed and hold.issuperset(needs))


def caveats(run: Run, *, strict: bool) -> tuple[str, ...]:
    """What cannot be shown, even where everything holds. `strict` is whether somebody said whom to trust."""
    return tuple(map(plain, _caveats(run, strict)))


def scope_of(run: Run) -> Scope | None:
    """How much of its stage a run is of, None where its design cannot be read."""
    if run.design is None:
        return None
    known = run.blind is None and run.no_journal is None
    return Scope(run.design.selection, run.design.trials, run.finals if known else None)


def groups_of(run: Run) -> tuple[Group, ...]:
    """The grades by model and arm, in the design's order."""
    if run.design is None:
        return ()
    planned = len(run.design.tasks) * run.design.epochs
    groups = ((model, arm, run.groups.get((model, arm))) for model in run.design.models for arm in run.design.arms)
    return tuple(
        Group.of(model, arm, planned, [tally.grades[grade] if tally is not None else 0 for grade in GRADES])
        for model, arm, tally in groups
    )


def _claims(run: Run, seen: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The checks that a sentence rests on, the one that has to pass first, and the sentence."""
    entries = f"all {run.size:,} entries"
    yield (
        "key.trust key.same checkpoints.signature checkpoints.head checkpoints.last journal.lines journal.chain",
        f"signed: {entries} stand as they were signed by the key that you trust, {_signer(run)}",
    )
    for place in run.elsewhere.places:
        if head := _latest(run, place):
            yield (
                "anchors.remote checkpoints.head",
                f"anchored: nothing in {first_entries(head.size)} was changed since their checkpoint was "
                f"{'made that stands in' if place.kind == 'note' else 'put at'} {_short(place.where)}"
                f"{_when(run, place, head)}",
            )
    since = run.elsewhere.since
    if since is not None:
        yield (
            "since.extends",
            f"extended: nothing in {first_entries(since.size)} was changed since you kept their checkpoint; "
            f"{run.size - since.size:,} are new",
        )
    yield "key.witnessed", f"witnessed by another key than the operator's: {seen.get('key.witnessed')}"
    yield (
        "attempts.admitted exchanges.admitted attempts.joined finals.one totals.agree",
        f"admitted first: nothing was done in an attempt's name before its admission; {run.finals:,} of "
        f"{_planned(run)} planned trials have a final, one each",
    )
    yield (
        "anchors.required",
        "anchors required: no block stands before receipts of each of them; whether these were pushed by then is the "
        "operator's word; ask who keeps them",
    )
    if run.design is not None and run.design.parts.budget is not None:
        ceiling = dollars(usd(run.design.parts.budget.ceiling))
        yield (
            "budget.ceiling costs.recomputed ceiling.disclosed",
            f"money: never above ${ceiling} at any entry, but for overruns, which are disclosed; each cost follows "
            "from its usage and the prices of the design",
        )
    yield "grades.recomputed", _of_grades(run)
    but = ", but for what is withheld" if run.withheld.is_copy else ""
    yield (
        "files.digests packs.frames blobs.files files.unlisted",
        f"files: each byte stands as an entry names it{but}, and nothing else stands there but refusals' manifests, "
        "receipts of the last checkpoint, and what nobody looked at: `lock`, `scratch/`, names that begin with a dot",
    )
    yield "summary.recomputed", "summaries: they are what the journal adds up to"


def _caveats(run: Run, strict: bool) -> Iterator[str]:
    scope = scope_of(run)
    if scope is not None:
        yield from scope.caveats()
    if not strict:
        yield NO_KEY
    yield from _when_at_all(run)
    yield from _not_pushed(run)
    yield from disclosed(run)
    yield from _not_scored(run)
    models = run.design.parts.models if run.design is not None else {}
    if any(not model.synthetic for model in models.values()):
        yield OF_PROVIDERS
        yield OF_MODELS
    made_up = [name for name, model in models.items() if model.synthetic]
    if made_up:
        yield f"anything of {', '.join(made_up)}: made up by rules, so that nothing said of it is a result"
    yield OF_TASKS


def _of_grades(run: Run) -> str:
    """What is worked out again of grades, by what is graded there."""
    rows = run.design.parts.rows if run.design is not None else b""
    files = ", and these from its own reward files, as far as no test report decides" if 0 in rows else ""
    return f"grades: each follows from its rewards by the design's rule{files}"


def _not_scored(run: Run) -> Iterator[str]:
    """Whose word grades rest on."""
    if run.design is None:
        return
    rows = sum(run.design.parts.rows)
    if rows:
        tasks = "1 of the tasks is a question row" if rows == 1 else f"{rows:,} of the tasks are question rows"
        yield f"what answers are worth: {tasks}, whose answers are not scored again: rewards are the scorer's word"
    if run.design.rule is None and rows < len(run.design.tasks):
        yield "what test reports say: they are not read again, and which grade each comes to is its reader's word"


def _when_at_all(run: Run) -> Iterator[str]:
    latest = [head for place in run.elsewhere.places if (head := _latest(run, place))]
    since = run.elsewhere.since
    if not latest and since is not None and _stands(run, since):
        yield from _not_covered(run, since.size)
        yield "what came before: until you kept that checkpoint its operator could have begun anew"
        yield LEFT_OUT
        return
    if not latest:
        yield _not_looked(run)
        return
    yield from _not_covered(run, max(head.size for head in latest))
    first = min(head.size for place in run.elsewhere.places for head in place.heads if _stands(run, head))
    yield (
        f"what came before: the first checkpoint that was read covers {first_entries(first)}; until then its operator "
        "could have begun anew"
    )
    yield AT_ONCE
    yield LEFT_OUT
    for place in run.elsewhere.places:
        if place.others:
            runs = "1 other run" if place.others == 1 else f"{place.others:,} other runs"
            yield f"what was left out there: {runs} with checkpoints at {_short(place.where)}, of this study or not"


def _not_covered(run: Run, size: int) -> Iterator[str]:
    if size < run.size:
        yield (
            f"when, of the last {run.size - size:,} of all entries: no checkpoint that was read covers them, so their "
            "operator could have made them anew"
        )


def _not_pushed(run: Run) -> Iterator[str]:
    """Anchors of the design that did not take the last checkpoint, where that is no fault."""
    anchors = run.design.parts.anchors if run.design is not None else None
    if anchors is None or anchors.required or not run.ended:
        return
    standing = set(run.receipts.standing())
    for anchor, location in anchors.locations.items():
        if (run.size, anchor) not in standing:
            yield f"when, of the end: no receipt says that {_short(location)} took the last checkpoint"


def _not_looked(run: Run) -> str:
    locations = sorted({receipt.location for receipt in run.receipts.sound})
    if not locations:
        return NO_ANCHOR
    where = ", ".join(map(_short, locations))
    if run.elsewhere.places:
        return f"{NO_ANCHOR}; the run names {where}"
    return f"when: the run says that its checkpoints stand at {where}, and nobody looked (--anchor); {_ANEW}"


def _latest(run: Run, place: Place) -> Head | None:
    heads = [head for head in place.heads if _stands(run, head)]
    return max(heads, key=lambda head: head.size) if heads else None


def _stands(run: Run, head: Head) -> bool:
    return head.fault is None and 0 < head.size <= run.size and run.roots[head.size] == head.root


def _when(run: Run, place: Place, head: Head) -> str:
    found: list[Receipt] = [r for r in run.receipts.sound if (r.anchor, r.names) == (place.kind, head.name)]
    if not found:
        return ""
    # no entry names a receipt of the last checkpoint: whoever had the folder could write into it what they liked
    who = "the run's clock" if found[0].path in run.receipts.named else "a receipt that nobody signed"
    return f", on {found[0].ended[:16].replace('T', ' ')} UTC by {who}"


def _planned(run: Run) -> str:
    return f"{run.design.trials:,}" if run.design is not None else "the"


def _signer(run: Run) -> str:
    try:
        key = notes.verifier_key(run.first["key"]["vkey"]) if run.first is not None else None
    except Unreadable:
        key = None
    return f"{key.name} {key.fingerprint}" if key is not None else "unknown"


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"
