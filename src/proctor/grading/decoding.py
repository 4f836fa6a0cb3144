"""Reports whose bytes are not quite text: what no text can hold is written out, so that the rest is not lost.

A test that prints a stray byte, or a reporter that escapes half of a surrogate pair, would otherwise cost every
other test its outcome. Only a second attempt reads mended bytes, the disclosure says so, and raw bytes are kept.
What would need more mends than `MAX_MENDS` is no report with a blemish, and stays as it is.
"""

from __future__ import annotations

import codecs
import re

MENDED = "the report holds bytes or characters that are no text; they are read as escapes that name them"
MAX_MENDS = 250_000

_JSON_ESCAPE = re.compile(
    r"\\(?:\\"
    r"|(?P<pair>u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?P<bad>x|u[dD][89a-fA-F][0-9a-fA-F]{2}))"
)
_XML_ENCODING = re.compile(rb"""\A\s*<\?xml[^>]{0,200}?\bencoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_XML_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_XML_REFERENCE = re.compile(r"&#(?:x([0-9a-fA-F]{1,8})|([0-9]{1,10}));")


def without_bom(data: bytes) -> bytes:
    """The bytes after a UTF-8 byte-order mark, if there is one."""
    return data.removeprefix(codecs.BOM_UTF8)


def mend_json(data: bytes) -> bytes:
    r"""Stray bytes as `\\xNN`; an escape of half a surrogate pair as the six characters that it is written with."""
    text = _decoded(data)
    # JSON has no escape `\x`: where one stands, decoding put it there, or the report was broken anyway.
    if text is None or text.count("\\\\") + text.count("\\x") > MAX_MENDS:
        return data
    return _JSON_ESCAPE.sub(lambda m: f"\\{m[0]}" if m["bad"] else m[0], text).encode("utf-8")


def mend_xml(data: bytes) -> bytes:
    r"""Stray bytes as `\xNN`, and what XML 1.0 forbids as `\xNN` or `\uNNNN`; other encodings than UTF-8 unchanged."""
    declared = _XML_ENCODING.match(data)
    if declared and declared[1].lower() not in (b"utf-8", b"utf8", b"us-ascii"):
        return data
    text = _decoded(data)
    if text is None:
        return data
    text = _XML_FORBIDDEN.sub(lambda m: _named(ord(m[0])), text, count=MAX_MENDS)
    return _XML_REFERENCE.sub(_reference, text, count=MAX_MENDS).encode("utf-8")


def _decoded(data: bytes) -> str | None:
    r"""The text, with stray bytes as `\xNN`; None where there are too many."""
    text = data.decode("utf-8", "backslashreplace")
    return text if len(text) <= len(data) + 3 * MAX_MENDS else None


def _reference(found: re.Match[str]) -> str:
    code = int(found[1], 16) if found[1] else int(found[2])
    legal = code in (9, 10, 13) or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code <= 0x10FFFF
    return found[0] if legal else _named(code)


def _named(code: int) -> str:
    return rf"\x{code:02x}" if code < 256 else rf"\u{code:04x}"
