"""Each value of the evidence is held by some check, or the page says that nothing can hold it."""

from __future__ import annotations

from pathlib import Path

from altering import Told, alter_each, delete_each
from anchored import anchored_story
from money_stories import money_story
from stories import preregistered_story

from proctor_verify import verify

PAGE = Path(__file__).parents[2] / "docs" / "evidence-format.md"
CLAIM = ("alpha", "direction", "endpoint", "id", "test")
LIMITS = ("cpus", "memory_bytes", "pids", "storage_bytes", "rootfs")
FILE = ("kind", "mode", "path", "sha256", "size")
ENDED = ("leftovers", "output_bytes", "output_dropped", "exit_code")
# What nothing holds, by what section 12 of the page calls it.
FREE = {
    "The design": {
        *("design anchor.every_sec", "design anchor.required", "design stage.type"),
        *("design arms.*.model.max_output_tokens", "design models.*.max_output_tokens"),
        *("design models.*.context_window", "design models.*.model", "design models.*.request_timeout_sec"),
        *("design models.*.price.source", "design budget.prior_spend.sha256", "design budget.prior_spend.source"),
        *("design budget.cap_quantum", "design budget.margin", "design budget.reserve_quantum"),
        *("design questions.scorer_timeout_sec", "design questions.sha256", "design tasks.*.sha256"),
        *("design tools.*.name", "design tools.*.python.name", "design tools.*.python.sha256"),
        *("design baseline", "design study.question", "design hypotheses.*.compare.*"),
        *(f"design hypotheses.*.{name}" for name in CLAIM),
        *("design grading.duplicate_tests", "design grading.verifier_timeout_sec", "design stage.deadline_sec"),
        *(f"design sandbox.{name}" for name in LIMITS),
        *("design sandbox.substitute.debian", "design images.*.id", "design images.*.name", "design stage.lanes"),
        *(f"design arms.*.skills.*.files.*.{name}" for name in FILE),
        *("design arms.*.skills.*.path", "design tasks.*.cluster"),
    },
    "Bodies of exchanges": {
        *("exchange.admitted request_digest", "exchange.ended flags.*", "exchange.ended resolved_model"),
    },
    "What ran, and in what": {
        *("agent.started version.value", "sandbox.started facts.tier"),
        *(f"sandbox.started limits.*.{name}" for name in ("enforced", "how", "name")),
    },
    "Who ran it": {
        *(f"{kind} opening.{name}" for kind in ("run.admitted", "run.resumed") for name in ("boot_id", "host", "pid")),
        *("run.admitted opening.version", "run.resumed opening.version", "manifest command"),
        *(f"manifest refusals.*.{name}" for name in ("guard", "message", "waivable")),
    },
    "Words and times": {
        *("agent.ended duration_ns", "verifier.ended duration_ns", "attempt.ended timing.agent"),
        *("exchange.ended timing.sent", "answer.scored detail", "exchange.refused message"),
        *("agent.ended ended.leftovers", "agent.ended ended.output_bytes"),
        *(f"verifier.ended ended.{name}" for name in ENDED),
        *("run.recovered quarantined.*.source",),
        *(f"anchor.failed {name}" for name in ("attempts", "message", "return_code")),
    },
}

# What can be left out, beside the members of the above.
GONE = {
    "The design": {
        *("design hypotheses", "design hypotheses.*", "design hypotheses.*.compare", "design arms.*.skills.*.files"),
        *("design arms.*.skills.*.files.*", "design images", "design images.*", "design sandbox.substitute"),
        *("design anchor", "design anchor.drop", "design anchor.git", "design arms.*.model", "design arms.*.tools"),
        *("design budget.prior_spend", "design tools", "design tools.*"),
    },
    "Bodies of exchanges": {"exchange.admitted mutations.*"},
    "What ran, and in what": {"sandbox.started limits.*"},
}
STORIES = (preregistered_story, money_story, anchored_story)


def test_what_no_check_holds_is_what_the_page_says(tmp_path: Path) -> None:
    told: Told = {}
    for make in STORIES:
        alter_each(make, tmp_path / "run", told)
    assert {name for name, held in told.items() if not held} == set().union(*FREE.values())
    section = PAGE.read_text(encoding="utf-8").split("\n## 12.", 1)[1].split("\n## 13.", 1)[0]
    assert all(f"- **{head}**" in section for head in FREE)


def test_what_can_be_left_out_is_what_the_page_says(tmp_path: Path) -> None:
    told: Told = {}
    for make in STORIES:
        delete_each(make, tmp_path / "run", told)
    gone = {name for name, held in told.items() if not held}
    assert gone - set().union(*FREE.values()) == set().union(*GONE.values())
    assert GONE.keys() <= FREE.keys()


def test_a_refusal_that_was_waived_can_be_gone_with_its_waiver(tmp_path: Path) -> None:
    for left, failed in (("refusals", []), ("waivers", ["manifests.verdict"]), ("neither", [])):
        story = preregistered_story()
        manifest = story.manifests["manifests/0002.json"]
        if left != "refusals":
            manifest["waivers"] = {"requested": [], "used": []}
        if left != "waivers":
            manifest["refusals"] = []
        story.write(tmp_path / left)
        assert verify(tmp_path / left, story.signer.fingerprint).failed() == failed
