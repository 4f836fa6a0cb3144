"""How many frames and blobs were looked at, whoever names them again, and how large a pack may be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from builder import Story
from designs import make_design
from money_stories import money_story
from plants_withheld import withhold
from primitives import Body, sha256

# More than are remembered: what is forgotten is looked at again.
MANY = 4097


def _story(*refs: Body) -> Story:
    """A run in which a request of each of them was not passed on: all that the checks of bytes look at."""
    s = Story(make_design(models=1))
    for ref in refs:
        said = {"model": "model-0", "reason": "route_unknown", "held": "0.000000000000", "message": "", "route": ""}
        s.add("exchange.refused", attempt=f"{'0' * 16}/0", request=ref, **said)
    return s


def _frames(contents: list[bytes], pack: str) -> list[Body]:
    refs, at = [], 0
    for content in contents:
        ref = {"blob": sha256(content), "size": len(content), "pack": pack, "offset": at, "length": len(content)}
        refs.append({**ref, "encoding": "raw", "stored_sha256": ref["blob"]})
        at += len(content)
    return refs


def _said(story: Story, folder: Path, check_id: str) -> str:
    # imported here and not before: the mutation run has many programs
    from proctor_verify import verify
    from proctor_verify.checks import CHECKS

    story.write(folder)
    checks = [check for check in CHECKS if check.id == check_id]
    return verify(folder, checks=checks).results[0].seen


def test_a_frame_that_is_named_again_is_looked_at_once(tmp_path: Path) -> None:
    first, second = _frames([b"first", b"second"], "0001.pack")
    s = _story(first, second, first, second)
    s.files["packs/0001.pack"] = b"firstsecond"
    assert _said(s, tmp_path, "packs.frames") == "frames: 2"


def test_the_frames_of_a_long_run_are_forgotten_and_may_be_named_all_the_same(tmp_path: Path) -> None:
    contents = [b"%04d" % number for number in range(MANY)]
    refs = _frames(contents, "0001.pack")
    # the last frame of the first pack begins before the end of this one, and ends after it
    content = bytes(4 * MANY - 2)
    (later,) = _frames([content], "0002.pack")
    s = _story(*refs, refs[-1], *refs, later, *refs)
    s.files |= {"packs/0001.pack": b"".join(contents), "packs/0002.pack": content}
    # the last of each round is the one that was not remembered; so is the one of the second pack
    assert _said(s, tmp_path, "packs.frames") == f"frames: {MANY + 4:,}"


@pytest.mark.parametrize(("more", "said"), [(0, "frames: 257"), (1, "1 finding")])
def test_a_pack_may_be_so_large(more: int, said: str, tmp_path: Path) -> None:
    """Of zeros, which a file system does not keep."""
    most, frame = 256 << 20, bytes(1 << 20)
    digest, rest = sha256(frame), sha256(bytes((1 << 19) + more))
    ref = {"blob": digest, "size": len(frame), "pack": "0001.pack", "length": len(frame), "encoding": "raw"}
    refs: list[Body] = [{**ref, "offset": at << 20, "stored_sha256": digest} for at in range(255)]
    half = {**ref, "size": 1 << 19, "length": 1 << 19, "blob": sha256(bytes(1 << 19))}
    refs.append({**half, "offset": 255 << 20, "stored_sha256": half["blob"]})
    size = (1 << 19) + more
    last = {"size": size, "length": size, "blob": rest, "stored_sha256": rest}
    refs.append({**ref, "offset": (255 << 20) + (1 << 19), **last})
    s = _story(*refs)

    def write(_: Story, folder: Path) -> None:
        (folder / "packs/0001.pack").touch()
        os.truncate(folder / "packs/0001.pack", most + more)

    s.afterwards.append(write)
    assert _said(s, tmp_path, "packs.frames") == said


def test_a_blob_that_is_named_again_is_looked_at_once(tmp_path: Path) -> None:
    s = _story()
    ref = s.blob(b"large", large=True)
    s = _story(ref, ref)
    s.files[ref["path"]] = b"large"
    assert _said(s, tmp_path, "blobs.files") == "blobs: 1"


def test_a_chunk_map_that_is_named_again_is_read_once_and_held_against_each_response(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from proctor_verify import verify
    from proctor_verify.checks.chunks import Chunks
    from proctor_verify.folder import Folder

    s = money_story()
    ended = [step for step in s.entries() if step.kind == "exchange.ended" and step.body["response"] is not None]
    chunks, long, short = s.blob(b"[[0,0],[7,1]]"), s.blob(bytes(8)), s.blob(bytes(7))
    for step in ended:
        step.body.update(chunks=chunks, response=long)
    ended[-1].body["response"] = short
    s.repack()
    folder, read = s.write(tmp_path / "run"), Folder.read_part
    reads = []
    monkeypatch.setattr(Folder, "read_part", lambda self, path, *at: (reads.append(path), read(self, path, *at))[1])
    (found,) = verify(folder, checks=[Chunks]).results
    assert (len(reads), len(ended) > 2, found.count) == (1, True, 1)
    assert "the response has 7 bytes" in found.findings[0].seen


def test_a_chunk_map_that_is_withheld_is_not_looked_at(tmp_path: Path) -> None:
    from proctor_verify import verify
    from proctor_verify.checks.chunks import Chunks

    s = money_story()
    folder = s.write(tmp_path / "run")
    (whole,) = verify(folder, checks=[Chunks]).results
    assert whole.seen == "chunk maps: 1"
    withhold(folder)
    (copy,) = verify(folder, checks=[Chunks]).results
    assert copy.seen == "no chunk maps"
