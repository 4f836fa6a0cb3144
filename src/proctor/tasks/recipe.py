"""What a Dockerfile makes, as far as it can be made without an image builder.

A recipe is a base image and ordered steps. Steps beyond the subset stand as `Unsupported` with their line, so that a
refusal can name them; installs stand as `Install`, for a root that a user has prepared with those packages.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.dockerfile import Instruction, NotPlain, expand, parse, split_words
from proctor.tasks.shellrun import FileCommand, MakeFolders, Package, plain_argv, plain_commands

# What Docker gives a build where the base image sets none; distribution images set the same.
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_OVERRIDDEN = frozenset({"CMD", "ENTRYPOINT", "LABEL", "EXPOSE", "MAINTAINER", "STOPSIGNAL", "HEALTHCHECK"})
_PLATFORM_ARGS = frozenset(
    f"{side}{part}" for side in ("TARGET", "BUILD") for part in ("PLATFORM", "OS", "ARCH", "VARIANT")
)
_ARCHIVE = re.compile(r".*\.(tar|tgz|tbz2?|txz|gz|bz2|xz|zst)", re.IGNORECASE)
_REMOTE = re.compile(r"[a-z][a-z0-9+.-]*://.*|git@.*", re.IGNORECASE)


@dataclass(frozen=True)
class Folder:
    """A folder that is there afterwards, with its parents; `user` owns what had to be made."""

    line: int
    path: str
    user: str | None = None


@dataclass(frozen=True)
class Command:
    """A command, run in `cwd` as `user` (None: root). `owner` is who a chown gives to.

    A `cwd` that is not absolute starts at the world's working directory; `timeout_sec` None is the build's.
    """

    line: int
    argv: tuple[str, ...]
    cwd: str
    user: str | None = None
    owner: str | None = None
    timeout_sec: float | None = None


@dataclass(frozen=True)
class Copy:
    """COPY or ADD of local files: source patterns relative to the context, an absolute destination.

    `into` says that the destination was written as a folder; `chmod` applies to every file and folder copied.
    """

    line: int
    sources: tuple[str, ...]
    destination: str
    into: bool
    chmod: int | None = None
    chown: str | None = None


@dataclass(frozen=True)
class Install:
    """An install by `apt` or `pip`; with no packages, an update of package lists."""

    line: int
    text: str
    manager: str
    packages: tuple[Package, ...]


@dataclass(frozen=True)
class Unsupported:
    """A line that needs an image builder, and why."""

    line: int
    text: str
    why: str


Step = Folder | Command | Copy | Install | Unsupported


@dataclass(frozen=True)
class Recipe:
    """A Dockerfile, read. `workdir` and `user` are None where it sets none; `ignored` are lines the field overrides.

    `instructions` are all of it, for those who can build it.
    """

    path: str
    base_image: str
    from_line: int
    steps: tuple[Step, ...]
    env: tuple[tuple[str, str], ...]
    workdir: str | None
    user: str | None
    ignored: tuple[str, ...]
    instructions: tuple[Instruction, ...] = ()


def read_recipe(text: str, path: str) -> Recipe:
    """Read the text of the Dockerfile at `path` (relative to the task).

    Raises:
        Refusal: TASK_UNREADABLE for what is no Dockerfile at all.
    """
    reader = _Reader()
    instructions = parse(text, path)
    if not any(instruction.keyword == "FROM" for instruction in instructions):
        raise Refusal(Reason.TASK_UNREADABLE, "The Dockerfile has no FROM.", path=path)
    for instruction in instructions:
        try:
            reader.take(instruction)
        except NotPlain as why:
            reader.unsupported(instruction, str(why))
    return Recipe(
        path=path,
        base_image=reader.base_image,
        from_line=reader.from_line,
        steps=tuple(reader.steps),
        env=tuple(reader.env.items()),
        workdir=reader.workdir,
        user=reader.user,
        ignored=tuple(reader.ignored),
        instructions=instructions,
    )


class _Reader:
    """The state of a build while its instructions are read."""

    def __init__(self) -> None:
        self.base_image = ""
        self.from_line = 0
        self.steps: list[Step] = []
        self.ignored: list[str] = []
        self.env: dict[str, str] = {}
        self.workdir: str | None = None
        self.user: str | None = None
        self._global_args: dict[str, str | None] = {}
        self._args: dict[str, str | None] = {}

    def take(self, instruction: Instruction) -> None:
        """Take one instruction. Raises NotPlain."""
        if instruction.heredoc:
            raise NotPlain("a heredoc needs BuildKit")
        if instruction.keyword in _OVERRIDDEN:
            self.ignored.append(f"line {instruction.line}: {instruction.text}")
            return
        reader = _READERS.get(instruction.keyword)
        if reader is None:
            raise NotPlain(f"{instruction.keyword} is not among the instructions that are read")
        if not self.base_image and instruction.keyword not in ("FROM", "ARG"):
            raise NotPlain("an instruction stands before FROM")
        reader(self, instruction)

    def unsupported(self, instruction: Instruction, why: str) -> None:
        self.steps.append(Unsupported(instruction.line, instruction.text, why))

    def from_(self, instruction: Instruction) -> None:
        if self.base_image:
            raise NotPlain("a build of several stages")
        words = [expand(word, self._global_args, instruction.escape) for word in split_words(instruction.rest, "\\")]
        if not words or len(words) not in (1, 3) or (len(words) == 3 and words[1].upper() != "AS"):
            raise NotPlain("FROM names an image, and at most AS and a name")
        for name, value in instruction.flags:
            if name != "platform" or not value.startswith("linux/"):
                raise NotPlain(f"FROM --{name}={value}")
        self.base_image, self.from_line = words[0], instruction.line
        if words[0] == "scratch":
            raise NotPlain("an image from scratch holds nothing that a stand-in may hold")

    def arg(self, instruction: Instruction) -> None:
        for word in split_words(instruction.rest, instruction.escape):
            name, given, default = word.partition("=")
            value = expand(default, self._variables(), instruction.escape) if given else ""
            if not self.base_image:
                self._global_args[name] = value
            elif not given and name in self._global_args:
                self._args[name] = self._global_args[name]
            else:
                self._args[name] = None if name in _PLATFORM_ARGS and not given else value

    def env_(self, instruction: Instruction) -> None:
        words = split_words(instruction.rest, instruction.escape)
        if not words:
            raise NotPlain("ENV names nothing")
        if "=" not in words[0]:
            name, _, value = instruction.rest.partition(" ")
            pairs = [(name, value.strip())]
        else:
            pairs = [(name, value) for name, _, value in (word.partition("=") for word in words)]
        before = self._variables()
        self.env |= {
            expand(name, before, instruction.escape): expand(value, before, instruction.escape) for name, value in pairs
        }

    def workdir_(self, instruction: Instruction) -> None:
        self.workdir = self._absolute(self._one(instruction))
        self.steps.append(Folder(instruction.line, self.workdir))

    def user_(self, instruction: Instruction) -> None:
        self.user = self._one(instruction)

    def volume(self, instruction: Instruction) -> None:
        words = instruction.json_words() or split_words(instruction.rest, instruction.escape)
        for word in words:
            path = expand(word, self._variables(), instruction.escape)
            self.steps.append(Folder(instruction.line, self._absolute(path)))

    def shell(self, instruction: Instruction) -> None:
        words = instruction.json_words() or ("",)
        if words[0].rpartition("/")[2] not in ("sh", "bash"):
            raise NotPlain("RUN lines in another shell than sh or bash")
        self.ignored.append(f"line {instruction.line}: {instruction.text}")

    def run(self, instruction: Instruction) -> None:
        if instruction.flags:
            raise NotPlain(f"RUN --{instruction.flags[0][0]}")
        words = instruction.json_words()
        commands = plain_argv(words) if words else plain_commands(instruction.rest)
        cwd = self.workdir or "/"
        for command in commands:
            if isinstance(command, MakeFolders):
                self.steps.extend(Folder(instruction.line, self._absolute(p), self.user) for p in command.paths)
            elif isinstance(command, FileCommand):
                self.steps.append(Command(instruction.line, command.argv, cwd, self.user, command.owner))
            else:
                self.steps.append(Install(instruction.line, instruction.text, command.manager, command.packages))

    def copy(self, instruction: Instruction) -> None:
        chmod: int | None = None
        chown: str | None = None
        variables = self._variables()
        for name, value in instruction.flags:
            if name == "chmod" and re.fullmatch(r"[0-7]{3,4}", value):
                chmod = int(value, 8)
            elif name == "chown":
                chown = expand(value, variables, instruction.escape)
            elif name != "link":
                raise NotPlain(f"{instruction.keyword} --{name}={value}")
        words = instruction.json_words() or split_words(instruction.rest, instruction.escape)
        expanded = [expand(word, variables, instruction.escape) for word in words]
        if len(expanded) < 2:
            raise NotPlain(f"{instruction.keyword} needs a source and a destination")
        *sources, destination = expanded
        for source in sources:
            if _REMOTE.fullmatch(source):
                raise NotPlain(f"{source} lies elsewhere")
            if instruction.keyword == "ADD" and _ARCHIVE.fullmatch(source):
                raise NotPlain(f"ADD may unpack {source}")
        self.steps.append(
            Copy(
                line=instruction.line,
                sources=tuple(sources),
                destination=self._absolute(destination),
                into=len(sources) > 1 or destination.endswith(("/", "/.")) or destination in (".", "./"),
                chmod=chmod,
                chown=chown,
            )
        )

    def _one(self, instruction: Instruction) -> str:
        value = expand(instruction.rest, self._variables(), instruction.escape)
        if not value:
            raise NotPlain(f"{instruction.keyword} names nothing")
        return value

    def _absolute(self, path: str) -> str:
        joined = posixpath.normpath(posixpath.join("/", self.workdir or "/", path))
        return "/" + joined.lstrip("/")

    def _variables(self) -> dict[str, str | None]:
        if not self.base_image:
            return dict(self._global_args)
        return {"PATH": DEFAULT_PATH, **self._args, **self.env}


_READERS: dict[str, Callable[[_Reader, Instruction], None]] = {
    "FROM": _Reader.from_,
    "ARG": _Reader.arg,
    "ENV": _Reader.env_,
    "WORKDIR": _Reader.workdir_,
    "USER": _Reader.user_,
    "VOLUME": _Reader.volume,
    "SHELL": _Reader.shell,
    "RUN": _Reader.run,
    "COPY": _Reader.copy,
    "ADD": _Reader.copy,
}
