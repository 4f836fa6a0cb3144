"""A dishonest operator alters a run that the first program made, and signs all of it again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from builder import Story
from plants import Plant, Plants
from primitives import Body, cost, money, picodollars, worst_case
from steps import Late, Step
from taken import rewrite, take, without

from money_runs import Plan, dear, sums, write_study
from proctor.runner.launch import Launch, launch
from proctor_verify import verify

WHOLE, SHORT, UNSEEN = Plants(), Plants(), Plants()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Rows for two made-up models, and rows for one whose money runs out."""
    folder = tmp_path_factory.mktemp("runs")
    moon, sun = dear("moon", "moon"), dear("sun", "sun")
    two = Plan({"moon": "600", "sun": "600"}, allocation="2000", margin="500")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        patch.chdir(folder)
        for name, models, plan in (
            ("whole", {"moon": moon, "sun": sun}, two),
            ("short", {"moon": moon}, Plan({"moon": "20"}, allocation="20", margin="70")),
        ):
            study = write_study(folder / f"study-{name}", rows=sums(6), models=models, money=plan)
            launch(Launch("run", study, out=folder / name), quiet=True, say=lambda _: None)
    return {name: folder / name for name in ("whole", "short")}


def failed(story: Story, folder: Path) -> list[str]:
    shutil.rmtree(folder, ignore_errors=True)
    return verify(story.write(folder), story.signer.fingerprint).failed()


def repriced(s: Story) -> None:
    """Every amount anew, by what the design and the entries say now."""
    held = {}
    for step in s.entries():
        body = step.body
        if step.kind == "exchange.admitted":
            body["held"] = worst_case(s.rows_of(body["model"]), body["input_bound"], body["output_bound"])
            held[body["exchange"]] = body["held"]
        elif step.kind == "exchange.ended":
            body["charged"] = cost(s.rows_of(s.open[body["attempt"]]["model"]), body["usage"])


def regraded(s: Story, attempt: str, grade: str, reason: str | None, reward: float | None) -> None:
    graded, final = s.find("attempt.graded", attempt=attempt).body, s.find("trial.final", attempt=attempt).body
    graded["rewards"] = {} if reward is None else {"reward": reward}
    for body in (graded, final):
        body.update(grade=grade, reason=reason, reward=reward)
    s.finals[final["trial"]] = final
    ended = s.find("run.ended").body
    grades = [body["grade"] for body in s.finals.values()]
    ended["totals"] = {**ended["totals"], **{each: grades.count(each) for each in ("pass", "fail", "ungraded")}}
    ended["exit_status"] = int("ungraded" in grades) if ended["complete"] else ended["exit_status"]


def a_fail(s: Story) -> str:
    return str(s.find("attempt.graded", grade="fail").body["attempt"])


def run_again(s: Story, attempt: str, **ended: str) -> str:
    """An attempt ended otherwise, and another one at its trial, alike but for the number, took its place."""
    s.design["stage"]["replacements"] = 1
    final = s.find("trial.final", attempt=attempt)
    mine = [step for step in s.entries() if step.body.get("attempt") == attempt and step is not final]
    other, again = f"{attempt[:-1]}1", []
    for step in mine:
        body: Body = {**step.body, "attempt": other}
        if "exchange" in body:
            body["exchange"] = other + body["exchange"][len(attempt) :]
        if step.kind == "attempt.admitted":
            body |= {"number": 1, "folder": f"{body['folder'][:-1]}1", "replaces": attempt}
        again.append(Step(step.kind, body))
    s.find("attempt.ended", attempt=attempt).body.update(ended)
    s.open[other] = again[0].body
    s.insert_before(final, *again)
    final.body["attempt"] = other
    regraded(s, other, "pass", None, 1)
    return other


@WHOLE.before_sealing("costs.recomputed", "a usage is lowered, its charge is not")
def _(s: Story) -> None:
    body = next(step.body for step in s.entries() if step.kind == "exchange.ended")
    body["usage"] = {**body["usage"], "output": body["usage"]["output"] + 1}


@WHOLE.before_sealing("costs.recomputed", "a price is lowered, what was charged is not")
def _(s: Story) -> None:
    for row in s.rows_of("moon"):
        row["usd_per_million"] = money(picodollars(row["usd_per_million"]) // 2)


@WHOLE.before_sealing("exchanges.admitted", "bounds and holds are lowered together")
def _(s: Story) -> None:
    s.find("exchange.admitted").body["input_bound"] = 5
    repriced(s)


@WHOLE.before_sealing("exchanges.ended", "an answer that was paid is let go")
def _(s: Story) -> None:
    nothing = {"outcome": "released", "charged": money(0), "usage": None}
    s.find("exchange.ended").body.update(nothing, error="provider_timeout", http_status=None, finish=None)


@WHOLE.before_sealing("synthetic.marked", "made up, by another provider's name")
def _(s: Story) -> None:
    model = s.design["models"][0]
    model["provider"] = "openai"
    del model["synthetic"]


@WHOLE.before_sealing("summary.recomputed", "a summary hides that its models are made up")
def _(s: Story) -> None:
    was = s.files["summary.json"]
    s.files["summary.json"] = Late(lambda s: s.settled(was).replace(b'"synthetic":["moon","sun"]', b'"synthetic":[]'))


@WHOLE.before_sealing("summary.recomputed", "a summary says that less was charged")
def _(s: Story) -> None:
    was = s.files["summary.json"]
    s.files["summary.json"] = Late(lambda s: s.settled(was).replace(b'"charged":"6.', b'"charged":"5.', 1))


@WHOLE.before_sealing("budget.there", "the budget is gone")
def _(s: Story) -> None:
    del s.design["budget"]
    for step in s.entries():
        if step.kind == "block.admitted":
            step.body["reserve"] = None


@WHOLE.before_sealing("grades.recomputed", "another rule for what is solved")
def _(s: Story) -> None:
    s.design["grading"]["solved"] = "reward >= 0"


@WHOLE.before_sealing("answers.scored", "an answer is gone, its grade is not")
def _(s: Story) -> None:
    without(s, s.find("answer.scored"))


@WHOLE.before_sealing("agents.ended", "a fail for which no money was left, as nobody said")
def _(s: Story) -> None:
    attempt = a_fail(s)
    regraded(s, attempt, "ungraded", "ceiling_reached", None)
    s.find("attempt.ended", attempt=attempt).body["exception"] = "ceiling_reached"


@WHOLE.before_sealing("attempts.graded", "a fail that is run again as one of infrastructure")
def _(s: Story) -> None:
    run_again(s, a_fail(s), outcome="infrastructure", exception="internal_error")


@WHOLE.before_sealing("agents.ended", "a fail that is run again, for a fault of the provider that no exchange heard")
def _(s: Story) -> None:
    attempt = a_fail(s)
    run_again(s, attempt, outcome="infrastructure", exception="provider_failed")
    without(s, *(s.find(kind, attempt=attempt) for kind in ("attempt.graded", "answer.scored", "agent.ended")))


@SHORT.before_sealing("agents.ended", "what was refused is gone")
def _(s: Story) -> None:
    without(s, s.find("exchange.refused"))


@SHORT.before_sealing("ceiling.disclosed", "the word of the ceiling is gone")
def _(s: Story) -> None:
    s.drop(s.find("ceiling.reached"))


@SHORT.before_sealing("status.agrees", "it stopped for a deadline, it says")
def _(s: Story) -> None:
    s.find("run.ended").body["reason"] = "stage_deadline"


@SHORT.before_sealing("ceiling.disclosed", "a larger margin than what was refused would have filled")
def _(s: Story) -> None:
    s.design["budget"]["margin"] = "9000.000000000000"


# What the page says that nobody can see from the evidence: section 10.


@UNSEEN.before_sealing("", "prices, and all that follows from them")
def _(s: Story) -> None:
    for row in s.rows_of("moon"):
        row["usd_per_million"] = money(picodollars(row["usd_per_million"]) // 2)
    repriced(s)


@UNSEEN.before_sealing("", "a usage, and its charge")
def _(s: Story) -> None:
    s.find("exchange.ended").body["usage"] = {"input": 1, "output": 1}
    repriced(s)


@UNSEEN.before_sealing("", "an exchange that is gone as a whole")
def _(s: Story) -> None:
    ended = s.find("exchange.ended")
    without(s, ended, s.find("exchange.admitted", exchange=ended.body["exchange"]))


@UNSEEN.before_sealing("", "a response, and the answer that was scored")
def _(s: Story) -> None:
    rewrite(s, s.find("exchange.ended"), "response", b'{"another":true}')
    rewrite(s, s.find("answer.scored"), "answer", b"another")


@UNSEEN.before_sealing("", "a row's rewards, with its grade")
def _(s: Story) -> None:
    regraded(s, a_fail(s), "pass", None, 1)


@UNSEEN.before_sealing("", "made up, with another provider, wire and name in the design")
def _(s: Story) -> None:
    for model in s.design["models"]:
        model.update(provider="openai", api="chat", model="a-model")
        del model["synthetic"]


@UNSEEN.before_sealing("", "a fail that never came to its grade, and is run again")
def _(s: Story) -> None:
    attempt = a_fail(s)
    run_again(s, attempt, outcome="infrastructure", exception="internal_error")
    without(s, *(s.find(kind, attempt=attempt) for kind in ("attempt.graded", "answer.scored", "agent.ended")))


def test_what_was_taken_and_sealed_again_is_sound(runs: dict[str, Path], tmp_path: Path) -> None:
    for run in runs.values():
        assert failed(take(run), tmp_path / "run") == []


@pytest.mark.parametrize("plant", [*WHOLE, *SHORT], ids=[plant.id for plant in [*WHOLE, *SHORT]])
def test_one_cheat_one_finding(runs: dict[str, Path], plant: Plant, tmp_path: Path) -> None:
    story = take(runs["short" if plant in SHORT else "whole"])
    plant.alter(story)
    assert failed(story, tmp_path / "run") == [plant.check]


@pytest.mark.parametrize("plant", UNSEEN, ids=[plant.what for plant in UNSEEN])
def test_what_the_evidence_cannot_show(runs: dict[str, Path], plant: Plant, tmp_path: Path) -> None:
    story = take(runs["whole"])
    plant.alter(story)
    assert failed(story, tmp_path / "run") == []
