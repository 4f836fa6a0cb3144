"""Maps of chunks at the edges of their rules: just inside, just outside, where nothing is said."""

from __future__ import annotations

import gzip

from builder import Story
from money_stories import money_story
from plants import Plants
from primitives import Body, sha256

PLANTS = Plants(money_story)
plant = PLANTS.before_sealing
MOST = 1 << 20


def _mapped(s: Story, ref: Body, response: int = 200) -> None:
    """An exchange has that map of its response, of so many bytes."""
    ended = next(step for step in s.entries() if step.body.get("chunks") is not None)
    ended.body["response"] = s.blob(bytes(response))
    ended.body["chunks"] = ref
    s.repack()


def _frame(s: Story, content: bytes, stored: bytes, encoding: str = "gzip") -> Body:
    """A frame that is stored so."""
    pack = max(s.packs)
    ref = {"blob": sha256(content), "size": len(content), "pack": pack, "offset": len(s.packs[pack])}
    s.packs[pack] += stored
    return {**ref, "length": len(stored), "encoding": encoding, "stored_sha256": sha256(stored)}


def _named(content: bytes, length: int) -> bytes:
    """One gzip member of so many bytes, most of which are the name of a file."""
    plain = gzip.compress(content, mtime=0)
    return plain[:3] + b"\x08" + plain[4:10] + b"n" * (length - len(plain) - 1) + b"\0" + plain[10:]


def as_many_chunks_as_there_may_be(s: Story) -> None:
    """No fault: all at once, and the last of them is the last byte."""
    _mapped(s, s.blob(b"[[0,0]%b]" % b"".join(b",[%d,0]" % at for at in range(1, 32_768))), 32_768)


@plant("exchanges.chunks", "one that begins where the response ends")
def _(s: Story) -> None:
    _mapped(s, s.blob(b"[[0,0],[200,1]]"), 200)


@plant("exchanges.chunks", "two that begin at one place")
def _(s: Story) -> None:
    _mapped(s, s.blob(b"[[0,0],[7,1],[7,2]]"))


@plant("exchanges.chunks", "a map in a file of its own")
def _(s: Story) -> None:
    _mapped(s, s.blob(b"[[0,0],[7,2]]", large=True))


@plant("exchanges.chunks", "no map, and as large as a frame may be")
def _(s: Story) -> None:
    _mapped(s, s.blob(bytes(MOST)))


@plant("packs.frames", "a map larger than a frame may be")
def _(s: Story) -> None:
    _mapped(s, s.blob(bytes(MOST + 1)))


@plant("exchanges.chunks", "no map, and as long as a frame may be")
def _(s: Story) -> None:
    _mapped(s, _frame(s, b"[]", _named(b"[]", 2 * MOST)))


@plant("packs.frames", "a map longer than a frame may be")
def _(s: Story) -> None:
    _mapped(s, _frame(s, b"[]", _named(b"[]", 2 * MOST + 1)))


@plant("packs.frames", "a map that is deflated, as it says, and is not")
def _(s: Story) -> None:
    _mapped(s, _frame(s, b"[[0,0]]", b"[[0,0]]"))


@plant("packs.frames", "no map, and a byte shorter than it says")
def _(s: Story) -> None:
    _mapped(s, {**_frame(s, b"[]", gzip.compress(b"[]", mtime=0)), "size": 3})


@plant("packs.frames", "no map, and other bytes than it says")
def _(s: Story) -> None:
    _mapped(s, {**_frame(s, b"[]", b"[]", "raw"), "blob": sha256(b"{}")})


SOUND = (as_many_chunks_as_there_may_be,)
