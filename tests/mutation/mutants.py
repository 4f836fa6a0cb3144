"""The mutants of a module, by its syntax tree: one small change each, in what decides and not in what is said of it."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

# What these are handed is said to people, and decides nothing.
_FINDING = frozenset({"fail", "fail_at", "fail_body", "cannot_tell"})
_SAYING = _FINDING | {"fail_unseen", "Refusal", "Unreadable", "ValueError", "guard"}
_LOOKING = frozenset({"line", "entry", "finish"})
_OTHER_SIDE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
}
_BOUNDARY: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_LONGEST = 300


@dataclass(frozen=True)
class Mutant:
    """One change: `before` becomes `after` (as text) at a line of a module, within `where` (a function or class).

    `index` and `variant` say which node it is, and which change of it, to `mutated`.
    """

    module: str
    line: int
    end_line: int
    where: str
    kind: str
    before: str
    after: str
    index: int
    variant: int

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What it is, wherever its line has moved to."""
        return self.module, self.where, self.before, self.after

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {self.where}: {self.kind}: {self.before}  ->  {self.after}"


@dataclass(frozen=True)
class _Change:
    kind: str
    apply: Callable[[ast.AST], ast.AST]


def mutants(module: str, source: str) -> list[Mutant]:
    """All of them, in the order of their lines; of changes that come to the same text one."""
    tree = ast.parse(source)
    places = _places(tree)
    found: list[Mutant] = []
    seen: set[tuple[int, str]] = set()
    for index, node in enumerate(ast.walk(tree)):
        place = places.get(node)
        if place is None:
            continue
        for variant, change in enumerate(_changes(node)):
            changed = _applied(place.statement, node, change)
            if changed is None or (id(place.statement), changed) in seen:
                continue
            seen.add((id(place.statement), changed))
            before, after = _text(node), _text(change.apply(copy.deepcopy(node)))
            line, end = place.line, place.end_line
            found.append(Mutant(module, line, end, place.where, change.kind, before, after, index, variant))
    return sorted(found, key=lambda mutant: (mutant.line, mutant.index, mutant.variant))


def mutated(source: str, mutant: Mutant) -> ast.Module:
    """The module with that one change."""
    tree = ast.parse(source)
    node = next(node for index, node in enumerate(ast.walk(tree)) if index == mutant.index)
    change = _changes(node)[mutant.variant]
    whole = _Swap(node, change).visit(tree)
    assert isinstance(whole, ast.Module)
    return ast.fix_missing_locations(whole)


@dataclass(frozen=True)
class _Place:
    """Where a node stands: its statement, the lines of that (of its head, if it has a body), and in what function."""

    statement: ast.stmt
    line: int
    end_line: int
    where: str


def _places(tree: ast.Module) -> dict[ast.AST, _Place]:
    """Of each node that may be changed."""
    places: dict[ast.AST, _Place] = {}

    def visit(node: ast.AST, place: _Place | None, where: str) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.endswith("words"):
            return  # they are said to people
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            where = f"{where}.{node.name}" if where else node.name
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            first = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno or node.lineno
            place = _Place(node, node.lineno, max(node.lineno, first), where or "<module>")
        if place is not None:
            places[node] = place
        for child in _deciding(node):
            visit(child, place, where)

    visit(tree, None, "")
    return places


def _deciding(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node that decide anything: not annotations, documentation, messages, or an assertion for types."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute) and node.target.attr == "looked":
        return  # how many: a report says it
    if isinstance(node, (ast.JoinedStr, ast.Assert, ast.Import, ast.ImportFrom)):
        return
    if isinstance(node, ast.Call) and _called(node) in _SAYING:
        yield node.func
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "bases"):
            continue
        if isinstance(node, ast.Raise) and name in ("exc", "cause"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child


def _called(call: ast.Call) -> str:
    func = call.func
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _changes(node: ast.AST) -> list[_Change]:
    match node:
        case ast.ClassDef() if _is_check(node):
            return [_Change("check disabled", _without_looking)]
        case ast.FunctionDef() if _is_guard(node):
            return [_Change("guard disabled", _refusing_nothing)]
        case ast.IfExp() if isinstance(node.body, ast.JoinedStr):
            return []
        case ast.If() | ast.IfExp():
            return [_test("negated"), _test("always"), _test("never")]
        case ast.While():
            # one that never ends is found by waiting alone
            return [_test("never")]
        case ast.comprehension() if node.ifs:
            return [_Change("condition dropped", _without_if(at)) for at in range(len(node.ifs))]
        case ast.match_case() if node.guard is not None:
            return [_Change("guard dropped", _without_guard)]
        case ast.Compare():
            return [change for at in range(len(node.ops)) for change in _compared(node.ops[at], at)]
        case ast.BoolOp():
            return [_Change("operand dropped", _without_operand(at)) for at in range(len(node.values))]
        case ast.UnaryOp(op=ast.Not()):
            return [_Change("negation dropped", _operand)]
        case ast.Constant(value=bool()):
            return [_Change("flipped", _flipped)]
        case ast.Constant(value=int()):
            return [_Change("one more", _moved(1)), _Change("one less", _moved(-1))]
        case ast.Expr(value=ast.Call()) if isinstance(node.value, ast.Call) and _called(node.value) in _FINDING:
            return [_Change("finding dropped", _passed)]
        case ast.Expr(value=ast.Yield() | ast.YieldFrom()):
            return [_Change("refusal dropped", _unyielded)]
        case ast.Raise(exc=ast.Name(id="NotImplementedError")):
            return []
        case ast.Raise(exc=ast.AST()):
            return [_Change("error dropped", _passed)]
        case ast.Return(value=ast.JoinedStr() | ast.Constant(value=str())):
            return [_Change("fault dropped", _returning_none)]
        case _:
            return []


def _is_check(node: ast.ClassDef) -> bool:
    return any(isinstance(part, ast.Assign) and ast.unparse(part).startswith("id = ") for part in node.body)


def _is_guard(node: ast.FunctionDef) -> bool:
    return any(isinstance(each, ast.Call) and _called(each) == "guard" for each in node.decorator_list)


def _without_looking(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.ClassDef)
    node.body = [part for part in node.body if getattr(part, "name", None) not in _LOOKING]
    return node


def _refusing_nothing(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.FunctionDef)
    node.body = [ast.Return(ast.Tuple([], ast.Load()))]
    return node


def _test(kind: str) -> _Change:
    def apply(node: ast.AST) -> ast.AST:
        assert isinstance(node, (ast.If, ast.IfExp, ast.While))
        if kind == "negated":
            node.test = ast.UnaryOp(ast.Not(), node.test)
        else:
            node.test = ast.Constant(kind == "always")
        return node

    return _Change(f"condition {kind}", apply)


def _without_if(at: int) -> Callable[[ast.AST], ast.AST]:
    def apply(node: ast.AST) -> ast.AST:
        assert isinstance(node, ast.comprehension)
        del node.ifs[at]
        return node

    return apply


def _without_guard(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.match_case)
    node.guard = None
    return node


def _compared(op: ast.cmpop, at: int) -> Iterator[_Change]:
    def to(other: type[ast.cmpop]) -> Callable[[ast.AST], ast.AST]:
        def apply(node: ast.AST) -> ast.AST:
            assert isinstance(node, ast.Compare)
            node.ops[at] = other()
            return node

        return apply

    yield _Change("comparison turned", to(_OTHER_SIDE[type(op)]))
    if type(op) in _BOUNDARY:
        yield _Change("boundary moved", to(_BOUNDARY[type(op)]))


def _without_operand(at: int) -> Callable[[ast.AST], ast.AST]:
    def apply(node: ast.AST) -> ast.AST:
        assert isinstance(node, ast.BoolOp)
        del node.values[at]
        return node if len(node.values) > 1 else node.values[0]

    return apply


def _operand(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.UnaryOp)
    return node.operand


def _flipped(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.Constant)
    return ast.Constant(not node.value)


def _moved(by: int) -> Callable[[ast.AST], ast.AST]:
    def apply(node: ast.AST) -> ast.AST:
        assert isinstance(node, ast.Constant) and isinstance(node.value, int)
        return ast.Constant(node.value + by)

    return apply


def _passed(node: ast.AST) -> ast.AST:
    return ast.Pass()


def _unyielded(node: ast.AST) -> ast.AST:
    """A generator stays one."""
    return ast.Expr(ast.YieldFrom(ast.Tuple([], ast.Load())))


def _returning_none(node: ast.AST) -> ast.AST:
    return ast.Return(ast.Constant(None))


class _Swap(ast.NodeTransformer):
    """Puts the changed node in the place of that one node."""

    def __init__(self, node: ast.AST, change: _Change) -> None:
        self._node, self._change = node, change

    def visit(self, node: ast.AST) -> ast.AST:
        if node is not self._node:
            return self.generic_visit(node)
        new = self._change.apply(node)
        return ast.copy_location(new, node) if isinstance(new, (ast.stmt, ast.expr)) else new


def _applied(statement: ast.stmt, node: ast.AST, change: _Change) -> str | None:
    """The changed statement as text; None where nothing is different."""
    memo: dict[int, object] = {}
    twin = copy.deepcopy(statement, memo)
    target = memo.get(id(node))
    assert isinstance(target, ast.AST)
    text = ast.unparse(ast.fix_missing_locations(_Swap(target, change).visit(twin)))
    return None if text == ast.unparse(statement) else text


def _text(node: ast.AST) -> str:
    """Short: the head of what has a body."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return f"{node.name} of {len(node.body)} parts"
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        return f"if {ast.unparse(ast.fix_missing_locations(node.test))}"[:_LONGEST]
    return ast.unparse(ast.fix_missing_locations(node))[:_LONGEST]
