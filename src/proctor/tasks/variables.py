"""`${VAR}` and `${VAR:-default}` in a task's environment, looked up on the host with care.

Only names that the task writes are looked up, and a value is a template only as a whole (as the format has it). What
looks like a credential never reaches what an agent sees where a default stands in for it; names in `withheld` (keys
of the study's own models) go nowhere at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_TEMPLATE = re.compile(r"\$\{([^}:]+)(?::-(.*))?\}", re.DOTALL)
_CREDENTIAL = re.compile(
    r"aws|boto|tigris|azure|gcp|google_application|kube|docker_config|netrc"
    r"|key|token|secret|passw|passphrase|credential|auth|cookie|session",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Resolved:
    """A task's variables with values.

    `from_host` names the host variables whose values went in, `withheld` those that were set and kept out, `missing`
    those without value or default.
    """

    env: Mapping[str, str]
    from_host: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def taken_literally(templates: Mapping[str, str]) -> list[str]:
    """Names whose value holds a `${` and is no template as a whole: the format hands it on as it is written."""
    return [name for name, value in templates.items() if "${" in value and not _TEMPLATE.fullmatch(value)]


def resolve(templates: Mapping[str, str], host: Mapping[str, str], withheld: frozenset[str], *, seen: bool) -> Resolved:
    """Give every template its value; a missing one is left out of `env`. `seen` says that an agent sees the result."""
    env: dict[str, str] = {}
    taken: list[str] = []
    kept_out: list[str] = []
    missing: list[str] = []
    for name, template in templates.items():
        match = _TEMPLATE.fullmatch(template)
        if match is None:
            env[name] = template
            continue
        wanted, default = match[1], match[2]
        value = host.get(wanted)
        if value is not None and (wanted in withheld or (seen and default is not None and _CREDENTIAL.search(wanted))):
            kept_out.append(wanted)
            value = None
        if value is not None:
            env[name] = value
            taken.append(wanted)
        elif default is not None:
            env[name] = default
        else:
            missing.append(wanted)
    return Resolved(env, tuple(taken), tuple(kept_out), tuple(missing))
