from __future__ import annotations

import base64
import json
import urllib.parse
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proctor.core.redact import Redactor

SECRET = "corr/ect+horse=battery1"
KEYS = {
    "openai": "sk-proj-" + "aB3_-" * 12,
    "openai old": "sk-" + "aB3d" * 12,
    "anthropic": "sk-ant-api03-" + "aB3_-" * 18 + "AA",
    "openrouter": "sk-or-v1-" + "0a1b2c3d" * 8,
    "google": "AIza" + "Sy0-_" * 7,
    "groq": "gsk_" + "aB3d" * 13,
    "x-ai": "xai-" + "aB3d" * 20,
    "hugging face": "hf_" + "aBcDe1" * 6,
    "aws": "AKIA" + "ABCD" * 3 + "1234",
    "github": "ghp_" + "aB3d" * 9,
    "github fine": "github_pat_" + "aB3d_" * 12,
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
@pytest.mark.parametrize("around", ["{}", "key={}&x", "see '{}'.", '{{"a": "{}"}}', "a\n{}\n", "({})"])
def test_what_looks_like_a_key_is_taken_out(key: str, around: str) -> None:
    text = around.format(key)
    assert Redactor().text(text) == around.format("[redacted:key]")
    assert Redactor().bytes(text.encode()) == around.format("[redacted:key]").encode()


@pytest.mark.parametrize(
    "text",
    [
        "task-force-of-the-year-2024-and-more-of-it",
        "sk-some-long-name-joined-by-hyphens-only",
        "sk-1",
        "AIzaIsAWord",
        "hf_hub_download",
        "a bearer of good news and an authorization: required",
        "the bearer instruments-of-state-and-church",
        "sort by cache_key=value, max_token=3",
        "KEY=1",
        "MONKEY=banana",
        "prompt_tokens: 3, MAX_TOKENS=5",
        "sk-" + "a1" * 2000,
        '{"id": "chatcmpl-0a1b2c3d4e5f60718293a4b5c6d7e8f9", "created": 1700000000}',
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert Redactor([SECRET]).text(text) == text
    assert Redactor([SECRET]).bytes(text.encode()) == text.encode()


def spellings(secret: str) -> dict[str, str]:
    raw = secret.encode()
    escaped = "".join(f"\\u{ord(c):04X}" for c in secret)
    return {
        "plain": secret,
        "json": json.dumps(secret),
        "json in json": json.dumps(json.dumps({"a": secret})),
        "json, slashes escaped": json.dumps({"a": secret}).replace("/", r"\/"),
        "json, all escaped": json.dumps({"a": "@"}).replace("@", "".join(f"\\u{ord(c):04x}" for c in secret)),
        "json in json, all escaped": json.dumps(json.dumps({"a": "@"}).replace("@", escaped)),
        "json in json in json, all escaped": json.dumps(json.dumps(json.dumps({"a": "@"}).replace("@", escaped))),
        "no json, all escaped": f"a: '{escaped}', NaN",
        "url": "http://h/?k=" + urllib.parse.quote(secret, safe=""),
        "url path": urllib.parse.quote(secret),
        "url, lower": urllib.parse.quote(secret, safe="").lower() if secret.islower() else secret,
        "form": urllib.parse.urlencode({"k": secret}),
        **{f"base64 at {n}": base64.b64encode(b"x" * n + raw + b"tail").decode() for n in range(4)},
        "base64 for urls": base64.urlsafe_b64encode(b"user:" + raw).decode(),
    }


@pytest.mark.parametrize("name", spellings(SECRET))
@pytest.mark.parametrize("secret", [SECRET, 'qu"ote\\and\nline', "hunter2", "pässwörd-ünïcode"])
def test_a_known_value_is_found_in_every_spelling(name: str, secret: str) -> None:
    text = spellings(secret)[name]
    redacted = Redactor([secret]).bytes(text.encode()).decode()
    assert "[redacted:secret]" in redacted
    assert secret not in redacted and json.dumps(secret)[1:-1] not in redacted
    if text.startswith(("{", '"')):
        read = json.loads(redacted)
        assert secret not in str(read)
        while isinstance(read, str) and read.startswith(('{"', '"')):
            read = json.loads(read)
        assert secret not in str(read)


def test_the_longest_of_overlapping_values_goes() -> None:
    assert Redactor(["abcdef", "abcdef-ghijkl"]).text("abcdef-ghijkl abcdef") == "[redacted:secret] [redacted:secret]"


def test_values_too_short_to_be_told_from_text_are_not_looked_for() -> None:
    assert Redactor(["", "a", "test "]).text("a test") == "a test"


def test_a_value_that_is_a_number_leaves_json_behind() -> None:
    assert json.loads(Redactor(["12345678"]).bytes(b'{"pin": 12345678, "n": 1}')) == {
        "pin": "[redacted:secret]",
        "n": 1,
    }


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Authorization: Bearer abcd.efgh_1", "Authorization: Bearer [redacted:header]"),
        ("authorization: Basic dXNlcjpwYXNz", "authorization: Basic [redacted:header]"),
        ('curl -H "x-api-key: 0123456789abc"', 'curl -H "x-api-key: [redacted:header]"'),
        ("x-goog-api-key=0123456789", "x-goog-api-key=[redacted:header]"),
        ("got bearer 0123456789abcdef01", "got bearer [redacted:header]"),
        ("{'authorization': 'Token 0123456789'}", "{'authorization': 'Token [redacted:header]'}"),
    ],
)
def test_credentials_in_headers(text: str, kept: str) -> None:
    assert Redactor().text(text) == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("HOME=/\nMY_API_KEY=a b c\nX=1", "HOME=/\nMY_API_KEY=[redacted:env]\nX=1"),
        ("export DB_PASSWORD='x y'", "export DB_PASSWORD=[redacted:env]"),
        ("env A_TOKEN=abc cmd", "env A_TOKEN=[redacted:env] cmd"),
        ("{'MY_SECRET': 'it\\'s', 'B': 'c'}", "{'MY_SECRET': '[redacted:env]', 'B': 'c'}"),
        ('see "MY_SECRET": "a\\"b", "B": 1', 'see "MY_SECRET": "[redacted:env]", "B": 1'),
        (r"see {\"MY_SECRET\": \"abc\", \"B\": 1}", r"see {\"MY_SECRET\": \"[redacted:env]\", \"B\": 1}"),
        ('see "MY_SECRET": "cut off', 'see "MY_SECRET": "[redacted:env]'),
        ("A_KEY=\nB=1", "A_KEY=\nB=1"),
    ],
)
def test_dumps_of_an_environment(text: str, kept: str) -> None:
    assert Redactor().text(text) == kept


def test_dumps_inside_of_json() -> None:
    body = {"out": "PATH=/bin\nMY_API_KEY=abc\n", "env": {"DB_PASSWORD": "x", "N_TOKEN": ""}, "x-api-key": "abc"}
    assert json.loads(Redactor().bytes(json.dumps(body).encode())) == {
        "out": "PATH=/bin\nMY_API_KEY=[redacted:env]\n",
        "env": {"DB_PASSWORD": "[redacted:env]", "N_TOKEN": ""},
        "x-api-key": "[redacted:header]",
    }


WORDS = [SECRET, "A_KEY=", '"A_KEY": "', "\\", '\\"', '"', "'", "\n", " ", "Bearer ", "x-api-key: "]
ODD = ["sk-", "[redacted:env]", "[redacted:", "]", "abc", "1", "/", "\u2028", "\ud800", "\\u0041", ":", "{", "}", ","]
PIECES = st.sampled_from([*KEYS.values(), *WORDS, *ODD])
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=12).map("".join)
JSON_TEXTS = TEXTS.map(lambda text: text.encode("utf-8", "replace").decode())
DOCUMENTS = st.recursive(
    st.one_of(
        JSON_TEXTS,
        st.integers(-(2**63), 2**63),
        st.booleans(),
        st.none(),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(JSON_TEXTS, st.just("A_KEY"), st.just("authorization")), inner, max_size=4),
    ),
    max_leaves=12,
)
REDACTOR = Redactor([SECRET, "redacted", "12345678", 'ab"cd\\'])


@given(TEXTS)
@example("\ud800A_KEY=1")
def test_redacted_text_stays_as_it_is(text: str) -> None:
    once = REDACTOR.text(text)
    assert REDACTOR.text(once) == once
    assert SECRET not in once


@given(st.one_of(st.binary(max_size=80), TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass"))))
@example(b"\xff\xfeA_KEY=\x80\n")
def test_redacted_bytes_stay_as_they_are(data: bytes) -> None:
    once = REDACTOR.bytes(data)
    assert REDACTOR.bytes(once) == once
    assert SECRET.encode() not in once


@given(DOCUMENTS, st.booleans(), st.sampled_from([None, 1]))
def test_json_stays_json_with_its_shape(document: Any, ascii_only: bool, indent: int | None) -> None:
    data = json.dumps(document, ensure_ascii=ascii_only, indent=indent).encode()
    redacted = REDACTOR.bytes(data)
    again = json.loads(redacted)
    assert REDACTOR.bytes(redacted) == redacted
    assert SECRET not in str(again)
    assert _shape(again) == _shape(json.loads(data))


def _shape(value: Any) -> Any:
    if isinstance(value, list):
        return [_shape(item) for item in value]
    if isinstance(value, dict):
        # two keys that hold secrets may become one
        return dict
    return "scalar" if value is not None else None


MEGABYTE = 1_000_000
HOSTILE = {
    "backslashes": ("A_KEY", "\\", 1),
    "endings": ("", "_KEY", 10),
    "one long value": ("A_KEY=", "A", 1),
    "escaped quotes": ('"A_KEY":"', '\\"', 10),
    "almost a key": ("A_KEY sk-", "a-", 1),
    "spaces": ("A_KEY=\n", " ", 1),
    "headers": ("", "authorization: ", 1),
    "names in quotes": ("", '"' + "A" * 199 + '" _KEY', 1),
    "escapes": ("", "\\u0063", 10),
    "strings": ('["a_KEY"', ',"bearer"', 1),
    "deep": ("A_KEY", "[", 10),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_megabytes_of_malice_come_to_an_end(name: str) -> None:
    """In linear time, a fraction of a second; what is quadratic would take hours."""
    start, again, megabytes = HOSTILE[name]
    data = (start + again * (megabytes * MEGABYTE // len(again))).encode()
    assert len(Redactor([SECRET]).bytes(data)) <= len(data) + 20


@pytest.mark.parametrize(
    ("said", "left"),
    [
        (b'{"text": "use planted/secret+0123456789 now"}', b'{"text": "use [redacted:secret] now"}'),
        (b'{"a": "planted\\/secret+0123456789", "n": 12}', b'{"a": "[redacted:secret]", "n": 12}'),
        (b'{"a": "\\u0070lanted/secret+0123456789"}', b'{"a": "[redacted:secret]"}'),
        (
            b'{"a": "{\\"b\\": \\"planted\\\\u002fsecret+0123456789\\"}"}',
            b'{"a": "{\\"b\\": \\"[redacted:secret]\\"}"}',
        ),
        (b"no json: planted\\u002Fsecret\\u002B0123456789", b"no json: [redacted:secret]"),
        (b"no json: planted%2Fsecret%2B0123456789", b"no json: [redacted:secret]"),
        (b'{"a": "ollama is a word, sk-0123456789012345678901234567 a sample"}', None),
        (b"Authorization: Bearer 0123456789abcdef0123", None),
    ],
)
def test_what_an_agent_hears_loses_the_keys_in_use_and_nothing_else(said: bytes, left: bytes | None) -> None:
    redactor = Redactor(["planted/secret+0123456789", "ollama"])
    assert redactor.certain(said) == (said if left is None else left)
    assert redactor.certain(redactor.certain(said)) == redactor.certain(said)
    assert Redactor().certain(said) == said
