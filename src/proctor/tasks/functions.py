"""Python functions that a study names, found without importing anything: running a user's code is for workers.

`module:function` is looked for beside the study first, then where Python itself would look. A scorer may also be
named by its entry point in the group `proctor.scorers`.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.machinery import all_suffixes
from importlib.metadata import entry_points
from pathlib import Path

from proctor.core.near import closest_hint
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal

GROUP = "proctor.scorers"
MAX_MODULE_BYTES = 16 << 20

_REFERENCE = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Function:
    """A function: how it is imported, the file of its module, and that file's SHA-256 (hex)."""

    module: str
    function: str
    path: Path
    sha256: str


def find_function(name: str, base: Path, key: str) -> Function:
    """Find what a study calls `name`.

    Args:
        name: `module:function`, or the name of an installed scorer.
        base: the study's folder, where modules are looked for first.
        key: where the name stands, for the refusal.

    Raises:
        Refusal: TOOL_INVALID.
    """
    reference = name if ":" in name else _installed(name, key)
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise _invalid("a Python function is named as `module:function`", key, name, "module:function")
    path = locate(match[1], base)
    if path is None:
        raise _invalid(f"there is no module {match[1]!r} beside the study, nor installed", key, name, f"{match[1]}.py")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _invalid(f"the module {match[1]!r} cannot be read: {error.strerror}", key, name) from error
    if path.suffix == ".py":
        _defines(data, match[1], match[2], key)
    return Function(match[1], match[2], path, hashlib.sha256(data).hexdigest())


def locate(module: str, base: Path) -> Path | None:
    """The file that `import module` would run with `base` first in the path; None where there is none.

    Import hooks and zip files are not looked into.
    """
    roots = [base, *(Path(each or ".") for each in sys.path)]
    *packages, last = module.split(".")
    for package in packages:
        roots = _package(package, roots)
    for root in roots:
        for candidate in _files(root, last):
            if candidate.is_file():
                return candidate.resolve()
    return None


def _package(name: str, roots: Iterable[Path]) -> list[Path]:
    """Where the modules of a package are: one folder, or all of that name where none is a regular package."""
    portions: list[Path] = []
    for root in roots:
        folder = root / name
        if any((folder / f"__init__{suffix}").is_file() for suffix in all_suffixes()):
            return [folder]
        if folder.is_dir():
            portions.append(folder)
    return portions


def _files(root: Path, name: str) -> Iterator[Path]:
    for suffix in all_suffixes():
        yield root / name / f"__init__{suffix}"
    for suffix in all_suffixes():
        yield root / f"{name}{suffix}"


def _installed(name: str, key: str) -> str:
    points = {point.name: point.value for point in entry_points(group=GROUP)}
    if name not in points:
        what = f"there is no installed scorer {name!r}{closest_hint(name, points)}"
        raise _invalid(what, key, name, sorted(points) or "module:function")
    return points[name]


def _defines(source: bytes, module: str, function: str, key: str) -> None:
    """Refuse a module that is no Python, or that has nothing of that name at its top level."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        raise _invalid(f"the module {module!r} is no Python", key, {"line": line}) from error
    names = set(_bound(tree.body))
    if function not in names and "*" not in names:
        what = f"the module {module!r} defines no {function!r}{closest_hint(function, names)}"
        raise _invalid(what, key, f"{module}:{function}")


def _bound(body: Iterable[ast.stmt]) -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Import() | ast.ImportFrom():
                yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from (each.id for top in targets for each in ast.walk(top) if isinstance(each, ast.Name))
            case ast.If() | ast.Try() | ast.With() | ast.For() | ast.While():
                for inner in ast.iter_child_nodes(node):
                    if isinstance(inner, ast.stmt):
                        yield from _bound([inner])
                    elif isinstance(inner, ast.ExceptHandler):
                        yield from _bound(inner.body)


def _invalid(message: str, key: str, observed: object = None, required: object = None) -> Refusal:
    return Refusal(Reason.TOOL_INVALID, message, path=key, observed=observed, required=required)
