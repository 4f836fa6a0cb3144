"""Mutants that no input can tell from the real thing, each with the reason why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Equivalent:
    """A mutant by its module, function, and text before and after."""

    module: str
    where: str
    before: str
    after: str
    why: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.module, self.where, self.before, self.after


_ENCODES = "what was read nests 64 deep at most, and what is made of it two more: encoding it never fails"
_SLOW = "the slow way, which then decides, says the same: the quick one saves time alone"
_ASCII = "text in ASCII has no character beyond U+FFFF: that is known without writing it in UTF-16"
_UTF_16 = "text.isascii() or len(text.encode('utf-16-le')) == 2 * len(text)"
_BRACKETS = "text.count('{') + text.count('[') > max_depth"
_NO_MORE = "no text is deeper than it has brackets: counting them saves following them"
_SURROGATE = "if '\\\\ud' in text.replace('\\\\uD', '\\\\ud')"
_ENCODER = "what is made once writes as the encoder does that is made anew each time"


def _in_json(where: str, before: str, after: str, why: str) -> Equivalent:
    return Equivalent("proctor_verify.strictjson", where, before, after, why)


EQUIVALENT: tuple[Equivalent, ...] = (
    Equivalent(
        "proctor_verify.checks.derived",
        "Derived._compare",
        """self.fail(f'{attempt.folder}/{NAME}', f"cannot hold what the attempt's entries come to: {error}")""",
        "pass",
        _ENCODES,
    ),
    Equivalent(
        "proctor_verify.checks.heads",
        "witnessed",
        "if not witnesses",
        "if False",
        "where there are none, nothing is said of any: it saves reading the run's checkpoints alone",
    ),
    Equivalent(
        "proctor_verify.checks.order",
        "Ordered.entry",
        "place < self._reached[model]",
        "place <= self._reached[model]",
        "a trial that began in this opening already is passed over above, and no two of a model have one place",
    ),
    Equivalent(
        "proctor_verify.checks.summaries",
        "Summaries._want",
        "self.fail_at(entry, f'names {path}, which cannot hold what the journal adds up to: {error}')",
        "pass",
        _ENCODES,
    ),
    Equivalent(
        "proctor_verify.checks.withheld",
        "Named.entry",
        "if not self._withheld.bodies",
        "if False",
        "where nothing is listed, nothing is found in the list: it saves looking in it alone",
    ),
    Equivalent(
        "proctor_verify.money",
        "Money._forget",
        "if not block.held and (not block.reserve)",
        "if False",
        "a block that has nothing set aside and holds nothing takes up nothing: forgetting it saves memory alone",
    ),
    _in_json("loads_canonical", "if value is not _UNSURE", "if False", _SLOW),
    _in_json("_quick", _UTF_16, "len(text.encode('utf-16-le')) == 2 * len(text)", _ASCII),
    _in_json("encode", _UTF_16, "len(text.encode('utf-16-le')) == 2 * len(text)", _ASCII),
    _in_json("encode", _UTF_16, "text.isascii()", _SLOW),
    _in_json("encode", "if plain and (not _ODD_NUMBER.search(f'[{text}]'))", "if False", _SLOW),
    _in_json("_checked_text", f"{_BRACKETS} and _depth(text) > max_depth", "_depth(text) > max_depth", _NO_MORE),
    _in_json("_checked_text", _BRACKETS, _BRACKETS.replace(">", ">="), _NO_MORE),
    _in_json("_parse", _SURROGATE, "if True", "where no such escape stands, no half of a pair is found"),
    _in_json("_write_with", "if make is None", "if not make is None", _ENCODER),
    _in_json("_write_with", "if make is None", "if True", _ENCODER),
    _in_json("_write_with", "make is None", "make is not None", _ENCODER),
    _in_json("_write_with", "if make is None", "if False", "the Pythons that this runs on have an encoder in C"),
)
