"""Sound runs: one that has met everything, and others of any shape."""

from __future__ import annotations

import random

from builder import Story
from designs import make_design
from primitives import Signer
from steps import Late


def full_story(signer: Signer | None = None) -> Story:
    """A complete run in four openings that has met everything: 8 trials in 4 blocks, two arms.

    Opening 1 dies with an attempt in flight. 2 takes it up, replaces an attempt, drains and ends. 3 dies with nothing
    in flight. 4 completes.
    """
    s = Story(make_design(), signer=signer or Signer())
    s.manifest("refused")
    s.admit()
    s.checkpoint()
    s.block(0)
    s.run_attempt(0, "arm-0", "pass")
    s.run_attempt(0, "arm-1", "fail")
    s.add("block.ended", block=0)
    s.checkpoint()
    s.block(1)
    lost = s.start(1, "arm-1")

    abandoned = s.manifest("pending")
    s.resume(previous_ended=False, abandoned=[abandoned])
    s.files["quarantine/0001-journal.tail"] = b'{"body":{"att'
    quarantined = Late(lambda s: [{**s.fact("", "quarantine/0001-journal.tail"), "source": "journal.jsonl"}])
    s.add("run.recovered", quarantined=quarantined, lost=[lost])
    s.keep(lost, "agent/stdout.log", b"half a l")
    s.list_files(lost, [("agent/stdout.log", "partial")])
    s.end(lost, "lost", "lost")
    s.checkpoint()
    s.block(1)
    s.run_attempt(1, "arm-1", "pass", supersedes=lost)
    broken = s.start(1, "arm-0")
    s.end(broken, "infrastructure", "sandbox_lost")
    s.run_attempt(1, "arm-0", "ungraded", replaces=broken)
    s.add("block.ended", block=1)
    s.add("run.paused")
    s.add("run.unpaused")
    s.add("run.draining", cause="SIGINT")
    s.block(2)
    stopped = s.start(2, "arm-0")
    s.end(stopped, "interrupted", "interrupted")
    s.stop(130, "interrupted")
    s.checkpoint(named=False)

    s.resume(previous_ended=True)
    s.add("checkpoint.made")
    s.checkpoint()
    s.resume(previous_ended=False)
    s.add("run.recovered", quarantined=[], lost=[])
    s.block(2)
    s.new_pack()
    second = s.start(2, "arm-0", supersedes=stopped)
    s.find("agent.started", -1).body["instruction"] = s.blob(b"x" * 5_000, large=True)
    s.grade(second, "pass", 1)
    s.end(second)
    s.final(second)
    third = s.start(2, "arm-1")
    s.find("agent.started", -1).body["instruction"] = s.blob(b"A long instruction.\n" * 40)
    s.end(third, "infrastructure", "sandbox_start_failed")
    s.final(third)
    s.add("block.ended", block=2)
    s.block(3)
    s.run_attempt(3, "arm-1", "fail")
    s.run_attempt(3, "arm-0", "pass")
    s.add("block.ended", block=3)
    s.stop(1)
    s.checkpoint(named=False)
    return s


def preregistered_story() -> Story:
    """The full story with all that a design says of its study beside what its run needs, and a refusal waived."""
    story = full_story()
    design = story.design
    design["study"]["question"] = "Does the skill help?"
    design["stage"] |= {"lanes": 2, "deadline_sec": 3600}
    design["baseline"] = "arm-0"
    claim = {"id": "H1", "endpoint": "solved", "compare": ["arm-1", "arm-0"]}
    design["hypotheses"] = [{**claim, "test": "mcnemar", "direction": "greater", "alpha": 0.05}]
    design["grading"] |= {"duplicate_tests": "refuse", "verifier_timeout_sec": 600}
    limits = ("cpus", "memory_bytes", "pids", "storage_bytes")
    design["sandbox"] |= {**dict.fromkeys(limits, 1), "rootfs": "/srv/root", "substitute": {"debian": "/srv/debian"}}
    design["images"] = [{"name": "debian", "id": "sha256:1"}]
    design["tasks"][0]["cluster"] = "first"
    skill = {"name": "house-rules", "sha256": "1" * 64}
    file = {"kind": "file", "mode": "644", "path": "SKILL.md", "sha256": "2" * 64, "size": 9}
    design["arms"][1]["skills"] = [{**skill, "path": "skills/house-rules", "files": [file]}]
    arms = {step.body["attempt"]: step.body["arm"] for step in story.entries() if step.kind == "attempt.admitted"}
    for step in story.entries():
        if step.kind == "agent.started" and arms[step.body["attempt"]] == "arm-1":
            step.body["skills"] = [skill]
    manifest = story.manifests["manifests/0002.json"]
    manifest["refusals"] = [{"reason": "git_dirty", "guard": "git", "message": "dirty", "waivable": True}]
    manifest["waivers"] = {"requested": ["git_dirty"], "used": ["git_dirty"]}
    return story


def random_story(seed: int) -> Story:
    """A sound run of any shape: interrupted, drained, replaced, resumed, whole or not."""
    rng = random.Random(seed)
    replacements = rng.randrange(3)
    models = rng.randrange(3)
    s = Story(make_design(rng.randrange(1, 4), models, rng.randrange(1, 4), rng.randrange(1, 3), replacements))
    for _ in range(rng.randrange(3)):
        s.manifest("refused")
    s.admit(abandoned=[s.manifest("pending") for _ in range(rng.randrange(2))])
    s.checkpoint()
    left = {(index, arm): {} for index, (_, arms) in enumerate(s.drawn_order()) for arm in arms}
    places, model_of = list(left), [model for _, model, _ in s.drawn()]
    replaced = dict.fromkeys(left, 0)
    begun: set[tuple[int, str]] = set()
    admitted: set[int] = set()
    ended: set[int] = set()
    flying: dict[str, tuple[int, str]] = {}
    # those that were interrupted: they go on in a later opening
    resting: set[tuple[int, str]] = set()

    def startable() -> list[tuple[int, str]]:
        """Those that began in this opening already, and of each model the next one."""
        fresh = {model_of[place[0]]: place for place in reversed(places) if place in left and place not in begun}
        return [place for place in left if place in begun and place not in resting] + list(fresh.values())

    def settle(index: int) -> None:
        if index not in ended and not any(at == index for at, _ in [*left, *flying.values()]):
            s.add("block.ended", block=index)
            ended.add(index)

    for _ in range(rng.randrange(4, 60)):
        if rng.random() < 0.05:
            s.checkpoint()
        if rng.random() < 0.07:
            lost = dict(flying)
            clean = not flying and rng.random() < 0.5
            if clean:
                complete = not left and not flying
                ungraded = any(final["grade"] == "ungraded" for final in s.finals.values())
                if not complete:
                    s.add("run.draining", cause="deadline")
                s.stop(int(ungraded)) if complete else s.stop(4, "stage_deadline")
                s.checkpoint(named=False)
            s.resume(previous_ended=clean)
            if not clean:
                s.add("run.recovered", quarantined=[], lost=list(lost))
            for attempt, place in lost.items():
                s.end(attempt, "lost", "lost")
                left[place] = {"supersedes": attempt}
            if clean:
                s.add("checkpoint.made")
            flying.clear()
            admitted.clear()
            begun.clear()
            resting.clear()
        elif startable() and (not flying or rng.random() < 0.5):
            place = rng.choice(sorted(startable()))
            begun.add(place)
            if place[0] not in admitted:
                s.block(place[0])
                admitted.add(place[0])
            flying[s.start(*place, **left.pop(place))] = place
        elif flying:
            attempt = rng.choice(sorted(flying))
            place = flying.pop(attempt)
            match rng.randrange(4):
                case 0 if replaced[place] < replacements:
                    replaced[place] += 1
                    s.end(attempt, "infrastructure", "sandbox_lost")
                    left[place] = {"replaces": attempt}
                case 1:
                    s.end(attempt, "interrupted", "interrupted")
                    resting.add(place)
                    left[place] = {"supersedes": attempt}
                case _:
                    s.grade(
                        attempt,
                        *rng.choice(
                            [("pass", 1), ("fail", 0.5, "below_threshold"), ("ungraded", None, "reward_missing")]
                        ),
                    )
                    s.end(attempt)
                    s.final(attempt)
            settle(place[0])
    for attempt, place in flying.items():
        s.end(attempt, "interrupted", "interrupted")
        left[place] = {"supersedes": attempt}
    ungraded = any(final["grade"] == "ungraded" for final in s.finals.values())
    s.stop(130, "interrupted") if left else s.stop(int(ungraded))
    s.checkpoint(named=False)
    return s
