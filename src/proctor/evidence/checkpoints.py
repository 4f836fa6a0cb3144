"""Checkpoints: signed tree heads over the journal's lines, one small file each."""

from __future__ import annotations

import re
from typing import Any

from proctor.evidence import notes
from proctor.evidence.disk import open_regular, unreadable
from proctor.evidence.entries import Chain, damaged
from proctor.evidence.keys import OperatorKey
from proctor.evidence.runfolder import FileRef, RunFolder

NAME = re.compile(r"([0-9]{12})\.note", re.ASCII)


class Signer:
    """Makes the checkpoints of one run with one key."""

    def __init__(self, run: RunFolder, key: OperatorKey, run_id: str) -> None:
        self.run_id = run_id
        self._run = run
        self._key = key
        self._origin = origin(run_id)

    def make(self, chain: Chain) -> dict[str, Any]:
        """Write the checkpoint over all of `chain`, durably; returns the body of its `checkpoint.made`.

        Raises OSError.
        """
        root = chain.tree.root()
        note = self._key.sign(notes.Checkpoint(self._origin, chain.size, root).text())
        path = self._run.checkpoints / name_of(chain.size)
        self._run.disk.put(path, note)
        return _body(FileRef.of(self._run.relative(path), note), chain.size, root)


def origin(run_id: str) -> str:
    """The first line of a run's checkpoints."""
    return f"proctor/run/{run_id}"


def name_of(size: int) -> str:
    """How the file of a checkpoint over so many entries is called."""
    return f"{size:012d}.note"


def standing(run: RunFolder) -> dict[int, dict[str, Any]]:
    """The checkpoint files that stand, by size: each as the body of its `checkpoint.made`. Signatures are not checked.

    Raises:
        Refusal: `evidence_damaged` for one that is no checkpoint of the size in its name, `evidence_unreadable`.
    """
    found = {}
    if not run.checkpoints.is_dir():
        return {}
    for path in sorted(run.checkpoints.iterdir()):
        named = NAME.fullmatch(path.name)
        if named is None:
            continue
        relative = run.relative(path)
        try:
            with open_regular(path) as file:
                data = file.read(notes.MAX_NOTE_BYTES + 1)
        except OSError as error:
            raise unreadable("a checkpoint", relative, error) from error
        head = notes.Checkpoint.parse(notes.parse(data, path=relative).text, path=relative)
        if head.size != int(named[1]):
            raise damaged("a checkpoint's size is not that of its name", relative, observed=head.size)
        found[head.size] = _body(FileRef.of(relative, data), head.size, head.root)
    return found


def _body(file: FileRef, size: int, root: bytes) -> dict[str, Any]:
    return {"path": file.path, "sha256": file.sha256, "size": size, "root": root.hex()}
