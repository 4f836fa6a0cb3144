"""Secrets taken out of whatever is recorded: known values in any spelling, what looks like a key, headers, variables.

`[redacted:<kind>]` takes their place; kind is `secret` (a value that was handed in), `key` (the form of a provider's
key), `header` (a credential in a header) or `env` (a variable whose name ends in `_KEY`, `_TOKEN`, `_SECRET` or
`_PASSWORD`). What is JSON stays JSON: it is taken apart into its strings, so that no escape hides anything. Bytes that
hold none of the words that start a secret, which are nearly all, are only searched for those words.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias
from urllib.parse import quote, quote_plus

import orjson

from proctor.core.redact_stream import Spellings, StreamRedactor

# `Redactor.bytes` takes the name of the type.
Raw: TypeAlias = bytes

# Shorter values would be found in ordinary text; no provider's key is.
MIN_SECRET = 6

# Servers on one's own machine take any word as a key: a value this long is no word that a model may have to say.
MIN_CERTAIN = 16

# prefix, characters, fewest and most of them: what providers and forges hand out
_KEYS = (
    ("sk-", r"A-Za-z0-9_-", 20, 256),
    ("csk-", r"A-Za-z0-9", 32, 128),
    ("AIza", r"A-Za-z0-9_-", 35, 35),
    ("gsk_", r"A-Za-z0-9", 32, 128),
    ("xai-", r"A-Za-z0-9", 32, 128),
    ("hf_", r"A-Za-z0-9", 30, 64),
    ("fw_", r"A-Za-z0-9", 20, 64),
    ("tgp_v1_", r"A-Za-z0-9_-", 32, 128),
    ("r8_", r"A-Za-z0-9", 32, 64),
    ("pplx-", r"A-Za-z0-9", 32, 128),
    ("nvapi-", r"A-Za-z0-9_-", 32, 128),
    ("AKIA", r"A-Z0-9", 16, 16),
    ("ASIA", r"A-Z0-9", 16, 16),
    *((f"gh{kind}_", r"A-Za-z0-9", 36, 255) for kind in "pousr"),
    ("github_pat_", r"A-Za-z0-9_", 22, 255),
    ("glpat-", r"A-Za-z0-9_-", 20, 64),
)
_ENDINGS = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
_HEADERS = ("authorization", "bearer", "api-key")

_NAME = rf"[A-Z][A-Z0-9_]{{0,200}}(?:{'|'.join(_ENDINGS)})(?![A-Za-z0-9_])"
_MARK = r"\[redacted:[a-z]+\]"
# A digit is asked for, so that words joined by hyphens are none; a longer run of such characters is something else.
_KEY_FORMS = "|".join(
    rf"{prefix}(?=[A-Za-z_-]{{0,{most}}}[0-9])[{chars}]{{{fewest},{most}}}+" for prefix, chars, fewest, most in _KEYS
)
_KEY = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_KEY_FORMS})(?![A-Za-z0-9_-])")
_HEADER = re.compile(
    r"""(?P<kept>
          \b(?:proxy-)?authorization\\*["']?\s{0,8}[:=]\s{0,8}\\*["']?
            (?:(?:bearer|basic|token|key)\s{1,8}|(?=[A-Za-z._~+/-]{0,64}[0-9])(?=[A-Za-z0-9._~+/=-]{16}))
        | \b(?:x-goog-|x-)?api-key\\*["']?\s{0,8}[:=]\s{0,8}\\*["']?
        | \bbearer\s{1,8}(?=[A-Za-z._~+/-]{0,64}[0-9])(?=[A-Za-z0-9._~+/=-]{16})
        )[^\s"'\\,;\[\]]{4,}+""",
    re.IGNORECASE | re.VERBOSE,
)
_VARIABLE = re.compile(
    rf"""(?P<kept>^[ \t]{{0,80}}(?:export\ |declare\ -x\ )?{_NAME}=)(?:[^\n]+)
       | (?P<word>(?<=[\s"'`;&|(]){_NAME}=)[^\s"'`;&|)\\]+
       | (?P<quoted>(?<=["']){_NAME}\\{{0,16}}["']\s{{0,8}}:\s{{0,8}}(?P<open>\\{{1,16}}["']))(?:(?!(?P=open))[^\n])+
       | (?P<double>(?<=["']){_NAME}["']\s{{0,8}}:\s{{0,8}}")(?=[^"\n])[^"\\\n]*+(?:\\.[^"\\\n]*+)*+
       | (?P<single>(?<=["']){_NAME}["']\s{{0,8}}:\s{{0,8}}')(?=[^'\n])[^'\\\n]*+(?:\\.[^'\\\n]*+)*+""",
    re.MULTILINE | re.VERBOSE,
)
_SENSITIVE = re.compile(rf"{_NAME}|(?i:(?:proxy-)?authorization|(?:x-goog-|x-)?api-key)")
# of JSON: a string with the colon that makes it a key, or a number
_JSON_TOKEN = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+")([ \t\r\n]*+:)?|-?[0-9][0-9.eE+-]*+', re.DOTALL)
# an escape that nobody needs: it may spell any of the above
_HIDDEN = re.compile(rb"\\u00[2-7]")
# JSON in JSON in JSON doubles it each time
_ESCAPE = r"\\{1,16}"


class Redactor:
    """Takes secrets out of text and bytes, in linear time; what it returns, it returns unchanged."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """Args: secrets: known values; those of fewer than 6 characters are not looked for."""
        values = [secret.strip() for secret in secrets]
        self._forms = _spellings(values)
        self._forms_bytes = _encoded(self._forms)
        self._known = _any_of(self._forms)
        self._escaped = _any_escaped(values, MIN_SECRET)
        self._certain = _spellings([value for value in values if len(value) >= MIN_CERTAIN])
        self._certain_bytes = _encoded(self._certain)
        self._certainly = _any_of(self._certain)
        self._certainly_escaped = _any_escaped(values, MIN_CERTAIN)
        known = [value.encode() for value in values if len(value) >= MIN_CERTAIN and value.isascii()]
        self._spellings = Spellings(self._certain_bytes, known)

    def bytes(self, data: Raw) -> Raw:
        """The same bytes, where there is nothing to take out; JSON where they are JSON."""
        if not _suspicious(data, self._forms_bytes):
            return data
        text = data.decode("utf-8", "surrogateescape")
        return (self._json(text) if _is_json(data) else self._plain(text)).encode("utf-8", "surrogateescape")

    def certain(self, data: Raw) -> Raw:
        """The bytes without known values of 16 characters and more, and nothing else taken out: for agents."""
        hidden = bool(self._certain) and b"\\u00" in data and _HIDDEN.search(data) is not None
        if not hidden and not any(form in data for form in self._certain_bytes):
            return data
        text = data.decode("utf-8", "surrogateescape")
        clean = _each_string(text, self._without_certain) if _is_json(data) else self._without_certain(text)
        return clean.encode("utf-8", "surrogateescape")

    def stream(self) -> StreamRedactor:
        """`certain`, for bytes that come in pieces and are not taken apart as JSON."""
        return StreamRedactor(self._spellings)

    def text(self, text: str) -> str:
        """The text without secrets."""
        return self._plain(text) if _suspicious(text.encode("utf-8", "surrogatepass"), self._forms_bytes) else text

    def _without_certain(self, text: str) -> str:
        if r"\u00" in text:
            text = self._certainly_escaped.sub(_mark, text)
        return self._certainly.sub(_mark, text)

    def _plain(self, text: str) -> str:
        if any(form in text for form in self._forms):
            text = self._known.sub(_mark, text)
        if r"\u00" in text:
            text = self._escaped.sub(_mark, text)
        if any(word in text for word in _PREFIXES):
            text = _KEY.sub("[redacted:key]", text)
        lower = text.lower()
        if any(word in lower for word in _HEADERS):
            text = _HEADER.sub(r"\g<kept>[redacted:header]", text)
        if any(word in text for word in _ENDINGS):
            text = _VARIABLE.sub(_without_value, text)
        return text

    def _json(self, text: str) -> str:
        """Of a JSON document: each string by itself, as it reads and not as it is spelled."""
        name = ""

        def replace(found: re.Match[str]) -> str:
            nonlocal name
            whole, string, colon = found[0], found[1], found[2]
            if string is None:
                name = ""
                return '"[redacted:secret]"' if any(form in whole for form in self._forms) else whole
            below, name = name, ""
            if colon is None and _SENSITIVE.fullmatch(below) and len(string) > 2:
                return '"[redacted:env]"' if below.isupper() else '"[redacted:header]"'
            if len(string) < MIN_SECRET and colon is None:
                return whole
            value = json.loads(string, strict=False) if "\\" in string else string[1:-1]
            if colon is not None:
                name = value
            clean = self._plain(value)
            return whole if clean == value else json.dumps(clean) + (colon or "")

        return _JSON_TOKEN.sub(replace, text)


def _each_string(text: str, clean: Callable[[str], str]) -> str:
    """A JSON document with each string as `clean` leaves it."""

    def replace(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        value = json.loads(found[1], strict=False)
        return found[0] if (cleaned := clean(value)) == value else json.dumps(cleaned) + (found[2] or "")

    return _JSON_TOKEN.sub(replace, text)


def _mark(found: re.Match[str]) -> str:
    """A mark that stands there already stays."""
    return found[1] or "[redacted:secret]"


def _without_value(found: re.Match[str]) -> str:
    kept = found["kept"] or found["word"] or found["quoted"] or found["double"] or found["single"]
    return f"{kept}[redacted:env]"


def _is_json(data: bytes) -> bool:
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return True


def _spellings(values: Iterable[str]) -> tuple[str, ...]:
    """All that they may be written as, the longest first."""
    forms = {form for value in values for form in _forms(value)}
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def _encoded(forms: Iterable[str]) -> tuple[bytes, ...]:
    return tuple(form.encode("utf-8", "surrogatepass") for form in forms)


def _any_of(forms: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join([f"({_MARK})", *map(re.escape, forms)]))


def _any_escaped(values: Iterable[str], least: int) -> re.Pattern[str]:
    """Values of so many characters, of which any may be escaped: inside of JSON in JSON, or of what is no JSON."""
    long = sorted({value for value in values if len(value) >= least}, key=lambda value: (-len(value), value))
    return re.compile("|".join([f"({_MARK})", *("".join(map(_maybe_escaped, value)) for value in long)]))


def _maybe_escaped(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    codes = "".join(f"{_ESCAPE}u(?i:{units[at : at + 2].hex()})" for at in range(0, len(units), 2))
    # punctuation may have a backslash before it, and no other escape
    plain = re.escape(char) if char.isalnum() else rf"\\{{0,16}}{re.escape(char)}"
    return f"(?:{plain}|{codes})"


def _forms(secret: str) -> Iterator[str]:
    """A secret as it is, in JSON (and in JSON in JSON), in a URL, in hexadecimal, and in base64 at each offset."""
    if len(secret) < MIN_SECRET:
        return
    yield secret
    for ascii_only in (True, False):
        once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield from (once, once.replace("/", r"\/"), json.dumps(once, ensure_ascii=ascii_only)[1:-1])
    raw = secret.encode("utf-8", "surrogatepass")
    for quoted in (quote(raw), quote(raw, safe=""), quote_plus(raw)):
        yield from (quoted, re.sub("%..", lambda code: code[0].lower(), quoted))
    for code in (raw.hex(), raw.hex(":")):
        yield from (code, code.upper())
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + raw).decode().rstrip("=")
        # the first and last characters also hold bits of what stands beside the secret
        stable = encoded[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6]
        if len(stable) >= MIN_SECRET:
            yield from (stable, stable.replace("+", "-").replace("/", "_"))


def _suspicious(data: bytes, forms: Iterable[bytes]) -> bool:
    """Whether there may be something: a dozen searches, and no regular expression, for nearly all that comes."""
    for form in forms:
        if form in data:
            return True
    # no key is part of a longer run of such characters, so it is enough to look at where long runs start
    if _LONG in (runs := data.translate(_RUNS)) and _has_key(data, runs):
        return True
    if b"_A" in data.translate(_CAPITALS) and any(ending in data for ending in _ENDINGS_BYTES):
        return True
    if b"\\u00" in data and _HIDDEN.search(data) is not None:
        return True
    lower = data.lower()
    return any(word in lower for word in _HEADERS_BYTES)


def _has_key(data: bytes, runs: bytes) -> bool:
    at = runs.find(_LONG)
    while at >= 0:
        start = runs.rfind(b" ", 0, at) + 1
        if data.startswith(_PREFIXES_BYTES, start):
            return True
        end = runs.find(b" ", at)
        at = runs.find(_LONG, end) if end >= 0 else -1
    return False


_PREFIXES = tuple(prefix for prefix, *_ in _KEYS)
_PREFIXES_BYTES = tuple(prefix.encode() for prefix in _PREFIXES)
_ENDINGS_BYTES = tuple(ending.encode() for ending in _ENDINGS)
_HEADERS_BYTES = tuple(word.encode() for word in _HEADERS)
_LONG = b"x" * min(len(prefix) + fewest for prefix, _, fewest, _ in _KEYS)
_IN_KEYS = re.compile(rb"[A-Za-z0-9_-]")
_RUNS = bytes(b"x"[0] if _IN_KEYS.match(bytes([code])) else b" "[0] for code in range(256))
_CAPITALS = bytes(b"A"[0] if 65 <= code <= 90 else code if code == b"_"[0] else b" "[0] for code in range(256))
