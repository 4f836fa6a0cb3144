"""Keys by the name of their variable: from the environment, else from a `.env` file.

A `.env` file has lines `NAME=value`, with or without `export` before them; a value may stand in quotes, in double ones
with the escapes `\\n`, `\\"` and `\\\\`; `#` starts a comment at a line's start, or after a space behind a value
without quotes. Nothing is expanded, and a line that is none of these is passed over: such files serve other programs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from proctor.core.files import read_regular
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal

NAME = ".env"
MAX_BYTES = 1 << 20

_LINE = re.compile(
    r"""[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*
        (?: "((?:[^"\\]|\\.)*+)" | '([^']*)' | ([^\r\n]*) )""",
    re.VERBOSE,
)
_COMMENT = re.compile(r"(?:^|[ \t])#.*")
_ESCAPE = re.compile(r'\\([n"\\$])')


def parse_dotenv(text: str) -> dict[str, str]:
    """Variables of a `.env` file; of a name that stands twice, the last."""
    found: dict[str, str] = {}
    for line in text.removeprefix("\ufeff").splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        name, double, single, plain = match.groups()
        if double is not None:
            found[name] = _ESCAPE.sub(lambda escape: "\n" if escape[1] == "n" else escape[1], double)
        else:
            found[name] = single if single is not None else _COMMENT.sub("", plain).strip()
    return found


def with_dotenv(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The environment, and below it what `.env` in that folder says; what is set to nothing counts as not set.

    Raises:
        Refusal: `file_unreadable`: it is there, and no plain file of UTF-8 of at most a MiB that can be read.
    """
    path = folder / NAME
    try:
        raw = read_regular(path, MAX_BYTES)
        if raw is None:
            message = "a .env file is too large, or no plain file"
            raise Refusal(Reason.FILE_UNREADABLE, message, path=str(path), required={"bytes": MAX_BYTES})
        below = parse_dotenv(raw.decode())
    except FileNotFoundError:
        below = {}
    except (OSError, UnicodeDecodeError) as error:
        said = type(error).__name__
        raise Refusal(Reason.FILE_UNREADABLE, f"a .env file cannot be read: {said}", path=str(path)) from error
    return {**below, **{name: value for name, value in environ.items() if value.strip() or name not in below}}


def pick_keys(names: Iterable[str], values: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Keys by variable, white space around them removed; and the variables that hold none, in order, each once."""
    wanted = tuple(dict.fromkeys(names))
    found = {name: value for name in wanted if (value := values.get(name, "").strip())}
    return found, tuple(name for name in wanted if name not in found)
