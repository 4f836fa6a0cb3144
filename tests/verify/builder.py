"""Makes run folders from the written evidence format, with a key of its own and nothing of either program.

A `Story` is a run before it is sealed: steps, files, a design. A test plants one fault in it, and `write` then makes
every digest, link, root and signature around the fault anew, so that nothing but the fault can be what is found.
"""

from __future__ import annotations

import base64
import gzip
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from expected import attempt_record, grade_summary, limit, run_summary, spent
from primitives import (
    Body,
    Place,
    Signer,
    Tree,
    canonical,
    cost,
    drawn_order,
    sha256,
    trial_id,
    worst_case,
)
from steps import Checkpoint, Late, Step


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
    exchanges: Counter[str] = field(default_factory=Counter)
    bounds: dict[str, str] = field(default_factory=dict)
    grades: dict[str, Body] = field(default_factory=dict)
    finals: dict[str, Body] = field(default_factory=dict)
    tail: bytes = b""
    # What is written when the journal and its checkpoints stand.
    afterwards: list[Callable[[Story, Path], None]] = field(default_factory=list)
    # For long runs, whose design nobody alters: `drawn_order` of it.
    order: list[tuple[Place, list[str]]] | None = None

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

    def drawn(self) -> list[Place]:
        return [place for place, _ in self.drawn_order()]

    def drawn_order(self) -> list[tuple[Place, list[str]]]:
        return drawn_order(self.design) if self.order is None else self.order

    def arms(self, index: int) -> list[str]:
        """The arms of a block in the order in which they run."""
        return self.drawn_order()[index][1]

    def block(self, index: int) -> tuple[str, str | None, int]:
        task, model, epoch = self.drawn_order()[index][0]
        shares = self.design.get("budget", {"models": []})["models"]
        reserve = next((share["reserve"] for share in shares if share["name"] == model), None)
        self.add("block.admitted", block=index, task=task, model=model, epoch=epoch, reserve=reserve)
        return task, model, epoch

    def start(self, index: int, arm: str, **links: Any) -> str:
        """Admits an attempt and lets its agent act."""
        task, model, epoch = self.drawn_order()[index][0]
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
        if not self.is_row(attempt):
            self._world(attempt, "agent")
            self.add("attempt.boundary", attempt=attempt, boundary="env-ready")
        self.add(
            "agent.started",
            attempt=attempt,
            agent="oracle",
            version={"available": True, "value": "1", "reason": None},
            settings={},
            instruction=self.blob(f"Do {task}.\n".encode()),
            skills=[],
            timeout_sec=60,
        )
        return attempt

    def is_row(self, attempt: str) -> bool:
        task = self.open[attempt]["task"]
        return any(each["name"] == task and each["format"] == "question" for each in self.design["tasks"])

    def ask(self, attempt: str, inputs: int = 800, outputs: int = 500, **admitted: Any) -> str:
        """Admits an exchange with these bounds, and holds its worst case."""
        model = self.open[attempt]["model"]
        exchange = f"{attempt}/{self.exchanges[attempt]}"
        self.exchanges[attempt] += 1
        route = admitted.get("route", "POST /v1/chat/completions")
        free = route.endswith("/count_tokens")
        self.bounds[exchange] = "0.000000000000" if free else worst_case(self.rows_of(model), inputs, outputs)
        self.add(
            "exchange.admitted",
            attempt=attempt,
            exchange=exchange,
            model=model,
            route=route,
            request=self.blob(f"What of {exchange}?\n".encode()),
            request_digest=sha256(exchange.encode()),
            input_bound=inputs,
            output_bound=outputs,
            held=self.bounds[exchange],
            retries=admitted.get("retries"),
            mutations=admitted.get("mutations", []),
        )
        return exchange

    def count(self, attempt: str) -> Step:
        """Has tokens counted."""
        exchange = self.ask(attempt, outputs=0, route="POST /v1/messages/count_tokens")
        return self.answer(exchange, outcome="released", finish=None, estimated=False)

    def answer(self, exchange: str, usage: Body | None = None, **ended: Any) -> Step:
        """Ends an exchange: with a usage as it costs, else as estimated; `ended` says what is otherwise."""
        attempt = exchange.rpartition("/")[0]
        held = self.bounds[exchange]
        charged = held if usage is None else cost(self.rows_of(self.open[attempt]["model"]), usage)
        body = {
            "outcome": "settled",
            "http_status": 200,
            "error": None,
            "resolved_model": "a-model",
            "finish": "stop",
            "usage": usage,
            "charged": charged,
            "estimated": usage is None,
            "overrun": charged > held,
            "flags": [],
            "timing": {"sent": 1},
            **ended,
        }
        response = self.blob(f"So of {exchange}.\n".encode()) if body["http_status"] is not None else None
        return self.add(
            "exchange.ended", attempt=attempt, exchange=exchange, response=response, **{"chunks": None, **body}
        )

    def reached(self, scope: str, wanted: str = "0.000000000000", model: str | None = None) -> Step:
        """Says that money ran out; spent and limit are worked out when the run is sealed."""
        step = self.add("ceiling.reached", scope=scope, model=model, wanted=wanted)
        step.body |= {
            "spent": Late(lambda s: spent(s, step, model)),
            "limit": Late(lambda s: limit(s.design["budget"], scope, model)),
        }
        return step

    def refuse(self, attempt: str, reason: str, held: str) -> Step:
        model = self.open[attempt]["model"]
        message = "it may not be paid for"
        said = {"model": model, "reason": reason, "held": held, "message": message, "route": None, "request": None}
        return self.add("exchange.refused", attempt=attempt, **said)

    def rows_of(self, model: str) -> list[Body]:
        return next(each["price"]["rows"] for each in self.design["models"] if each["name"] == model)

    def _world(self, attempt: str, role: str) -> None:
        facts = {"kind": "namespace", "network": "none", "tier": "privileged"}
        limit = {"name": "pids", "wanted": None, "enforced": 4096, "how": "control group (pids)", "why_not": None}
        self.add(
            "sandbox.started",
            attempt=attempt,
            role=role,
            from_snapshot=role == "verifier",
            facts=facts,
            limits=[limit],
            base_substituted=None,
        )

    def grade(self, attempt: str, grade: str, reward: float | None = None, reason: str | None = None) -> None:
        """Ends the agent, keeps the files, and grades."""
        folder = self.open[attempt]["folder"]
        ended = {"exit_code": 0, "signal": None, "timed_out": False, "output_bytes": 0, "output_dropped": 0}
        ended |= {"leftovers": 0, "limit_hit": None, "start_error": None}
        self.add("agent.ended", attempt=attempt, exception=None, ended=ended, duration_ns=5)
        body = {"grade": grade, "reason": reason, "reward": reward}
        self.grades[attempt] = body
        rewards = {} if reward is None else {"reward": reward}
        graded = {"rewards": rewards, "tests": None, "disclosures": [], **body}
        if self.is_row(attempt):
            text = self.blob(f"Answer of {attempt}.\n".encode())
            self.add("answer.scored", attempt=attempt, answer=text, scorer="exact", detail="this with that")
            self.add("attempt.graded", attempt=attempt, assurance=None, **graded)
            return
        self.add("attempt.boundary", attempt=attempt, boundary="pre-verify")
        self._world(attempt, "verifier")
        self.add("verifier.ended", attempt=attempt, assurance="isolated", ended=dict(ended), duration_ns=5)
        self.keep(attempt, "agent/stdout.log", f"output of {attempt}\n".encode())
        listed = [("agent/stdout.log", "source")]
        if reward is not None:
            self.files[f"{folder}/verifier/reward.txt"] = f"{reward}\n".encode()
            listed.append(("verifier/reward.txt", "source"))
        self.list_files(attempt, listed)
        self.add("attempt.graded", attempt=attempt, assurance="isolated", **graded)

    def run_out(self, attempt: str, reason: str) -> None:
        """Leaves an attempt ungraded that was refused its money."""
        body = {"grade": "ungraded", "reason": reason, "reward": None}
        self.grades[attempt] = body
        more = {"rewards": {}, "assurance": None, "tests": None, "disclosures": []}
        self.add("attempt.graded", attempt=attempt, **body, **more)

    def keep(self, attempt: str, path: str, data: bytes | Late) -> None:
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
        """Ends it, with its `attempt.json` unless nobody was left to write one."""
        if outcome != "lost" and not self.is_row(attempt):
            self.keep(attempt, "attempt.json", Late(lambda s: canonical(s.settled(attempt_record(s, attempt)))))
            self.list_files(attempt, [("attempt.json", "derived")])
        self.add(
            "attempt.ended",
            attempt=attempt,
            outcome=outcome,
            exception=exception,
            message=None,
            timing={"agent": 5},
        )
        self.open.pop(attempt)

    def final(self, attempt: str) -> None:
        """The final that follows from the attempt's grade."""
        body = self.grades.get(attempt, {"grade": "ungraded", "reason": "not_graded", "reward": None})
        trial = attempt.partition("/")[0]
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
            ref["stored_sha256"] = sha256(stored)
            into += stored
        self.refs[content] = ref
        return dict(ref)

    def repack(self) -> None:
        """Lay the frames anew in the order in which the steps, altered, name them first."""
        old, self.packs = self.packs, {"0001.pack": bytearray()}
        into, known = self.packs["0001.pack"], {}
        for step in self.entries():
            for name, ref in sorted(step.body.items()):
                if isinstance(ref, dict) and "pack" in ref:
                    at = ref["pack"], ref["offset"]
                    if at not in known:
                        known[at] = len(into)
                        into += old[ref["pack"]][ref["offset"] : ref["offset"] + ref["length"]]
                    step.body[name] = {**ref, "pack": "0001.pack", "offset": known[at]}

    def new_pack(self) -> None:
        self.packs[f"{len(self.packs) + 1:04d}.pack"] = bytearray()

    # What the design plans.

    def planned(self) -> list[tuple[str, str | None, str, int]]:
        return [(task, model, arm["name"], epoch) for task, model, epoch in self.drawn() for arm in self.design["arms"]]

    # Finding and altering.

    def entries(self) -> list[Step]:
        return [step for step in self.steps if isinstance(step, Step)]

    def find(self, kind: str, nth: int = 0, **body: Any) -> Step:
        return [step for step in self.entries() if step.kind == kind and body.items() <= step.body.items()][nth]

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

    def move_before(self, step: Step | Checkpoint, moved: Step | Checkpoint) -> None:
        self.drop(moved)
        self.insert_before(step, moved)

    def move_after(self, step: Step | Checkpoint, moved: Step | Checkpoint) -> None:
        self.drop(moved)
        self.insert_after(step, moved)

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
        for write in self.afterwards:
            write(self, folder)


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
