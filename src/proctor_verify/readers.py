"""Blocks judged by several processes at once, and handed on in their order.

The processes are this program again, each on pipes of its own. They open no file: they get the bytes that are judged
here, and what those were found to be does not depend on who judged them. A process that dies, cannot be started or
does not answer costs time and nothing else: its blocks are judged here.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import IO

from proctor_verify.journal import Block, Line
from proctor_verify.judging import Span, judge

# A smaller journal is read by the time that another process has begun.
WORTH_IT = 8 << 20
# One judges several times as many lines as are walked meanwhile: more would only wait.
MOST = 1
# One that is stopped looks like one that thinks.
ANSWER_SEC = 60.0
_AHEAD = 2
# first line, bytes, places of cuts
_ASK = struct.Struct("<QII")
# lines, spans; of each its start, count, least, most, head, and how many subtrees; of each its height and root
_ANSWER = struct.Struct("<II")
_SPAN = struct.Struct("<IIqq32sB")
_TREE = struct.Struct("<B32s")
_START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from proctor_verify.readers import serve; serve()"


def how_many(size: int) -> int:
    """How many other processes a journal of so many bytes is worth: none, where there is one processor."""
    name = Path(sys.executable or "").name.lower()
    # Within another program, `executable` may be that program.
    if size < WORTH_IT or not name.startswith(("python", "pypy")) or getattr(sys, "frozen", False):
        return 0
    try:
        processors = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        processors = os.cpu_count() or 1
    return min(processors - 1, MOST)


@dataclass(eq=False, slots=True)
class _Ahead:
    """A block that was not handed on yet: judged here, or asked of another process, or neither."""

    block: Block
    judged: list[Span] | None = None
    asked: _Reader | None = None

    @property
    def is_free(self) -> bool:
        return self.judged is None and self.asked is None


class Readers:
    """So many processes that judge, besides this one. They end with the context.

    `answers` counts the blocks that they, not this process, judged.
    """

    def __init__(self, count: int) -> None:
        self.answers = 0
        self._readers = [_Reader() for _ in range(count)]

    def __enter__(self) -> Readers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for reader in self._readers:
            reader.end()

    def judged(self, pieces: Iterable[Block | Line]) -> Iterator[tuple[Block, list[Span]] | Line]:
        """Each piece in its order, a block with what was found of it. Few are held at a time."""
        source = iter(pieces)
        ahead: deque[_Ahead | Line] = deque()
        most = 1 + (_AHEAD + 1) * len(self._readers)
        while True:
            while len(ahead) < most and (piece := next(source, None)) is not None:
                ahead.append(piece if isinstance(piece, Line) else _Ahead(piece))
            if not ahead:
                return
            blocks = [each for each in ahead if isinstance(each, _Ahead)]
            self._give_out(blocks)
            first = ahead[0]
            if isinstance(first, _Ahead):
                yield first.block, self._found(first, blocks)
            else:
                yield first
            ahead.popleft()

    def _give_out(self, blocks: list[_Ahead]) -> None:
        for each in blocks:
            if each.is_free:
                reader = min(self._readers, key=lambda reader: reader.waiting, default=None)
                if reader is None or reader.waiting >= _AHEAD:
                    return
                reader.ask(each.block)
                each.asked = reader

    def _found(self, first: _Ahead, blocks: list[_Ahead]) -> list[Span]:
        """What was found of the first. Until another process says so, blocks that nobody judges are judged here."""
        if first.asked is not None:
            for each in blocks:
                if first.asked.has_answered:
                    break
                if each.is_free:
                    each.judged = judge(each.block)
            first.judged = first.asked.answer()
            self.answers += first.judged is not None
        return judge(first.block) if first.judged is None else first.judged


class _Reader:
    """One process, and the thread that talks with it: it is asked in order, and answers in order."""

    def __init__(self) -> None:
        self.waiting = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: Thread | None = None
        self._asked: SimpleQueue[Block | None] = SimpleQueue()
        self._answers: SimpleQueue[list[Span] | None] = SimpleQueue()
        path = [str(Path(__file__).parents[1]), *map(str, sys.path)]
        try:
            self._process = subprocess.Popen(
                # -I: the current folder may be the run's, which must not bring modules of its own
                [sys.executable, "-I", "-c", _START, json.dumps(path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            self._thread = Thread(target=self._talk, args=(self._process,), name="reader", daemon=True)
            self._thread.start()
        except (OSError, RuntimeError):
            self.end()

    def ask(self, block: Block) -> None:
        self.waiting += 1
        self._asked.put(block)

    @property
    def has_answered(self) -> bool:
        return self._process is None or not self._answers.empty()

    def answer(self) -> list[Span] | None:
        """Of the block that was asked of first; None where the process cannot tell, or there is none any more."""
        self.waiting -= 1
        if self._process is None:
            return None
        try:
            return self._answers.get(timeout=ANSWER_SEC)
        except Empty:
            self.end()
            return None

    def end(self) -> None:
        """The process has nothing to lose."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        self._asked.put(None)
        if self._thread is not None and self._thread.ident is not None:
            self._thread.join()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def _talk(self, process: subprocess.Popen[bytes]) -> None:
        to, back = process.stdin, process.stdout
        while (block := self._asked.get()) is not None:
            found = None
            try:
                if to is not None and back is not None:
                    to.write(_ASK.pack(block.first, len(block.data), len(block.cuts)))
                    to.write(array("I", block.cuts).tobytes())
                    to.write(block.data)
                    to.flush()
                    found = _read_answer(back, block)
            except (OSError, ValueError, struct.error):
                to = None  # it died, or says what is no answer, and so it will of the next
            self._answers.put(found)


def _read_answer(back: IO[bytes], block: Block) -> list[Span]:
    """Raises ValueError or struct.error where it is none."""
    lines, count = _ANSWER.unpack(back.read(_ANSWER.size))
    if lines != block.lines or count > lines:
        raise ValueError("this is no answer to what was asked")
    spans: list[Span] = []
    for _ in range(count):
        *found, trees = _SPAN.unpack(back.read(_SPAN.size))
        spans.append(Span._make([*found, list(_TREE.iter_unpack(back.read(_TREE.size * trees)))]))
    return spans


def serve() -> None:
    """What such a process does: reads blocks, and writes for each what it was found to be."""
    # Who is at the terminal means the one that asks.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    blocks, found = sys.stdin.buffer, sys.stdout.buffer
    while head := blocks.read(_ASK.size):
        first, size, cuts = _ASK.unpack(head)
        places = array("I", blocks.read(array("I").itemsize * cuts))
        data = blocks.read(size)
        block = Block(first, data.count(b"\n"), data, tuple(places))
        spans = judge(block)
        found.write(_ANSWER.pack(block.lines, len(spans)))
        for *others, trees in spans:
            found.write(_SPAN.pack(*others, len(trees)))
            found.writelines(starmap(_TREE.pack, trees))
        found.flush()
