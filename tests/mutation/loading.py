"""Modules of the tree as they stood when the machine started, and how a process gets one of them changed.

A mutant is judged in a process of its own, forked off one that has imported everything: it forgets the changed module
and all that lean on it, and imports them again, the one from its changed tree, the others from code that is compiled
already.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, ModuleType


@dataclass
class Tree:
    """The sources below a folder, by module name."""

    folder: Path
    sources: dict[str, str] = field(default_factory=dict)
    codes: dict[str, CodeType] = field(default_factory=dict)
    paths: dict[str, Path] = field(default_factory=dict)
    leaning: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, packages: Iterable[str]) -> Tree:
        """All modules of some packages."""
        tree = cls(folder)
        for package in packages:
            for path in sorted((folder / package).rglob("*.py")):
                name = ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
                source = path.read_text(encoding="utf-8")
                tree.sources[name], tree.paths[name] = source, path
                tree.codes[name] = compile(source, str(path), "exec", dont_inherit=True)
        for name, source in tree.sources.items():
            for wanted in _imported(source):
                tree.leaning.setdefault(wanted, set()).add(name)
        return tree

    def dependents(self, module: str) -> set[str]:
        """The module, and all that lean on it, however far away; whoever imports from a package leans on it."""
        found, todo = {module}, [module]
        while todo:
            for other in self.leaning.get(todo.pop(), set()) - found:
                found.add(other)
                todo.append(other)
        return found

    def substitute(self, module: str, changed: ast.Module) -> None:
        """From here on this process has that module changed."""
        fresh = self.dependents(module)
        code = compile(changed, str(self.paths[module]), "exec", dont_inherit=True)
        for name in fresh:
            _forget(name)
        sys.meta_path.insert(0, _Finder({name: self.codes[name] for name in fresh} | {module: code}, self.paths))


def _forget(name: str) -> None:
    """A module is imported anew, by `from package import module` too: that asks the package first."""
    module = sys.modules.pop(name, None)
    folder, _, own = name.rpartition(".")
    package = sys.modules.get(folder)
    if module is not None and package is not None and vars(package).get(own) is module:
        delattr(package, own)


def forget_below(folder: Path, but: Path) -> None:
    """Modules of files below a folder are imported anew."""
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if path is not None and Path(path).is_relative_to(folder) and not Path(path).is_relative_to(but):
            del sys.modules[name]


def _imported(source: str) -> set[str]:
    """Names that a module imports, wherever in it; `from a import b` may mean the module a.b."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            # what is bound is the first of these
            parts = [alias.name.split(".") for alias in node.names]
            names.update(".".join(each[:length]) for each in parts for length in range(1, len(each) + 1))
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, codes: dict[str, CodeType], paths: dict[str, Path]) -> None:
        self._codes, self._paths = codes, paths

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._codes:
            return None
        file = self._paths[fullname]
        is_package = file.name == "__init__.py"
        spec = importlib.machinery.ModuleSpec(fullname, self, origin=str(file), is_package=is_package)
        spec.has_location = True
        if is_package:
            spec.submodule_search_locations = [str(file.parent)]
        return spec

    def exec_module(self, module: ModuleType) -> None:
        # `import package.module` binds the package, and a module that stands already is not put into it by that
        for name, standing in list(sys.modules.items()):
            package, _, own = name.rpartition(".")
            if package == module.__name__ and name not in self._codes:
                vars(module)[own] = standing
        exec(self._codes[module.__name__], module.__dict__)
