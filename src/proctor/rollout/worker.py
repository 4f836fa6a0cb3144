"""The program of a worker process: imports one Python function of a study's, and calls it as often as it is asked.

Run as a script, with nothing but the standard library. It talks over one socket, so that what the function prints
goes nowhere near the answers: frames of length and number (four bytes each, big-endian) and as many bytes of JSON. The
first frame says what to import, each further one asks for a call or for a description; each is answered by one frame of
its number, `{"value": …}` or `{"raised": "Type: message"}`. So an answer that nobody waits for, of a function that
forked and returned twice, is never taken for that of the next call.
"""

from __future__ import annotations

import asyncio
import ctypes
import hashlib
import importlib
import inspect
import json
import os
import signal
import socket
import struct
import sys
import traceback
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

MAX_VALUE_BYTES = 1 << 20
MAX_TEXT_CHARS = 4_000
HEAD = struct.Struct(">II")

_PR_SET_PDEATHSIG = 1
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def main(descriptor: int, parent: int) -> None:
    """Serve until the socket closes."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before that
        return
    os.set_inheritable(descriptor, False)
    # no compiled files beside a study, whose repository would count as changed
    sys.dont_write_bytecode = True
    with socket.socket(fileno=descriptor) as channel:
        served = Served()
        while (received := _receive(channel)) is not None:
            number, request = received
            reply = _reply(served, request)
            channel.sendall(HEAD.pack(len(reply), number) + reply)
            if served.function is None:
                return


class Served:
    """The function of this process: imported by the first request."""

    function: Callable[..., Any] | None = None

    def serve(self, request: dict[str, Any]) -> Any:
        """Do what one request asks for. Raises whatever the function does."""
        if self.function is None:
            self.function = _load(**request)
            return None
        if request["ask"] == "describe":
            return describe(self.function)
        result = self.function(*request["args"], **request["kwargs"])
        return asyncio.run(_awaited(result)) if inspect.isawaitable(result) else result


def _receive(channel: socket.socket) -> tuple[int, dict[str, Any]] | None:
    head = _exactly(channel, HEAD.size)
    if head is None:
        return None
    size, number = HEAD.unpack(head)
    body = _exactly(channel, size)
    return None if body is None else (number, json.loads(body))


def _exactly(channel: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part = channel.recv(min(size - len(parts), 1 << 20))
        if not part:
            return None
        parts += part
    return bytes(parts)


def _reply(served: Served, request: dict[str, Any]) -> bytes:
    try:
        return _value(served.serve(request))
    except BaseException as error:
        # it may fail to say what it is
        said = "".join(traceback.format_exception_only(error)).strip()[:MAX_TEXT_CHARS]
        return json.dumps({"raised": said.encode("utf-8", "backslashreplace").decode()}).encode()


def _load(path: list[str], module: str, function: str, file: str, sha256: str) -> Callable[..., Any]:
    sys.path[:] = path
    loaded = importlib.import_module(module)
    found = getattr(loaded, "__file__", None)
    if found is None or str(Path(found).resolve()) != file:
        raise ImportError(f"importing {module} took {found}, not {file}: rename one of them")
    if hashlib.sha256(Path(file).read_bytes()).hexdigest() != sha256:
        raise ImportError(f"{file} is not what was admitted")
    loaded_function = getattr(loaded, function)
    if not callable(loaded_function):
        raise TypeError(f"{module}:{function} cannot be called")
    return typing.cast("Callable[..., Any]", loaded_function)


async def _awaited(result: Any) -> Any:
    return await result


def _value(value: Any) -> bytes:
    # lone surrogates raise here, and the rest of what strict JSON refuses is seen by the reader
    data = json.dumps({"value": value}, allow_nan=False, ensure_ascii=False).encode("utf-8")
    if len(data) > MAX_VALUE_BYTES:
        raise ValueError(f"the result has {len(data)} bytes, more than {MAX_VALUE_BYTES}")
    return data


def describe(function: Callable[..., Any]) -> dict[str, Any]:
    """What a model is told of a function: its docstring, and the JSON schema of its parameters.

    Raises:
        TypeError: a parameter that cannot be named, or whose type is none of str, int, float and bool.
    """
    hints = typing.get_type_hints(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"the parameter {name} cannot be given by its name")
        properties[name] = {"type": _json_type(name, hints.get(name))}
        if parameter.default is parameter.empty:
            required.append(name)
    return {
        "description": inspect.cleandoc(function.__doc__ or "")[:MAX_TEXT_CHARS],
        "parameters": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        },
    }


def _json_type(name: str, hint: Any) -> str:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        inner = [each for each in typing.get_args(hint) if each is not type(None)]
        hint = inner[0] if len(inner) == 1 else hint
    if hint not in _TYPES:
        raise TypeError(f"the parameter {name} is declared as none of str, int, float and bool")
    return _TYPES[hint]


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
