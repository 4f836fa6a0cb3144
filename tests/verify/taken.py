"""A run folder that the first program left, as a story that can be altered and sealed again with a key of the tests."""

from __future__ import annotations

import json
from pathlib import Path

from builder import Story
from expected import attempt_record, grade_summary, run_summary
from primitives import Body, Signer, canonical, sha256
from steps import Checkpoint, Late, Step

_LEFT_OUT = ("journal.jsonl", "design.json", "lock", "checkpoints", "packs", "manifests", "scratch")
_DERIVED = {"grade_summary.json", "summary.json"}


def take(folder: Path) -> Story:
    """What stands in a run folder whose run ended; what follows from its entries is worked out again when sealed."""
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_bytes().splitlines()]
    story = Story(json.loads((folder / "design.json").read_bytes()), signer=Signer(), run_id=lines[0]["body"]["run_id"])
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name.split("/")[0] not in _LEFT_OUT and not name.startswith("."):
            story.files[name] = path.read_bytes()
    story.packs = {path.name: bytearray(path.read_bytes()) for path in sorted((folder / "packs").iterdir())}
    for path in sorted((folder / "manifests").iterdir()):
        manifest = json.loads(path.read_bytes())
        if manifest["verdict"] == "admitted":
            manifest["design_sha256"] = Late(lambda s: sha256(canonical(s.design)))
        story.manifests[f"manifests/{path.name}"] = manifest
    last = max(at for at, line in enumerate(lines) if line["kind"] == "run.ended")
    for at, line in enumerate(lines):
        if line["kind"] == "checkpoint.made":
            story.checkpoint()
        else:
            story.add(line["kind"], **_body(story, line["kind"], line["body"], is_last=at == last))
    story.checkpoint(named=False)
    return story


def _body(story: Story, kind: str, body: Body, *, is_last: bool) -> Body:
    if kind in ("run.admitted", "run.resumed"):
        body["key"] = {"vkey": story.signer.vkey, "fingerprint": story.signer.fingerprint}
        body["manifest"] = story.reference(body["manifest"]["path"])
        body["abandoned"] = [story.reference(each["path"]) for each in body["abandoned"]]
    if kind == "run.admitted":
        body["design_sha256"] = Late(lambda s: sha256(canonical(s.design)))
    elif kind == "attempt.admitted":
        story.open[body["attempt"]] = body
    elif kind == "exchange.admitted":
        story.bounds[body["exchange"]] = body["held"]
    elif kind == "trial.final":
        story.finals[body["trial"]] = body
    elif kind == "attempt.files":
        return _files(story, body)
    elif kind == "run.ended" and is_last:
        story.files["grade_summary.json"] = Late(lambda s: canonical(grade_summary(s.design, s.finals)))
        story.files["summary.json"] = Late(lambda s: canonical(run_summary(s)))
        body["files"] = Late(lambda s: [s.fact("", name) for name in sorted(_DERIVED)])
    return body


def _files(story: Story, body: Body) -> Body:
    attempt = body["attempt"]
    folder = story.open[attempt]["folder"]
    for file in body["files"]:
        path = f"{folder}/{file['path']}"
        if file["path"] == "attempt.json" and file["role"] == "derived":
            story.files[path] = Late(lambda s: canonical(s.settled(attempt_record(s, attempt))))
    was = [dict(file) for file in body["files"]]
    return {**body, "files": Late(lambda s: [s.fact(f"{folder}/", f["path"], role=f["role"]) for f in was])}


def rewrite(story: Story, step: Step, name: str, new: bytes) -> None:
    """Another content where a step names a blob."""
    step.body[name] = story.blob(new)
    story.repack()


def without(story: Story, *steps: Step | Checkpoint) -> None:
    """Steps are gone, and so are the frames that they alone named."""
    for step in steps:
        story.drop(step)
    story.repack()
