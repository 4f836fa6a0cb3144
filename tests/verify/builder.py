"""Makes run folders from the written evidence format, with a key of its own and nothing of either program.

A `Story` is a run before it is sealed: steps, files, a design. A test plants one fault in it, and `write` then makes
every digest, link, root and signature around the fault anew, so that nothing but the fault can be what is found.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

KEY_NAME = "test-operator"
TEN_THOUSAND = 10_000
Body = dict[str, Any]


def canonical(value: Any) -> bytes:
    """Enough of RFC 8785 for what these tests write: keys of the basic plane, short numbers."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Signer:
    """An Ed25519 key that signs notes."""

    def __init__(self, seed: int = 1, name: str = KEY_NAME) -> None:
        self.name = name
        self._private = Ed25519PrivateKey.from_private_bytes(seed.to_bytes(32, "big"))
        self.raw = self._private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self._hint = hashlib.sha256(name.encode() + b"\n\x01" + self.raw).digest()[:4]

    @property
    def fingerprint(self) -> str:
        return "sha256:" + sha256(self.raw)

    @property
    def vkey(self) -> str:
        typed = base64.b64encode(b"\x01" + self.raw).decode()
        return f"{self.name}+{self._hint.hex()}+{typed}"

    def note(self, text: str) -> bytes:
        signature = base64.b64encode(self._hint + self._private.sign(text.encode())).decode()
        return f"{text}\n\N{EM DASH} {self.name} {signature}\n".encode()


class Tree:
    """RFC 6962 over leaves, a stack of perfect subtrees by size."""

    def __init__(self) -> None:
        self._stack: list[tuple[int, bytes]] = []

    def add(self, leaf: bytes) -> None:
        size, top = 1, hashlib.sha256(b"\0" + leaf).digest()
        while self._stack and self._stack[-1][0] == size:
            top = hashlib.sha256(b"\1" + self._stack.pop()[1] + top).digest()
            size *= 2
        self._stack.append((size, top))

    def root(self) -> bytes:
        tops = [top for _, top in self._stack]
        root = tops.pop() if tops else hashlib.sha256().digest()
        while tops:
            root = hashlib.sha256(b"\1" + tops.pop() + root).digest()
        return root


@dataclass
class Late:
    """A value that is worked out when the run is sealed, so that it fits whatever was planted before."""

    make: Callable[[Story], Any]


@dataclass
class Step:
    """An entry to be; `after` alters its fields when they are all known, `raw` its line."""

    kind: str
    body: Body
    mono: int | None = None
    raw: Callable[[bytes], bytes] = lambda line: line
    after: Callable[[Body], None] | None = None


@dataclass
class Checkpoint:
    """A signed head over what stands so far; hooks alter it on its way.

    An entry names it at once where `named`; else a step `checkpoint.made` without a body may name it later.
    """

    named: bool = True
    text: Callable[[str], str] = lambda text: text
    file: Callable[[bytes], bytes] = lambda note: note
    entry: Callable[[Body], None] = lambda body: None
    signer: Signer | None = None


def trial_id(task: str, model: str | None, arm: str, epoch: int) -> str:
    return sha256(canonical([task, model, arm, epoch]))[:16]


def drawn_blocks(design: Body) -> list[tuple[str, str | None, int]]:
    """Section 9 of the format: (task, model, epoch) by their index."""
    blocks: list[tuple[str, str | None, int]] = []
    for model in [m["name"] for m in design["models"]] or [None]:
        text, number = f"order/{design['stage']['name']}/{model or '-'}", 0
        order = [(t["name"], model, e) for t in design["tasks"] for e in range(1, design["stage"]["epochs"] + 1)]
        for i in range(len(order) - 1, 0, -1):
            while True:
                word = int(sha256(canonical([design["draw"]["seed"], text, number]))[:16], 16)
                number += 1
                if word < 2**64 - 2**64 % (i + 1):
                    break
            j = word % (i + 1)
            order[i], order[j] = order[j], order[i]
        blocks += order
    return blocks


@dataclass
class Story:
    """A run that can still be altered."""

    design: Body
    steps: list[Step | Checkpoint] = field(default_factory=list)
    files: dict[str, bytes | Late] = field(default_factory=dict)
    manifests: dict[str, Body] = field(default_factory=dict)
    signer: Signer = field(default_factory=Signer)
    run_id: str = "run" + "a" * 23
    packs: dict[str, bytearray] = field(default_factory=dict)
    refs: dict[bytes, Body] = field(default_factory=dict)
    open: dict[str, Body] = field(default_factory=dict)
    attempts: Counter[str] = field(default_factory=Counter)
    grades: dict[str, Body] = field(default_factory=dict)
    finals: dict[str, Body] = field(default_factory=dict)
    tail: bytes = b""
    # For long runs, whose design nobody alters: `drawn_blocks` of it.
    order: list[tuple[str, str | None, int]] | None = None

    # What a run does, one call for each kind of entry.

    def add(self, kind: str, **body: Any) -> Step:
        step = Step(kind, body)
        self.steps.append(step)
        return step

    def checkpoint(self, **options: Any) -> Checkpoint:
        made = Checkpoint(**options)
        self.steps.append(made)
        return made

    def manifest(self, verdict: str, **fields: Any) -> str:
        path = f"manifests/{len(self.manifests) + 1:04d}.json"
        refusal = {"reason": "git_dirty", "guard": "git.clean", "message": "dirty", "waivable": True}
        self.manifests[path] = {
            "format": 1,
            "command": "run",
            "requested": {},
            "started": "2031-01-01T00:00:00.000000Z",
            "verdict": verdict,
            "exit_status": 3 if verdict == "refused" else None,
            "refusals": [refusal] if verdict == "refused" else [],
            "waivers": {"requested": [], "used": []},
            "probes": {},
            "design_sha256": Late(lambda s: sha256(canonical(s.design))),
            **fields,
        }
        return path

    def admit(self, *, abandoned: Iterable[str] = ()) -> Step:
        return self.add(
            "run.admitted",
            format=1,
            run_id=self.run_id,
            study=self.design["study"]["name"],
            stage=self.design["stage"]["name"],
            design_sha256=Late(lambda s: sha256(canonical(s.design))),
            planned=Late(lambda s: {"trials": len(s.planned()), "blocks": len(s.drawn())}),
            **self._opening(abandoned),
        )

    def resume(self, *, previous_ended: bool, abandoned: Iterable[str] = ()) -> Step:
        return self.add("run.resumed", previous_ended=previous_ended, **self._opening(abandoned))

    def _opening(self, abandoned: Iterable[str]) -> Body:
        manifest = self.manifest("admitted")
        return {
            "manifest": self.reference(manifest),
            "abandoned": [self.reference(path) for path in abandoned],
            "opening": {"boot_id": "boot", "host": "host", "pid": 7, "version": "0.1.0"},
            "key": {"vkey": self.signer.vkey, "fingerprint": self.signer.fingerprint},
        }

    def reference(self, path: str) -> Body:
        return {"path": path, "sha256": Late(lambda s: sha256(s.file(path)))}

    def file(self, path: str) -> bytes:
        if path in self.manifests:
            return canonical(self.settled(self.manifests[path]))
        return bytes(self.settled(self.files[path]))

    def drawn(self) -> list[tuple[str, str | None, int]]:
        return drawn_blocks(self.design) if self.order is None else self.order

    def block(self, index: int) -> tuple[str, str | None, int]:
        task, model, epoch = self.drawn()[index]
        self.add("block.admitted", block=index, task=task, model=model, epoch=epoch)
        return task, model, epoch

    def start(self, index: int, arm: str, **links: Any) -> str:
        """Admits an attempt and lets its agent act."""
        task, model, epoch = self.drawn()[index]
        trial = trial_id(task, model, arm, epoch)
        number = self.attempts[trial]
        self.attempts[trial] += 1
        attempt = f"{trial}/{number}"
        body = {
            "attempt": attempt,
            "trial": trial,
            "number": number,
            "block": index,
            "task": task,
            "model": model,
            "arm": arm,
            "epoch": epoch,
            "folder": f"trials/{task}-{arm}-{epoch}-{trial[:8]}/{number}",
            "supersedes": links.get("supersedes"),
            "replaces": links.get("replaces"),
        }
        self.add("attempt.admitted", **body)
        self.open[attempt] = body
        facts = {"kind": "namespace", "network": "none"}
        self.add(
            "sandbox.started",
            attempt=attempt,
            role="agent",
            from_snapshot=False,
            facts=facts,
            limits=[],
            base_substituted=None,
        )
        self.add("attempt.boundary", attempt=attempt, boundary="env-ready")
        self.add(
            "agent.started",
            attempt=attempt,
            agent="oracle",
            version={"available": True, "value": "1"},
            settings={},
            instruction=self.blob(f"Do {task}.\n".encode()),
            skills=[],
            timeout_sec=60,
        )
        return attempt

    def grade(self, attempt: str, grade: str, reward: float | None = None, reason: str | None = None) -> None:
        """Ends the agent, keeps the files, and grades."""
        folder = self.open[attempt]["folder"]
        ended = {"exit_code": 0, "timed_out": False, "output_bytes": 0, "output_dropped": 0, "leftovers": 0}
        self.add("agent.ended", attempt=attempt, exception=None, ended=ended, duration_ns=5)
        self.add("attempt.boundary", attempt=attempt, boundary="pre-verify")
        self.add("verifier.ended", attempt=attempt, assurance="isolated", ended=ended, duration_ns=5)
        self.keep(attempt, "agent/stdout.log", f"output of {attempt}\n".encode())
        listed = [("agent/stdout.log", "source")]
        if reward is not None:
            self.files[f"{folder}/verifier/reward.txt"] = f"{reward}\n".encode()
            listed.append(("verifier/reward.txt", "source"))
        self.list_files(attempt, listed)
        body = {"grade": grade, "reason": reason, "reward": reward}
        self.grades[attempt] = body
        rewards = {} if reward is None else {"reward": reward}
        self.add(
            "attempt.graded",
            attempt=attempt,
            rewards=rewards,
            assurance="isolated",
            tests=None,
            disclosures=[],
            **body,
        )

    def keep(self, attempt: str, path: str, data: bytes) -> None:
        self.files[f"{self.open[attempt]['folder']}/{path}"] = data

    def list_files(self, attempt: str, listed: list[tuple[str, str]]) -> Step:
        folder = self.open[attempt]["folder"]
        return self.add(
            "attempt.files",
            attempt=attempt,
            files=Late(lambda s: [s.fact(folder + "/", path, role=role) for path, role in listed]),
        )

    def fact(self, below: str, path: str, **more: str) -> Body:
        data = self.file(below + path)
        return {"path": path, "sha256": sha256(data), "size": len(data), **more}

    def end(self, attempt: str, outcome: str = "completed", exception: str | None = None) -> None:
        self.add(
            "attempt.ended",
            attempt=attempt,
            outcome=outcome,
            exception=exception,
            message=None,
            timing={"agent": 5},
        )
        self.open.pop(attempt)

    def final(self, attempt: str | None, trial: str | None = None) -> None:
        """The final that follows from the attempt's grade."""
        body = self.grades.get(attempt or "", {"grade": "ungraded", "reason": "not_graded", "reward": None})
        trial = trial or str(attempt).partition("/")[0]
        self.finals[trial] = body
        self.add("trial.final", trial=trial, attempt=attempt, **body)

    def run_attempt(self, index: int, arm: str, grade: str = "pass", **links: Any) -> str:
        reward, reason = {
            "pass": (1, None),
            "fail": (0.25, "below_threshold"),
            "ungraded": (None, "reward_missing"),
        }[grade]
        attempt = self.start(index, arm, **links)
        self.grade(attempt, grade, reward, reason)
        self.end(attempt)
        self.final(attempt)
        return attempt

    def stop(self, exit_status: int, reason: str | None = None) -> Step:
        """`run.ended`, with the derived files that follow from what the story has told so far."""
        planned = self.planned()
        complete = len(self.finals) == len(planned)
        counts = Counter(final["grade"] for final in self.finals.values())
        totals = {"trials": len(planned), "finals": len(self.finals)}
        totals |= {grade: counts[grade] for grade in ("pass", "fail", "ungraded")}
        self.files["grade_summary.json"] = Late(lambda s: canonical(grade_summary(s.design, s.finals)))
        self.files["summary.json"] = Late(lambda s: canonical(run_summary(s)))
        names = ("grade_summary.json", "summary.json")
        files = Late(lambda s: [s.fact("", name) for name in names])
        return self.add(
            "run.ended", exit_status=exit_status, reason=reason, complete=complete, totals=totals, files=files
        )

    # Bytes.

    def blob(self, content: bytes, *, large: bool = False) -> Body:
        if content in self.refs:
            return dict(self.refs[content])
        name = {"blob": sha256(content), "size": len(content)}
        if large:
            ref = {**name, "path": f"blobs/{name['blob'][:2]}/{name['blob']}"}
            self.files[ref["path"]] = content
        else:
            pack = f"{max(1, len(self.packs)):04d}.pack"
            stored, encoding = content, "raw"
            if len(content) > 64:
                stored, encoding = gzip.compress(content, 6, mtime=0), "gzip"
            into = self.packs.setdefault(pack, bytearray())
            ref = {**name, "pack": pack, "offset": len(into), "length": len(stored), "encoding": encoding}
            into += stored
        self.refs[content] = ref
        return dict(ref)

    def new_pack(self) -> None:
        self.packs[f"{len(self.packs) + 1:04d}.pack"] = bytearray()

    # What the design plans.

    def planned(self) -> list[tuple[str, str | None, str, int]]:
        return [(task, model, arm["name"], epoch) for task, model, epoch in self.drawn() for arm in self.design["arms"]]

    # Finding and altering.

    def find(self, kind: str, nth: int = 0, **body: Any) -> Step:
        found = [
            step
            for step in self.steps
            if isinstance(step, Step) and step.kind == kind and body.items() <= step.body.items()
        ]
        return found[nth]

    def at(self, step: Step | Checkpoint) -> int:
        return next(i for i, other in enumerate(self.steps) if other is step)

    def drop(self, step: Step | Checkpoint) -> None:
        del self.steps[self.at(step)]

    def insert_before(self, step: Step | Checkpoint, *new: Step | Checkpoint) -> None:
        at = self.at(step)
        self.steps[at:at] = list(new)

    def insert_after(self, step: Step | Checkpoint, *new: Step | Checkpoint) -> None:
        at = self.at(step) + 1
        self.steps[at:at] = list(new)

    # Sealing.

    def settled(self, value: Any) -> Any:
        if isinstance(value, Late):
            return self.settled(value.make(self))
        if isinstance(value, dict):
            return {key: self.settled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.settled(item) for item in value]
        return value

    def write(self, folder: Path) -> Path:
        """The run folder, every digest and link made now."""
        for name in ("manifests", "checkpoints", "packs", "trials"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        files = {path: self.file(path) for path in (*self.files, *self.manifests)}
        files["design.json"] = canonical(self.design)
        files |= {f"packs/{name}": bytes(data) for name, data in self.packs.items()}
        for path, data in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        self.write_journal(folder)
        return folder

    def write_journal(self, folder: Path) -> None:
        """The journal and the checkpoints of a folder that has everything else."""
        for note in folder.glob("checkpoints/*"):
            note.unlink()
        with (folder / "journal.jsonl").open("wb") as journal:
            for line in seal(self, self.steps, folder):
                journal.write(line + b"\n")
            journal.write(self.tail)


def seal(story: Story, steps: Iterable[Step | Checkpoint], folder: Path) -> Iterator[bytes]:
    """The lines of the journal, without their newlines; writes the checkpoint files as they come."""
    tree, prev, size, held = Tree(), "0" * 64, 0, Body()
    for step in steps:
        if isinstance(step, Checkpoint):
            text = step.text(f"proctor/run/{story.run_id}\n{size}\n{base64.b64encode(tree.root()).decode()}\n")
            note = step.file((step.signer or story.signer).note(text))
            path = f"checkpoints/{size:012d}.note"
            (folder / path).write_bytes(note)
            held = {"path": path, "sha256": sha256(note), "size": size, "root": tree.root().hex()}
            step.entry(held)
            if not step.named:
                continue
            step = Step("checkpoint.made", held)
        elif step.kind == "checkpoint.made" and not step.body:
            step = Step(step.kind, held, step.mono, step.raw, step.after)
        entry = {
            "seq": size,
            "prev": prev,
            "time": f"2031-01-01T00:00:{size // 1000 % 60:02d}.{size % 1000:03d}000Z",
            "mono": size * 10 if step.mono is None else step.mono,
            "kind": step.kind,
            "body": story.settled(step.body),
        }
        if step.after is not None:
            step.after(entry)
        line = step.raw(canonical(entry))
        yield line
        tree.add(line)
        prev, size = sha256(line), size + 1


def grade_summary(design: Body, finals: dict[str, Body]) -> Body:
    """Section 8, for rewards with few decimals."""
    models = [model["name"] for model in design["models"]] or [None]
    groups = []
    everything: list[Body | None] = []
    for model in sorted(models, key=str):
        for arm in sorted(arm["name"] for arm in design["arms"]):
            ids = [
                trial_id(task["name"], model, arm, epoch)
                for task in design["tasks"]
                for epoch in range(1, design["stage"]["epochs"] + 1)
            ]
            mine = [finals.get(trial) for trial in ids]
            everything += mine
            groups.append({"model": model, "arm": arm, **_counts(mine)})
    return {"format": 1, "all": _counts(everything), "groups": groups}


def run_summary(story: Story) -> Body:
    """Section 8, from the steps themselves."""
    steps = [step for step in story.steps if isinstance(step, Step)]
    design = story.design
    trials = {trial_id(*trial): (trial[1], trial[2]) for trial in story.planned()}
    ends = [step.body for step in steps if step.kind == "attempt.ended"]
    begins = [step.body for step in steps if step.kind == "attempt.admitted"]
    ended = [step.body for step in steps if step.kind == "run.ended"][-1]
    groups = []
    for model in sorted([model["name"] for model in design["models"]] or [None], key=str):
        for arm in sorted(arm["name"] for arm in design["arms"]):
            finals = [body for trial, body in story.finals.items() if trials.get(trial) == (model, arm)]
            mine = [body for body in ends if trials.get(body["attempt"][:16]) == (model, arm)]
            grades = Counter(final["grade"] for final in finals)
            groups.append(
                {
                    "model": model,
                    "arm": arm,
                    "planned": len(design["tasks"]) * design["stage"]["epochs"],
                    "grades": {grade: grades[grade] for grade in ("pass", "fail", "ungraded")},
                    "reasons": dict(Counter(final["reason"] for final in finals if final["reason"])),
                    "exceptions": dict(Counter(body["exception"] for body in mine if body["exception"])),
                    "superseded": sum(body["outcome"] in ("interrupted", "lost") for body in mine),
                    "replaced": sum(bool(b["replaces"]) for b in begins if trials.get(b["trial"]) == (model, arm)),
                }
            )
    return {
        "format": 1,
        "run_id": story.run_id,
        "design_sha256": story.settled(steps[0].body["design_sha256"]),
        "study": design["study"]["name"],
        "stage": design["stage"]["name"],
        "complete": ended["complete"],
        "totals": ended["totals"],
        "openings": sum(step.kind in ("run.admitted", "run.resumed") for step in steps),
        "groups": groups,
    }


def _counts(finals: list[Body | None]) -> Body:
    grades = Counter(final["grade"] if final else "ungraded" for final in finals)
    reasons = Counter(
        final["reason"] if final else "not_run" for final in finals if not final or final["grade"] == "ungraded"
    )
    # Quarters are enough for what the stories write, and need no fractions.
    quarters = [int(f["reward"] * 4) for f in finals if f and f["grade"] != "ungraded" and f["reward"] is not None]
    planned, passed, graded = len(finals), grades["pass"], grades["pass"] + grades["fail"]
    return {
        "planned": planned,
        "pass": passed,
        "fail": grades["fail"],
        "ungraded": grades["ungraded"],
        "ungraded_by_reason": dict(reasons),
        "headline": _rate(passed, planned),
        "graded_only": {**_rate(passed, graded), "comparable": graded == planned},
        "bounds": {"low": _rate(passed, planned), "high": _rate(passed + grades["ungraded"], planned)},
        "mean_reward": {**_mean(sum(quarters), 4 * len(quarters)), "comparable": len(quarters) == planned},
    }


def _mean(num: int, den: int) -> Body:
    if not den:
        return {"trials": 0, "num": None, "den": None, "decimal": None}
    common = next(d for d in range(max(num, den), 0, -1) if num % d == 0 and den % d == 0)
    return {
        "trials": den // 4,
        "num": str(num // common),
        "den": str(den // common),
        "decimal": _rate(num, den)["decimal"],
    }


def _rate(num: int, den: int) -> Body:
    if not den:
        return {"num": num, "den": den, "decimal": None}
    millionths = (2 * num * 10**6 + den) // (2 * den)
    return {"num": num, "den": den, "decimal": f"{millionths // 10**6}.{millionths % 10**6:06d}"}


def make_design(tasks: int = 2, models: int = 0, arms: int = 2, epochs: int = 2, replacements: int = 1) -> Body:
    return {
        "format": 1,
        "study": {"name": "story"},
        "stage": {"name": "main", "type": "standard", "epochs": epochs, "replacements": replacements},
        "draw": {"seed": 7},
        "tasks": [{"name": f"task-{i:06d}", "sha256": sha256(str(i).encode())} for i in range(tasks)],
        "models": [{"name": f"model-{i}"} for i in range(models)],
        "arms": [{"name": f"arm-{i}"} for i in range(arms)],
        "grading": {"solved": "reward >= 1.0"},
    }


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
    lost = s.start(1, "arm-0")

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
    s.run_attempt(1, "arm-0", "pass", supersedes=lost)
    broken = s.start(1, "arm-1")
    s.end(broken, "infrastructure", "sandbox_lost")
    s.run_attempt(1, "arm-1", "ungraded", replaces=broken)
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
