"""Names of things: run ids, trial ids, attempt ids, and the names of folders and for people made from them."""

from __future__ import annotations

import hashlib
import re
import secrets

from proctor.core.canonical import encode

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def new_run_id() -> str:
    """A random id for a run: 26 lower-case base-32 characters (130 bits)."""
    alphabet = "abcdefghijkmnpqrstuvwxyz23456789"
    return "".join(secrets.choice(alphabet) for _ in range(26))


def trial_id(task: str, model: str | None, arm: str, epoch: int) -> str:
    """The first 16 hex digits of SHA-256 over canonical JSON `[task, model, arm, epoch]`; epochs count from 1."""
    return hashlib.sha256(encode([task, model, arm, epoch])).hexdigest()[:16]


def attempt_id(trial: str, number: int) -> str:
    """`<trial id>/<number>`; numbers count from 0."""
    return f"{trial}/{number}"


def trial_folder(task: str, model: str | None, arm: str, epoch: int) -> str:
    """`<slug>-<8 hex>`: readable, safe as a file name on every system, at most 120 characters."""
    parts = [task, *([model] if model else []), arm, str(epoch)]
    slug = "-".join(_UNSAFE.sub("-", part).strip("-.") or "x" for part in parts)
    return f"{slug[:111]}-{trial_id(task, model, arm, epoch)[:8]}"


def trial_label(task: str, model: str | None, arm: str, epoch: int, number: int = 0) -> str:
    """For people: `task · model · arm · epoch`, and which attempt from the second on."""
    parts = " · ".join([task, *([model] if model else []), arm, str(epoch)])
    return f"{parts} (attempt {number})" if number else parts
