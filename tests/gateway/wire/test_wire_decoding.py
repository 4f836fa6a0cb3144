"""Content encodings: the same bytes for every split, bombs in little memory, and each kind of bad data named."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.gateway.wire.decoding import Decoder, Undecodable, acceptable, decoded


def raw_deflate(data: bytes) -> bytes:
    made = zlib.compressobj(wbits=-15)
    return made.compress(data) + made.flush()


def zstd_stream(data: bytes) -> bytes:
    made = zstandard.ZstdCompressor().compressobj()
    return made.compress(data) + made.flush()


ENCODERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "identity": ("identity", bytes),
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("x-gzip", lambda data: gzip.compress(data, 1)),
    "deflate in zlib": ("deflate", zlib.compress),
    "deflate, bare": ("deflate", raw_deflate),
    "br": ("br", brotli.compress),
    "zstd": ("zstd", zstandard.ZstdCompressor().compress),
    "zstd of unknown size": ("zstd", zstd_stream),
}
EVERY = pytest.mark.parametrize(("name", "encode"), ENCODERS.values(), ids=ENCODERS)
BLOCKS = st.binary(max_size=300) | st.builds(
    lambda unit, times: unit * times, st.binary(max_size=40), st.integers(0, 3000)
)


def in_pieces(encoding: str | None, body: bytes, cuts: list[int]) -> tuple[bytes, bool]:
    decoder = Decoder(encoding)
    ends = sorted({min(cut, len(body)) for cut in cuts} | {len(body)})
    pieces = [body[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return b"".join(part for piece in pieces for part in decoder.feed(piece)), decoder.whole


@given(
    st.lists(st.sampled_from(list(ENCODERS)), min_size=1, max_size=3),
    BLOCKS,
    st.lists(st.integers(0, 5000), max_size=6),
)
def test_every_chain_of_encodings_is_undone_whatever_the_split(names: list[str], data: bytes, cuts: list[int]) -> None:
    body = data
    for name in names:
        body = ENCODERS[name][1](body)
    header = " , ".join(ENCODERS[name][0].upper() for name in names)
    assert in_pieces(header, body, cuts) == (data, True)
    assert decoded(header, body, len(data)) == data


@EVERY
def test_every_byte_by_itself_is_the_same(name: str, encode: Callable[[bytes], bytes]) -> None:
    body = encode(b"one two " * 40)
    assert in_pieces(name, body, list(range(len(body)))) == (b"one two " * 40, True)


@EVERY
def test_members_that_follow_each_other_are_read_where_the_encoding_has_such(
    name: str, encode: Callable[[bytes], bytes]
) -> None:
    body = encode(b"one") + encode(b"two")
    if name in ("gzip", "x-gzip", "zstd", "identity"):
        assert decoded(name, body, 100 + len(body)).count(b"two") == 1
    else:
        with pytest.raises(Refusal) as refused:
            decoded(name, body, 100)
        assert refused.value.reason is Reason.REQUEST_UNREADABLE


@pytest.mark.parametrize(("name", "encode"), list(ENCODERS.values())[1:], ids=list(ENCODERS)[1:])
def test_data_that_ends_early_is_not_whole(name: str, encode: Callable[[bytes], bytes]) -> None:
    body = encode(bytes(range(256)) * 9)
    for end in (1, len(body) // 2, len(body) - 1):
        assert not in_pieces(name, body[:end], [])[1]
        with pytest.raises(Refusal) as refused:
            decoded(name, body[:end], 10**6)
        assert refused.value.reason is Reason.REQUEST_UNREADABLE
    assert decoded(name, b"", 0) == b""


@given(st.sampled_from(["gzip", "deflate", "br", "zstd", "br, gzip"]), st.binary(min_size=1), st.integers(0, 90))
def test_data_of_another_kind_is_unreadable_and_never_anything_else(encoding: str, data: bytes, cut: int) -> None:
    for body in (data, gzip.compress(data)[:-cut] if cut else gzip.compress(data)):
        try:
            decoded(encoding, body, 10**6)
        except Refusal as refusal:
            assert refusal.reason in (Reason.REQUEST_UNREADABLE, Reason.REQUEST_TOO_LARGE)


ZEROS = b"\0" * (1 << 20)


def bomb(name: str, times: int) -> bytes:
    if name == "zstd":
        made = zstandard.ZstdCompressor().compressobj()
        return b"".join(made.compress(ZEROS) for _ in range(times)) + made.flush()
    if name == "br":
        brotted = brotli.Compressor(quality=5)
        return b"".join(brotted.process(ZEROS) for _ in range(times)) + brotted.finish()
    wbits = {"gzip": 31, "deflate": 15, "deflate, bare": -15}[name]
    deflated = zlib.compressobj(wbits=wbits)
    return b"".join(deflated.compress(ZEROS) for _ in range(times)) + deflated.flush()


@pytest.mark.parametrize("name", ["gzip", "deflate", "deflate, bare", "br", "zstd"])
def test_a_bomb_is_refused_in_little_memory(name: str) -> None:
    body = bomb(name, 96)
    tracemalloc.start()
    with pytest.raises(Refusal) as refused:
        decoded(name.partition(",")[0], body, 1 << 20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert refused.value.reason is Reason.REQUEST_TOO_LARGE
    assert peak < 16 << 20


@pytest.mark.parametrize("name", ["gzip", "br", "zstd"])
def test_a_bomb_in_a_bomb_comes_out_in_pieces(name: str) -> None:
    body = gzip.compress(bomb(name, 64))
    most = 0
    size = 0
    for piece in Decoder(f"{name}, gzip").feed(body):
        most = max(most, len(piece))
        size += len(piece)
    assert size == 64 << 20
    assert most <= 5 << 20


def test_a_frame_that_wants_a_larger_window_than_http_allows_is_unreadable() -> None:
    wide = zstandard.ZstdCompressionParameters(window_log=27)
    made = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    with pytest.raises(Refusal) as refused:
        decoded("zstd", made.compress(b"x") + made.flush(), 100)
    assert refused.value.reason is Reason.REQUEST_UNREADABLE


@pytest.mark.parametrize("encoding", ["compress", "gzip, what", "gzip; q=1", "aes128gcm", "gzip,gzip,gzip,gzip"])
def test_an_encoding_that_is_not_known_is_said_to_be_none(encoding: str) -> None:
    with pytest.raises(Undecodable):
        Decoder(encoding)
    with pytest.raises(Refusal) as refused:
        decoded(encoding, b"x", 10)
    assert refused.value.reason is Reason.REQUEST_UNREADABLE


@pytest.mark.parametrize("encoding", [None, "", " ", "identity", "Identity, identity", ","])
def test_no_encoding_leaves_the_bytes_as_they_are(encoding: str | None) -> None:
    assert Decoder(encoding).plain
    assert decoded(encoding, b"bytes", 5) == b"bytes"
    with pytest.raises(Refusal) as refused:
        decoded(encoding, b"bytes", 4)
    assert refused.value.reason is Reason.REQUEST_TOO_LARGE


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        (None, "identity"),
        ("", "identity"),
        ("*", "identity"),
        ("compress, dcb;q=0.5", "identity"),
        ("gzip, deflate, br, zstd", "gzip, deflate, br, zstd"),
        ("zstd,gzip", "zstd, gzip"),
        ("GZIP;q=0.5, *;q=0, identity ;q=0", "GZIP;q=0.5, identity ;q=0"),
    ],
)
def test_only_encodings_that_can_be_undone_are_asked_for(asked: str | None, kept: str) -> None:
    assert acceptable(asked) == kept


# of a frame and of a block, of a checksum, and of a frame to be skipped
_MOST_HEADS = 4 + 14 + 3 + 4 + 13


@given(st.lists(st.binary(min_size=1, max_size=200) | st.just(bytes(5_000)), min_size=1, max_size=4), st.booleans())
def test_a_decoder_waits_wherever_a_block_of_zstd_is_open(plain: list[bytes], with_sum: bool) -> None:
    frame = zstandard.ZstdCompressor(write_checksum=with_sum).compressobj()
    body, given_out = b"\x5a\x2a\x4d\x18\x05\x00\x00\x00hello", {0: b""}
    for piece in plain:
        body += frame.compress(piece) + frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        given_out[len(body)] = given_out[max(given_out)] + piece
    body += frame.flush() + zstandard.ZstdCompressor().compress(b"end")
    given_out[len(body)] = b"".join(plain) + b"end"
    decoder, came, last = Decoder("zstd"), b"", 0
    for at, byte in enumerate(body, 1):
        came += b"".join(decoder.feed(bytes([byte])))
        if at in given_out:
            last = at
            assert came == given_out[at] and not decoder.waiting
        else:
            assert decoder.waiting or at - last <= _MOST_HEADS
            assert decoder.waiting or came == given_out[last]
