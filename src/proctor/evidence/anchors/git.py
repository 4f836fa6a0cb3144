"""A git repository as an anchor: each checkpoint is a commit on a ref of the run's own, which only moves forward.

Nothing is believed that git says in words. Whether a push was taken is its return code, and what stands there then is
fetched anew into an empty repository and compared, byte by byte.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from proctor.core.reasons import Reason
from proctor.core.tokens import Admitted, Probe
from proctor.evidence.anchors.base import AnchorFailed, CheckpointFile, Pushed
from proctor.evidence.anchors.places import Place
from proctor.evidence.anchors.program import DEADLINE_SEC, LOCAL_DEADLINE_SEC, Done, GitProgram
from proctor.evidence.notes import MAX_NOTE_BYTES

FILE = "checkpoint"
AUTHOR = "proctor"
_REF_LINE = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64})\t(\S+)\n")
# an object's id, by its length in hex digits
_FORMATS = {40: "sha1", 64: "sha256"}
# that many checkpoints that no receipt names would be of a week in which nothing else worked
_MAX_UNKNOWN = 4096


class GitAnchor:
    """One repository, for one run. `last` is the newest commit there that a receipt names."""

    def __init__(self, place: Place, admitted: Admitted, fingerprint: str, *, last: str | None = None) -> None:
        """Touches nothing yet.

        Args:
            fingerprint: of the run's key: the commits' author.
            last: the newest commit there that a receipt of the run names.
        """
        self.place = place
        self._ref = f"refs/proctor/{admitted.run_id}"
        self._folder = admitted.run_dir / "scratch" / "anchors" / "git"
        self._fingerprint = fingerprint
        self._checkpoints = admitted.run_dir / "checkpoints"
        self._last = last
        self._program = GitProgram(self._folder, os.environ)

    def push(self, checkpoint: CheckpointFile, at: str) -> Pushed:
        """As `Anchor.push`."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            tip = self._tip()
            if tip is not None:
                return self._push(checkpoint, at, tip, _FORMATS[len(tip)])
            # where the ref is not there nobody says which ids the repository has: one of the two kinds is taken
            first, other = _FORMATS.values()
            try:
                return self._push(checkpoint, at, None, first)
            except AnchorFailed as failed:
                if failed.reason is not Reason.ANCHOR_REJECTED:
                    raise
                try:
                    return self._push(checkpoint, at, None, other)
                except AnchorFailed:
                    raise failed from None
        except OSError as error:
            raise _no_scratch(error) from error

    def stands(self, checkpoint: CheckpointFile) -> bool:
        """As `Anchor.stands`: at the ref is what a receipt names, or what the run put upon it."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            tip = self._tip()
            if tip is None:
                if self._last is not None:
                    raise self._differs("the run's ref is gone")
                return False
            kind = _FORMATS[len(tip)]
            if tip != self._last:
                own = self._repository("own", kind)
                self._fetch(own)
                self._look_at_others(own, tip)
            self._read_back(checkpoint, tip, kind)
        except OSError as error:
            raise _no_scratch(error) from error
        return True

    def cancel(self) -> None:
        """As `Anchor.cancel`."""
        self._program.cancel()

    def close(self) -> None:
        """Remove the scratch repositories."""
        self._program.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        for folder in list(self._folder.parents)[:2]:
            with contextlib.suppress(OSError):
                folder.rmdir()  # unless something else is in it

    def _push(self, checkpoint: CheckpointFile, at: str, tip: str | None, kind: str) -> Pushed:
        own = self._repository("own", kind)
        if tip is None and self._last is not None:
            raise self._differs("the run's ref is gone")
        if tip is not None and not self._local("cat-file", "-e", tip, repository=own).ok:
            self._fetch(own)
        if tip is not None and tip != self._last:
            self._look_at_others(own, tip)
        commit = self._commit(own, checkpoint, at, tip)
        pushed = self._call("push", "--quiet", "--", self.place.address, f"{commit}:{self._ref}", repository=own)
        if not pushed.ok:
            raise self._why_not(pushed)
        snapshot = self._read_back(checkpoint, commit, kind)
        self._last = commit
        return Pushed(0, snapshot)

    def _tip(self) -> str | None:
        """The commit at which the ref stands now, None where it is not there."""
        asked = self._call("ls-remote", "--", self.place.address, self._ref)
        if not asked.ok:
            raise AnchorFailed(Reason.ANCHOR_UNREACHABLE, _sentence("the repository does not answer", asked))
        # a pattern means the ends of names
        lines = [match for match in _REF_LINE.finditer(asked.output) if match[2].decode() == self._ref]
        return lines[0][1].decode() if lines else None

    def _fetch(self, own: Path) -> None:
        args = ("fetch", "--quiet", "--no-tags", "--", self.place.address, f"+{self._ref}:refs/there")
        fetched = self._call(*args, repository=own)
        if not fetched.ok:
            raise AnchorFailed(Reason.ANCHOR_UNREACHABLE, _sentence("the run's ref cannot be fetched", fetched))

    def _look_at_others(self, own: Path, tip: str) -> None:
        """What is there and was never receipted must be this run's: a process may have died before its receipt."""
        wanted = [f"--max-count={_MAX_UNKNOWN}", tip]
        if self._last is not None:
            if not self._local("merge-base", "--is-ancestor", self._last, tip, repository=own).ok:
                raise self._differs("the run's ref does not hold what was pushed before")
            wanted.append(f"^{self._last}")
        known = {hashlib.sha256(note.read_bytes()).digest() for note in self._checkpoints.glob("*.note")}
        for commit in self._local("rev-list", *wanted, repository=own).output.decode().split():
            data = self._file(own, commit)
            if data is None or hashlib.sha256(data).digest() not in known:
                raise self._differs("something stands at the run's ref that is no checkpoint of the run")

    def _commit(self, own: Path, checkpoint: CheckpointFile, at: str, parent: str | None) -> str:
        seconds = int(datetime.fromisoformat(at).timestamp())
        who = {
            f"GIT_{role}_{name}": value
            for role in ("AUTHOR", "COMMITTER")
            for name, value in (("NAME", AUTHOR), ("EMAIL", self._fingerprint), ("DATE", f"@{seconds} +0000"))
        }
        blob = self._made("hash-object", "-w", "--stdin", repository=own, given=checkpoint.data)
        tree = self._made("mktree", repository=own, given=f"100644 blob {blob}\t{FILE}\n".encode())
        above = ("-p", parent) if parent is not None else ()
        words = f"{checkpoint.size} entries\n".encode()
        return self._made("commit-tree", *above, tree, repository=own, given=words, variables=who)

    def _read_back(self, checkpoint: CheckpointFile, commit: str, kind: str) -> dict[str, object]:
        """What stands there now, fetched into an empty repository: the snapshot of a receipt."""
        fresh = self._repository("fresh", kind, again=True)
        fetched = self._call(
            *("fetch", "--quiet", "--no-tags", "--depth=1", "--", self.place.address, f"+{self._ref}:refs/there"),
            repository=fresh,
        )
        if not fetched.ok:
            if self._tip() != commit:
                raise self._differs("the run's ref is not at what was pushed", 0)
            raise AnchorFailed(Reason.ANCHOR_UNREACHABLE, _sentence("it cannot be read back", fetched), 0)
        there = self._local("rev-parse", "--verify", "refs/there", repository=fresh)
        if there.output.decode().strip() != commit:
            raise self._differs("the run's ref is not at what was pushed", 0)
        if self._file(fresh, commit) != checkpoint.data:
            raise self._differs("what stands there is not the checkpoint", 0)
        objects = {}
        tree = self._local("rev-parse", "--verify", f"{commit}^{{tree}}", repository=fresh).output.decode().strip()
        for name, oid in (("commit", commit), ("tree", tree)):
            content = self._local("cat-file", name, oid, repository=fresh).output
            head = f"{name} {len(content)}\0".encode()
            if hashlib.new(kind, head + content, usedforsecurity=False).hexdigest() != oid:
                raise self._differs(f"the {name} that stands there is another", 0)
            objects[name] = base64.b64encode(content).decode()
        return {"ref": self._ref, "commit": commit, "objects": objects}

    def _why_not(self, pushed: Done) -> AnchorFailed:
        """Whether the repository took nothing or nobody was there: by asking once more, not by what git said."""
        if pushed.return_code is None:
            return AnchorFailed(Reason.ANCHOR_UNREACHABLE, _sentence("the push did not end", pushed))
        self._tip()
        return AnchorFailed(Reason.ANCHOR_REJECTED, _sentence("the push was rejected", pushed), pushed.return_code)

    def _repository(self, name: str, kind: str, *, again: bool = False) -> Path:
        path = self._folder / f"{name}-{kind}.git"
        if again:
            shutil.rmtree(path, ignore_errors=True)
        if not path.is_dir():
            args = ("init", "--quiet", "--bare", "--template=", f"--object-format={kind}", str(path))
            made = self._program.call(*args, deadline_sec=LOCAL_DEADLINE_SEC)
            if not made.ok:
                shutil.rmtree(path, ignore_errors=True)
                raise AnchorFailed(Reason.WRITE_FAILED, _sentence("a scratch repository cannot be made here", made))
        return path

    def _file(self, repository: Path, commit: str) -> bytes | None:
        """The content of the one file of a commit's tree, None where there is another tree than that."""
        listed = self._local("ls-tree", "-z", "--full-tree", commit, repository=repository)
        match = re.fullmatch(rb"100644 blob ([0-9a-f]+)\t" + FILE.encode() + rb"\0", listed.output)
        if not listed.ok or match is None:
            return None
        blob = match[1].decode()
        size = self._local("cat-file", "-s", blob, repository=repository)
        if not size.ok or int(size.output) > MAX_NOTE_BYTES:
            return None
        content = self._local("cat-file", "blob", blob, repository=repository)
        return content.output if content.ok else None

    def _made(
        self, *args: str, repository: Path, given: bytes = b"", variables: Mapping[str, str] | None = None
    ) -> str:
        done = self._local(*args, repository=repository, given=given, variables=variables)
        if not done.ok:
            raise AnchorFailed(Reason.WRITE_FAILED, _sentence("the commit cannot be made here", done))
        return done.output.decode().strip()

    def _local(
        self, *args: str, repository: Path, given: bytes = b"", variables: Mapping[str, str] | None = None
    ) -> Done:
        done = self._program.call(
            *args, deadline_sec=LOCAL_DEADLINE_SEC, repository=repository, given=given, variables=variables
        )
        if done.return_code is None:
            raise AnchorFailed(Reason.WRITE_FAILED, _sentence("git does not work here", done))
        return done

    def _call(self, *args: str, repository: Path | None = None) -> Done:
        return self._program.call(*args, deadline_sec=DEADLINE_SEC, repository=repository)

    def _differs(self, message: str, return_code: int | None = None) -> AnchorFailed:
        return AnchorFailed(Reason.ANCHOR_DIFFERS, f"{message} ({self._ref})", return_code)


def look(place: Place, probe: Probe, environ: Mapping[str, str]) -> str | None:
    """Ask a repository what it has, read-only and with a deadline: None where it answers, else why not."""
    program = GitProgram(Path("/"), environ)
    try:
        asked = program.call("ls-remote", "--", place.address, "refs/proctor/none", deadline_sec=probe.deadline_sec)
    finally:
        program.close()
    return None if asked.ok else _sentence("the repository does not answer", asked)


def _no_scratch(error: OSError) -> AnchorFailed:
    return AnchorFailed(Reason.WRITE_FAILED, f"a scratch repository cannot be made here: {error.strerror or error}")


def _sentence(what: str, done: Done) -> str:
    code = "" if done.return_code is None else f" (git ended with {done.return_code})"
    return f"{what}{code}" + (f": {done.words}" if done.words else "")
