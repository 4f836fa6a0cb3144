"""From a task file's values to the schema: older keys migrated, unknown keys listed, errors as refusals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from proctor.core import toml
from proctor.core.near import closest
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.schema import Table, TaskToml

# tomllib takes memory by the square of a key's parts: 100,000 dots are a 200 kB file and tens of gigabytes
_LONG_KEY = re.compile(r"""(?<![A-Za-z0-9_-])(?:(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){64}""")
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?\s*", re.IGNORECASE)
_UNITS_MB = {"": 1 / 2**20, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024.0}


@dataclass(frozen=True)
class UnknownKey:
    """A key that the schema does not have: its dotted name, and the closest known name beside it, if any is near."""

    name: str
    closest: str | None


@dataclass(frozen=True)
class ReadToml:
    """The file in the schema's terms, and what was done to it."""

    toml: TaskToml
    unknown_keys: tuple[UnknownKey, ...]
    migrated: tuple[str, ...]


def read_toml(data: bytes, where: str) -> ReadToml:
    """Parse and validate a `task.toml`.

    Raises:
        Refusal: TASK_UNREADABLE naming the line (not TOML) or every key that has a wrong value.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _unreadable(f"it is not UTF-8 at byte {error.start}", where) from error
    return read_config(parse_toml(text, where), where)


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """The values of a TOML text. Raises Refusal TASK_UNREADABLE naming the line."""
    if _LONG_KEY.search(text):
        raise _unreadable("a key has more than 64 parts", where)
    try:
        return toml.loads(text)
    except (ValueError, RecursionError) as error:  # an integer of 5,000 digits is a plain ValueError
        raise _unreadable(f"it is not TOML: {error}", where) from error


def read_config(raw: dict[str, Any], where: str, words: Mapping[str, str] = MappingProxyType({})) -> ReadToml:
    """Values in Harbor's terms; older keys are carried over in place.

    Args:
        raw: the file's values.
        where: the file.
        words: Harbor's dotted names, and what the file calls them, the longest first.

    Raises:
        Refusal: TASK_UNREADABLE naming every key that has a wrong value, in the file's words.
    """

    def called(name: str) -> str:
        for ours, theirs in words.items():
            if name == ours or name.startswith(f"{ours}."):
                return theirs + name[len(ours) :]
        return name

    try:
        migrated = tuple(called(line) for line in _migrate(raw))
        read = TaskToml.model_validate(raw)
    except ValidationError as error:
        raise _unreadable("; ".join(faults_of(error, called)), where) from error
    except _Unfit as error:
        raise _unreadable(called(str(error)), where) from error
    unknown = (
        UnknownKey(called(key.name), None if key.closest is None else called(key.closest)) for key in _unknown(read, "")
    )
    return ReadToml(read, tuple(unknown), migrated)


def faults_of(error: ValidationError, called: Callable[[str], str] = str) -> list[str]:
    """Every wrong value by its dotted name."""
    return [f"{called('.'.join(map(str, fault['loc']))) or 'the file'}: {fault['msg']}" for fault in error.errors()]


class _Unfit(ValueError):
    """An older key whose value cannot be carried over."""


def _unreadable(what: str, where: str) -> Refusal:
    return Refusal(Reason.TASK_UNREADABLE, f"{PurePath(where).name} cannot be read: {what}.", path=where)


def _migrate(raw: dict[str, Any]) -> Iterator[str]:
    """Carry older keys over, in place; says what was done."""
    if "version" in raw:
        old = raw.pop("version")
        text = old if isinstance(old, str) else str(old) if type(old) in (int, float) else None
        if text is None:
            raise _Unfit("version: a schema version is a string")
        if raw.setdefault("schema_version", text) != text:
            raise _Unfit(f"version says {text!r} and schema_version {raw['schema_version']!r}")
        yield "version -> schema_version"
    for name, artifacts in (("artifacts", raw), *((f"steps.{i}.artifacts", s) for i, s in enumerate(_tables(raw)))):
        listed = artifacts.get("artifacts")
        if isinstance(listed, str):
            raise _Unfit(f"{name}: a list is wanted")
        if isinstance(listed, list):
            artifacts["artifacts"] = [{"source": item} if isinstance(item, str) else item for item in listed]
    verifier = raw.get("verifier")
    inner = verifier.get("environment") if isinstance(verifier, dict) else None
    for prefix, table in (("environment", raw.get("environment")), ("verifier.environment", inner)):
        if isinstance(table, dict):
            yield from (f"{prefix}.{line}" for line in _migrate_environment(prefix, table))


def _tables(raw: dict[str, Any]) -> list[dict[str, Any]]:
    steps = raw.get("steps")
    return [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []


def _migrate_environment(prefix: str, table: dict[str, Any]) -> Iterator[str]:
    for old, new in (("memory", "memory_mb"), ("storage", "storage_mb")):
        if old not in table:
            continue
        megabytes = _megabytes(f"{prefix}.{old}", table.pop(old))
        if table.setdefault(new, megabytes) != megabytes:
            raise _Unfit(f"{prefix}.{old} says {megabytes} MB and {new} says {table[new]!r}")
        yield f"{old} -> {new} = {megabytes}"
    if "allow_internet" in table:
        allowed = table.pop("allow_internet")
        if not isinstance(allowed, bool):
            raise _Unfit(f"{prefix}.allow_internet: true or false is wanted")
        if not allowed:
            if table.get("allowed_hosts") or table.setdefault("network_mode", "no-network") != "no-network":
                raise _Unfit(f"{prefix}.allow_internet is false and the network fields allow more")
        elif "network_mode" not in table and not table.get("allowed_hosts"):
            table["network_mode"] = "public"
        yield f"allow_internet -> network_mode = {table.get('network_mode', 'allowlist')}"


def _megabytes(name: str, value: object) -> int:
    match = _SIZE.fullmatch(value) if isinstance(value, str) and len(value) <= 32 else None
    if match is None:
        raise _Unfit(f"{name}: a size such as '2G' or '4 GiB' is wanted, not {value!r}")
    megabytes = int(float(match[1]) * _UNITS_MB[match[2].upper()])
    if megabytes <= 0:
        raise _Unfit(f"{name}: {value!r} is less than one megabyte")
    return megabytes


def _unknown(table: Table, prefix: str) -> Iterator[UnknownKey]:
    known = list(type(table).model_fields)
    for key in table.model_extra or {}:
        near = closest(key, known, cutoff=0.7)
        yield UnknownKey(prefix + key, None if near is None else prefix + near)
    for key in known:
        value = getattr(table, key)
        for suffix, inner in (
            [(f"{key}.", value)]
            if isinstance(value, Table)
            else [(f"{key}.{i}.", item) for i, item in enumerate(value) if isinstance(item, Table)]
            if isinstance(value, list)
            else []
        ):
            yield from _unknown(inner, prefix + suffix)
