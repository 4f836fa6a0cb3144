"""What could act on the world before admission: read from the source, following calls through imports.

A function is a *holder* if it is handed an `Admitted` (or something that holds one): it can only run after
admission, and what it does is not looked at. From every other function, calls, and functions that are only
mentioned, are followed; an effect found on the way is a finding, with the path that leads to it.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_EFFECT = re.compile(
    r"subprocess\.\w+"
    r"|os\.(system|popen|fork|forkpty|exec\w+|spawn\w+|posix_spawn\w*|kill|killpg|mkdir|makedirs|mkfifo|mknod|remove"
    r"|removedirs|rename|renames|replace|rmdir|unlink|chmod|chown|lchown|fchmod|fchown|link|symlink|truncate|ftruncate"
    r"|write|writev|pwrite|utime|setxattr|mount|unshare|setns)"
    r"|asyncio\.(create_subprocess_\w+|open_connection|open_unix_connection|start_server|start_unix_server)"
    r"|shutil\.(copy\w*|move|rmtree|chown|make_archive|unpack_archive)"
    r"|tempfile\.(?!gettempdir\b)\w+|multiprocessing\..+|concurrent\.futures\.ProcessPoolExecutor|pty\.\w+|ctypes\..+"
    r"|socket\.(socket|create_connection|create_server|socketpair|getaddrinfo|gethostbyname)"
    r"|(urllib\.request|http\.client|http\.server|ssl|ftplib|smtplib|aiohttp|httpx|requests|docker|aiodocker)\..+"
    r"|signal\.pidfd_send_signal|eval|exec|compile|__import__"
)
_HARMLESS = re.compile(r"subprocess\.([A-Z]+|TimeoutExpired|CalledProcessError|SubprocessError|CompletedProcess)")
_BUILTINS = frozenset({"eval", "exec", "compile", "__import__"})
_EFFECT_METHOD = re.compile(
    r"write_text|write_bytes|mkdir|unlink|rename|rmdir|touch|chmod|symlink_to|hardlink_to"
    r"|connect|sendall|sendto|create_connection|terminate|kill|send_signal|subprocess_exec|subprocess_shell"
)
_WRITE_FLAGS = frozenset({"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND", "O_TMPFILE"})
_TOKEN = "Admitted"
_MADE_BY = ("__init__", "__post_init__", "__enter__", "__aenter__")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Finding:
    """An effect: the function in which it stands, what it is, and the functions through which one gets there."""

    site: str
    effect: str
    line: int
    path: tuple[str, ...]

    def __str__(self) -> str:
        return f"{' -> '.join(self.path)}: {self.effect} (line {self.line})"


@dataclass
class Module:
    """One source file: what its names mean."""

    name: str
    tree: ast.Module
    names: dict[str, str] = field(default_factory=dict)


@dataclass
class Unit:
    """A function or method (with all that is nested in it), or the statements that an import runs."""

    id: str
    module: Module
    nodes: list[ast.AST]
    owner: str | None = None
    args: ast.arguments | None = None
    returns: ast.AST | None = None


class Sources:
    """All modules of a package, by dotted name. `tokens` are classes that exist after admission only."""

    def __init__(self, folder: Path, package: str, tokens: frozenset[str] = frozenset()) -> None:
        self._tokens = tokens
        self.modules: dict[str, Module] = {}
        self.units: dict[str, Unit] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self._home: dict[str, Module] = {}
        self._known_locals: dict[str, dict[str, str]] = {}
        self._known_attributes: dict[str, dict[str, str]] = {}
        for file in sorted((folder / package).rglob("*.py")):
            parts = file.relative_to(folder).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            module = Module(name, ast.parse(file.read_text(encoding="utf-8"), str(file)))
            self.modules[name] = module
            self._read(module, is_package=parts[-1] == "__init__")
        self._holders = self._holder_classes()

    def _read(self, module: Module, is_package: bool) -> None:
        package = module.name if is_package else module.name.rpartition(".")[0]
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.split(".")[0]
                    module.names[alias.asname or first] = alias.name if alias.asname else first
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    above = package.split(".")[: len(package.split(".")) - node.level + 1]
                    base = ".".join([*above, *([base] if base else [])])
                for alias in node.names:
                    module.names[alias.asname or alias.name] = f"{base}.{alias.name}"
        top: list[ast.AST] = []
        for node in module.tree.body:
            if isinstance(node, Function):
                self._unit(f"{module.name}.{node.name}", module, node, None)
            elif isinstance(node, ast.ClassDef):
                name = f"{module.name}.{node.name}"
                module.names.setdefault(node.name, name)
                self.classes[name], self._home[name] = node, module
                for item in node.body:
                    if isinstance(item, Function):
                        self._unit(f"{name}.{item.name}", module, item, name)
            elif not isinstance(node, ast.Import | ast.ImportFrom):
                top.append(node)
        self.units[f"{module.name}.<import>"] = Unit(f"{module.name}.<import>", module, top)

    def _unit(self, name: str, module: Module, node: Function, owner: str | None) -> None:
        if owner is None:
            module.names.setdefault(node.name, name)
        self.units[name] = Unit(
            name, module, [*node.decorator_list, node.args, *node.body], owner, node.args, node.returns
        )

    def resolve(self, module: Module, dotted: str) -> str:
        """What a dotted expression means, following imports and re-exports; unknown words stay as they are."""
        head, _, rest = dotted.partition(".")
        name = module.names.get(head, head)
        name = f"{name}.{rest}" if rest else name
        for _ in range(8):
            if name in self.units or name in self.classes:
                return name
            owner, _, last = name.rpartition(".")
            again = self.modules[owner].names.get(last) if owner in self.modules else None
            if again is None or again == name:
                return name
            name = again
        return name

    def mentioned_classes(self, module: Module, annotation: ast.AST | None) -> set[str]:
        """Classes that an annotation names, whichever way it is written."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            annotation = ast.parse(annotation.value, mode="eval")
        if annotation is None:
            return set()
        words = (dotted_name(node) for node in ast.walk(annotation))
        return {self.resolve(module, word) for word in words if word}

    def _requires_token(self, module: Module, annotation: ast.AST | None, holders: set[str]) -> bool:
        named = self.mentioned_classes(module, annotation)
        optional = annotation is not None and any(
            isinstance(node, ast.Constant) and node.value is None for node in ast.walk(annotation)
        )
        return not optional and any(
            name in holders or name in self._tokens or name.rpartition(".")[2] == _TOKEN for name in named
        )

    def _holder_classes(self) -> set[str]:
        """Classes that cannot be constructed without a token, directly or through another holder."""
        holders: set[str] = set()
        while True:
            found = {
                name
                for name, node in self.classes.items()
                if any(
                    self._requires_token(self._home[name], given, holders) for given in self._constructor(name, node)
                )
            }
            if found <= holders:
                return holders
            holders |= found

    def _constructor(self, name: str, node: ast.ClassDef) -> Iterator[ast.AST | None]:
        init = self.units.get(f"{name}.__init__")
        if init is not None and init.args is not None:
            for argument in [*init.args.posonlyargs, *init.args.args, *init.args.kwonlyargs]:
                yield argument.annotation
        elif any("dataclass" in ast.dump(decorator) for decorator in node.decorator_list):
            yield from (item.annotation for item in node.body if isinstance(item, ast.AnnAssign) and item.value is None)

    def holds_token(self, unit: Unit) -> bool:
        """Whether this can only run after admission."""
        if unit.owner in self._holders and not unit.id.endswith(".__init__"):
            return True
        if unit.args is None:
            return False
        given = [*unit.args.posonlyargs, *unit.args.args, *unit.args.kwonlyargs]
        return any(self._requires_token(unit.module, argument.annotation, self._holders) for argument in given)

    def methods(self, owner: str, name: str) -> list[str]:
        """What calling a method may run: that of the class or its bases; of a protocol, of all that fit it."""
        if owner not in self.classes:
            return []
        if self._is_protocol(owner):
            fitting = (each for each in self.classes if not self._is_protocol(each) and self._fits(each, owner))
            return [found for each in fitting for found in self.methods(each, name)]
        if f"{owner}.{name}" in self.units:
            return [f"{owner}.{name}"]
        return [found for base in self._bases(owner) for found in self.methods(base, name)]

    def _bases(self, owner: str) -> list[str]:
        return [self.resolve(self._home[owner], dotted_name(base) or "") for base in self.classes[owner].bases]

    def _is_protocol(self, owner: str) -> bool:
        return any(base.rpartition(".")[2] == "Protocol" for base in self._bases(owner))

    def _fits(self, owner: str, protocol: str) -> bool:
        wanted = [item.name for item in self.classes[protocol].body if isinstance(item, Function)]
        return bool(wanted) and all(self.methods(owner, name) for name in wanted)

    def type_of(self, unit: Unit, node: ast.AST | None) -> str | None:
        """The class of an expression, where annotations, constructors and assignments tell."""
        if isinstance(node, ast.Name):
            return unit.owner if node.id in ("self", "cls") else self._locals(unit.id).get(node.id)
        if isinstance(node, ast.Attribute):
            above = self.type_of(unit, node.value)
            return self._attributes(above).get(node.attr) if above else None
        if isinstance(node, ast.IfExp):
            return self.type_of(unit, node.body) or self.type_of(unit, node.orelse)
        if isinstance(node, ast.Await):
            return self.type_of(unit, node.value)
        if isinstance(node, ast.Call):
            made = self.resolve(unit.module, dotted_name(node.func) or "")
            if made in self.classes:
                return made
            called = [made] if made in self.units else self.called_methods(unit, node.func)
            return self._class_in(self.units[called[0]].module, self.units[called[0]].returns) if called else None
        return None

    def called_methods(self, unit: Unit, node: ast.AST) -> list[str]:
        """What `x.name` may run, where the class of `x` is known."""
        owner = self.type_of(unit, node.value) if isinstance(node, ast.Attribute) else None
        return self.methods(owner, node.attr) if owner and isinstance(node, ast.Attribute) else []

    def _class_in(self, module: Module, annotation: ast.AST | None) -> str | None:
        return next(iter(sorted(self.mentioned_classes(module, annotation) & self.classes.keys())), None)

    def _locals(self, unit_id: str) -> dict[str, str]:
        if unit_id not in self._known_locals:
            unit = self.units[unit_id]
            types = self._known_locals[unit_id] = {}
            for node in (found for part in unit.nodes for found in ast.walk(part)):
                if isinstance(node, ast.arg):
                    _note(types, node.arg, self._class_in(unit.module, node.annotation))
                elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    _note(types, node.target.id, self._class_in(unit.module, node.annotation))
                elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    _note(types, node.targets[0].id, self.type_of(unit, node.value))
                elif isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
                    _note(types, node.optional_vars.id, self.type_of(unit, node.context_expr))
        return self._known_locals[unit_id]

    def _attributes(self, owner: str) -> dict[str, str]:
        if owner not in self._known_attributes and owner in self.classes:
            types = self._known_attributes[owner] = {}
            for item in self.classes[owner].body:
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                    _note(types, item.target.id, self._class_in(self._home[owner], item.annotation))
            init = self.units.get(f"{owner}.__init__")
            for node in (found for part in (init.nodes if init else []) for found in ast.walk(part)):
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute) and init:
                    _note(types, node.targets[0].attr, self.type_of(init, node.value))
            for base in self._bases(owner):
                for name, kind in self._attributes(base).items():
                    types.setdefault(name, kind)
        return self._known_attributes.get(owner, {})


def _note(types: dict[str, str], name: str, kind: str | None) -> None:
    if kind is not None:
        types.setdefault(name, kind)


def dotted_name(node: ast.AST) -> str | None:
    """`a.b.c` as text, or None for any other expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        above = dotted_name(node.value)
        return f"{above}.{node.attr}" if above else None
    return None


def running(unit: Unit) -> Iterator[ast.AST]:
    """What may run in a unit: all of it but annotations, which only say something."""
    pending = list(unit.nodes)
    while pending:
        node = pending.pop()
        yield node
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns"):
                values = value if isinstance(value, list) else [value]
                pending += [child for child in values if isinstance(child, ast.AST)]


def effects(sources: Sources, unit: Unit) -> Iterator[tuple[str, int]]:
    """Effects that stand in the unit itself: what is called, and the line."""
    for node in running(unit):
        if isinstance(node, ast.Call):
            words = dotted_name(node.func)
            meaning = sources.resolve(unit.module, words) if words else ""
            method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if meaning in sources.units or meaning in sources.classes:
                continue
            if meaning in ("open", "io.open") or (method == "open" and meaning != "os.open"):
                if _opens_to_write(node, position=0 if method and meaning != "io.open" else 1):
                    yield f"{words or method} to write", node.lineno
            elif meaning == "os.open":
                if _flags_write(node):
                    yield "os.open to write", node.lineno
            elif _EFFECT_METHOD.fullmatch(method) and not sources.called_methods(unit, node.func):
                yield f".{method}()", node.lineno
            elif method == "replace" and len(node.args) == 1 and not node.keywords and not _EFFECT.fullmatch(meaning):
                yield ".replace(target)", node.lineno
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            words = dotted_name(node) or ""
            meaning = sources.resolve(unit.module, words)
            known = words.split(".")[0] in unit.module.names or words in _BUILTINS
            if known and _EFFECT.fullmatch(meaning) and not _HARMLESS.fullmatch(meaning):
                yield meaning, node.lineno


def _opens_to_write(call: ast.Call, position: int) -> bool:
    given = call.args[position] if len(call.args) > position else None
    mode = next((keyword.value for keyword in call.keywords if keyword.arg == "mode"), given)
    if mode is None:
        return False
    return not isinstance(mode, ast.Constant) or not isinstance(mode.value, str) or bool(set(mode.value) & set("wax+"))


def _flags_write(call: ast.Call) -> bool:
    flags = next((keyword.value for keyword in call.keywords if keyword.arg == "flags"), None)
    flags = flags or (call.args[1] if len(call.args) > 1 else None)
    words = {node.attr for node in ast.walk(flags) if isinstance(node, ast.Attribute)} if flags else set()
    return not words or bool(words & _WRITE_FLAGS)


def mentions(sources: Sources, unit: Unit) -> Iterator[str]:
    """Functions of the package that the unit calls or only names (a callback may be called)."""
    for node in running(unit):
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        words = dotted_name(node)
        meaning = sources.resolve(unit.module, words) if words else ""
        if meaning in sources.units:
            yield meaning
        elif meaning in sources.classes:
            yield from (found for name in _MADE_BY for found in sources.methods(meaning, name))
        elif isinstance(node, ast.Attribute):
            yield from sources.called_methods(unit, node)


@dataclass(frozen=True)
class Reached:
    """What roots reach without a token: effects, and which doors were come to."""

    findings: tuple[Finding, ...]
    doors: frozenset[str]


def reachable_effects(sources: Sources, roots: list[str], hops: int, doors: frozenset[str] = frozenset()) -> Reached:
    """Effects that a root (a unit, or every unit below a dotted prefix) reaches within `hops` calls, token-free.

    `doors` are functions that may act all the same: they are come to, and not looked into.
    """
    below = {name for name in sources.units for root in roots if name == root or name.startswith(f"{root}.")}
    met = set(below & doors)
    seen = {name for name in below - doors if not sources.holds_token(sources.units[name])}
    queue: deque[tuple[str, ...]] = deque((name,) for name in sorted(seen))
    findings = []
    while queue:
        path = queue.popleft()
        unit = sources.units[path[-1]]
        findings += [Finding(unit.id, effect, line, path) for effect, line in effects(sources, unit)]
        for target in mentions(sources, unit):
            if target in doors:
                met.add(target)
            elif target not in seen and len(path) <= hops and not sources.holds_token(sources.units[target]):
                seen.add(target)
                queue.append((*path, target))
    return Reached(tuple(findings), frozenset(met))
