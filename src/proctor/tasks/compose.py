"""A task's compose file, as far as it is nothing but its `main` service in other words."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.plain_yaml import read_yaml

NAMES = ("docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml")

_WITHOUT_EFFECT = frozenset({"tty", "stdin_open", "init", "container_name", "labels", "pull_policy"})
_IDLE = re.compile(r"(?:(?:/bin/)?(?:ba)?sh -c )?(?:sleep infinity|tail -f /dev/null)")
# What Harbor's own runner sets for compose files that repeat what it does anyway: keep alive, mount the log folders,
# tag the build, hold the task's limits. Such lines say nothing of the task.
_OF_THE_RUNNER = {
    "TEST_DIR": "/tests",
    "ENV_VERIFIER_LOGS_PATH": "/logs/verifier",
    "ENV_AGENT_LOGS_PATH": "/logs/agent",
    "ENV_ARTIFACTS_PATH": "/logs/artifacts",
}
_LOG_MOUNT = re.compile(r"\$\{HOST_(VERIFIER_LOGS|AGENT_LOGS|ARTIFACTS)_PATH\}:\$\{ENV_\1_PATH\}")
_ITS_LIMITS = {"cpus": "${CPUS}", "memory": "${MEMORY}"}
_ITS_IMAGES = ("${MAIN_IMAGE_NAME}", "${PREBUILT_IMAGE_NAME}")
_HERE = (".", "./", "${CONTEXT_DIR}")
_TEMPLATE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^${}]*))?\}")


@dataclass(frozen=True)
class Compose:
    """What the file says of `main`; `beyond` lists what only compose can do (empty: nothing)."""

    path: str
    image: str | None = None
    builds: bool = False
    workdir: str | None = None
    user: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    beyond: tuple[str, ...] = ()


def read_compose(text: str, path: str) -> Compose:
    """Read a compose file at `path` (relative to the task).

    Raises:
        Refusal: TASK_UNREADABLE for what is not plain YAML (an alias, a doubled key, a tag, deep nesting).
    """
    content = read_yaml(text, "The compose file", path)
    if not isinstance(content, dict) or not isinstance(content.get("services"), dict):
        raise Refusal(Reason.TASK_UNREADABLE, "The compose file has no services.", path=path)
    services = content["services"]
    beyond = [str(key) for key in content if key not in ("services", "version", "name") and not _private(key)]
    beyond += [f"services.{name}" for name in services if name != "main"]
    main = services.get("main")
    if not isinstance(main, dict):
        return Compose(path, beyond=(*beyond, "no service main"))
    return _main(main, path, beyond)


def _main(main: dict[Any, Any], path: str, beyond: list[str]) -> Compose:
    said: dict[str, Any] = {}
    env: dict[str, str] = {}
    for key, value in main.items():
        if key in ("image", "user", "working_dir") and _literal(value):
            said[key] = str(value)
        elif key == "build" and _same_folder(value):
            said[key] = True
        elif key == "environment":
            env, faults = _environment(value)
            beyond.extend(faults)
        elif not (key in _WITHOUT_EFFECT or _private(key) or _as_the_runner_does(key, value)):
            beyond.append(f"services.main.{key}")
    workdir = said.get("working_dir")
    if workdir is not None and not workdir.startswith("/"):
        beyond.append("services.main.working_dir is relative")
    return Compose(
        path=path,
        image=said.get("image"),
        builds=said.get("build", False),
        workdir=None if workdir is None else posixpath.normpath(workdir),
        user=said.get("user"),
        env=env,
        beyond=tuple(beyond),
    )


def _private(key: object) -> bool:
    return isinstance(key, str) and key.startswith("x-")


def _as_the_runner_does(key: object, value: object) -> bool:
    """Whether a line says what is done anyway."""
    if key == "command":
        return _idle(value)
    if key == "image":
        return value in _ITS_IMAGES
    if key == "volumes":
        return isinstance(value, list) and all(isinstance(each, str) and _LOG_MOUNT.fullmatch(each) for each in value)
    if key == "deploy":
        limits = value
        for name in ("resources", "limits"):
            limits = limits[name] if isinstance(limits, dict) and set(limits) == {name} else None
        return isinstance(limits, dict) and limits.items() <= _ITS_LIMITS.items()
    return False


def _literal(value: object) -> bool:
    return (isinstance(value, str) and "$" not in value and bool(value)) or type(value) is int


def _same_folder(value: object) -> bool:
    if isinstance(value, dict):
        known = {"context", "dockerfile"}.issuperset(value)
        return known and value.get("context", ".") in _HERE and value.get("dockerfile", "Dockerfile") == "Dockerfile"
    return value in _HERE


def _idle(value: object) -> bool:
    words = " ".join(map(str, value)) if isinstance(value, list) else value
    return isinstance(words, str) and _IDLE.fullmatch(words.replace('"', "").replace("'", "")) is not None


def _environment(value: object) -> tuple[dict[str, str], list[str]]:
    """Variables as templates in the task format's terms, and what could not be said in them."""
    env: dict[str, str] = {}
    faults: list[str] = []
    for name, text in _pairs(value):
        where = f"services.main.environment.{name}"
        if isinstance(text, bool) or not isinstance(text, str | int | float):
            faults.append(where)
            continue
        plain = str(text)
        template = _TEMPLATE.fullmatch(plain)
        if template is not None and template[1] in _OF_THE_RUNNER:
            env[name] = _OF_THE_RUNNER[template[1]]
        elif template is not None:
            env[name] = f"${{{template[1]}:-{template[2] or ''}}}"  # compose takes an unset one as empty
        elif "$" in plain.replace("$$", ""):
            faults.append(where)
        else:
            env[name] = plain.replace("$$", "$")
    return env, faults


def _pairs(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        yield from ((str(name), text) for name, text in value.items())
    elif isinstance(value, list):
        for item in value:
            name, given, text = str(item).partition("=")
            yield name, text if given else None
    elif value is not None:
        yield "?", None
