"""RUN lines that need no image builder: plain file commands and package installs, joined by `&&`.

Everything else (pipes, variables, globs, other programs) is `NotPlain`. Nothing here runs anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from proctor.tasks.dockerfile import NotPlain

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_PACKAGE_CACHES = ("/var/lib/apt/lists", "/var/cache/apt", "/root/.cache")
_APT_VALUED = frozenset({"-o", "--option", "-c", "--config-file", "-t", "--target-release"})
_PIP_VALUED = frozenset({"-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--trusted-host", "--timeout"})
_PIP_ELSEWHERE = frozenset(
    {"-r", "--requirement", "-e", "--editable", "-c", "--constraint", "-t", "--target", "--prefix", "--root"}
)
_APT_NAME = re.compile(r"([a-z0-9][a-z0-9+.-]*)(?::[a-z0-9-]+)?(?:=([^/\s]+)|/[a-z0-9-]+)?")
_PIP_NAME = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:\[[^\]]*\])?\s*((?:[<>=!~]=?=?[^;]+)?)")


@dataclass(frozen=True)
class FileCommand:
    """A plain command on files. `owner` is who a chown gives to."""

    argv: tuple[str, ...]
    owner: str | None = None


@dataclass(frozen=True)
class MakeFolders:
    """`mkdir -p`: the paths as written."""

    paths: tuple[str, ...]


@dataclass(frozen=True)
class Package:
    """A package by its manager's name; `wanted` is the version asked for as written, None where any does."""

    name: str
    wanted: str | None


@dataclass(frozen=True)
class PackageInstall:
    """An install, or (with no packages) an update of the package lists. `manager` is `apt` or `pip`."""

    manager: str
    packages: tuple[Package, ...]


Plain = FileCommand | MakeFolders | PackageInstall


@dataclass(frozen=True)
class _Word:
    text: str
    glob: bool


def plain_commands(script: str) -> tuple[Plain, ...]:
    """Read a shell-form RUN. Raises NotPlain naming what goes beyond."""
    found: list[Plain] = []
    for words in _split(script):
        found.extend(_command(words))
    return tuple(found)


def plain_argv(argv: tuple[str, ...]) -> tuple[Plain, ...]:
    """Read an exec-form RUN. Raises NotPlain."""
    if len(argv) == 3 and argv[0].rpartition("/")[2] in ("sh", "bash") and argv[1] == "-c":
        return plain_commands(argv[2])
    return tuple(_command([_Word(word, False) for word in argv]))


def _split(script: str) -> list[list[_Word]]:
    """Commands joined by `&&`, as words without their quotes."""
    commands: list[list[_Word]] = [[]]
    text: str | None = None
    glob = False
    at = 0

    def close() -> None:
        nonlocal text, glob
        if text is not None:
            commands[-1].append(_Word(text, glob))
        text, glob = None, False

    while at < len(script):
        char = script[at]
        if char.isspace():
            close()
        elif script.startswith("&&", at):
            close()
            commands.append([])
            at += 1
        elif char in ";|&<>()`$!{}~" or (char == "#" and text is None):
            raise NotPlain(f"a shell does more than plain commands at {char!r}")
        elif char == "'":
            end = script.find("'", at + 1)
            if end < 0:
                raise NotPlain("a quote has no end")
            text = (text or "") + script[at + 1 : end]
            at = end
        elif char == '"':
            end = script.find('"', at + 1)
            inner = script[at + 1 : end]
            if end < 0 or any(special in inner for special in "\\$`"):
                raise NotPlain("a quoted word holds a variable or an escape")
            text = (text or "") + inner
            at = end
        elif char == "\\":
            text = (text or "") + script[at + 1 : at + 2]
            at += 1
        else:
            glob = glob or char in "*?["
            text = (text or "") + char
        at += 1
    close()
    if not all(commands):
        raise NotPlain("a command is empty")
    return commands


def _command(words: list[_Word]) -> list[Plain]:
    assigned = 0
    while assigned < len(words) and _ASSIGNMENT.fullmatch(words[assigned].text):
        assigned += 1
    words = words[assigned:]
    if not words:
        raise NotPlain("a command is empty")
    name = words[0].text.rpartition("/")[2]
    if name == "rm":
        return _remove(words)
    reader = _READERS.get(name)
    if reader is not _pip and any(word.glob for word in words):
        raise NotPlain("a glob is expanded inside the image")
    if reader is None or (assigned and reader not in (_apt, _pip)):
        raise NotPlain(f"{name} may do anything")
    return reader([word.text for word in words])


def _remove(words: list[_Word]) -> list[Plain]:
    paths = [word.text for word in words[1:] if not word.text.startswith("-")]
    if not all(any(path == cache or path.startswith(cache + "/") for cache in _PACKAGE_CACHES) for path in paths):
        raise NotPlain("rm takes away more than package caches")
    return []


def _nothing(_argv: list[str]) -> list[Plain]:
    return []


def _options(argv: list[str], allowed: str) -> tuple[set[str], list[str]]:
    """Single-letter options out of `allowed`, and the operands after them. Raises NotPlain for another option."""
    seen: set[str] = set()
    rest = argv[1:]
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        letters = {"--parents": "p", "--recursive": "R", "--verbose": "v", "--symbolic": "s", "--force": "f"}.get(word)
        if letters is None and word.startswith("--"):
            raise NotPlain(f"{argv[0]} {word} is not read")
        for letter in letters or word[1:]:
            if letter not in allowed:
                raise NotPlain(f"{argv[0]} -{letter} is not read")
            seen.add(letter)
    if not rest:
        raise NotPlain(f"{argv[0]} names nothing")
    return seen, rest


def _mkdir(argv: list[str]) -> list[Plain]:
    if len(argv) > 2 and argv[1] in ("-m", "--mode"):
        return [FileCommand(tuple(argv))]
    options, paths = _options(argv, "pv")
    return [MakeFolders(tuple(paths)) if "p" in options else FileCommand(("mkdir", "--", *paths))]


def _chmod(argv: list[str]) -> list[Plain]:
    if len(argv) > 2 and re.fullmatch(r"-[rwxXst]+", argv[1]):  # `chmod -x file` is a mode, not an option
        return [FileCommand(tuple(argv))]
    _, rest = _options(argv, "Rvf")
    if len(rest) < 2:
        raise NotPlain("chmod needs a mode and a path")
    return [FileCommand(tuple(argv))]


def _chown(argv: list[str]) -> list[Plain]:
    _, rest = _options(argv, "Rvhf")
    if len(rest) < 2:
        raise NotPlain("chown needs an owner and a path")
    return [FileCommand(tuple(argv), owner=rest[0])]


def _touch(argv: list[str]) -> list[Plain]:
    _options(argv, "acm")
    return [FileCommand(tuple(argv))]


def _link(argv: list[str]) -> list[Plain]:
    options, rest = _options(argv, "sfnvT")
    if "s" not in options or len(rest) != 2:
        raise NotPlain("ln is read in the form ln -s TARGET PATH only")
    return [FileCommand(tuple(argv))]


def _apt(argv: list[str]) -> list[Plain]:
    words = _without_options(argv[1:], _APT_VALUED, frozenset())
    verb = words[0] if words else ""
    if verb in ("update", "clean", "autoclean", "autoremove"):
        return [PackageInstall("apt", ())]
    if verb != "install":
        raise NotPlain(f"{argv[0]} {verb} changes what is installed")
    packages = []
    for word in words[1:]:
        match = _APT_NAME.fullmatch(word)
        if match is None or word.endswith("-"):
            raise NotPlain(f"{word} is not a package's name")
        packages.append(Package(match[1], match[2]))
    return [PackageInstall("apt", tuple(packages))]


def _pip(argv: list[str]) -> list[Plain]:
    words = argv[1:]
    if argv[0].rpartition("/")[2].startswith("python"):
        if words[:2] != ["-m", "pip"]:
            raise NotPlain("python may do anything")
        words = words[2:]
    elif argv[0].rpartition("/")[2] == "uv":
        if words[:1] != ["pip"]:
            raise NotPlain("uv is read in the form uv pip install only")
        words = words[1:]
    words = _without_options(words, _PIP_VALUED, _PIP_ELSEWHERE)
    if words[:2] == ["cache", "purge"]:
        return []
    if words[:1] != ["install"]:
        raise NotPlain(f"pip {' '.join(words[:1])} changes what is installed")
    packages = []
    for word in words[1:]:
        match = _PIP_NAME.fullmatch(word.partition(";")[0].strip())
        if match is None:
            raise NotPlain(f"{word} is not a package's name")
        packages.append(Package(match[1], match[2].strip().removeprefix("==") or None))
    return [PackageInstall("pip", tuple(packages))]


def _without_options(words: list[str], valued: frozenset[str], elsewhere: frozenset[str]) -> list[str]:
    rest: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word.partition("=")[0] in elsewhere:
            raise NotPlain(f"{word} takes packages from elsewhere")
        elif word in valued:
            skip = True
        elif not word.startswith("-"):
            rest.append(word)
    return rest


_READERS: dict[str, Callable[[list[str]], list[Plain]]] = {
    "mkdir": _mkdir,
    "chmod": _chmod,
    "chown": _chown,
    "touch": _touch,
    "ln": _link,
    "true": _nothing,
    ":": _nothing,
    "set": _nothing,
    "apt-get": _apt,
    "apt": _apt,
    "pip": _pip,
    "pip3": _pip,
    "python": _pip,
    "python3": _pip,
    "uv": _pip,
}
