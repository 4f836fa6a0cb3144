"""proctor attest: what it signs, what it refuses, and timestamps from a real authority."""

from __future__ import annotations

import asyncio
import base64
import json
import shlex
import shutil
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from in_toto_attestation.v1.statement import Statement, spb
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

from proctor.evidence.keys import OperatorKey, load_or_create
from run_parts import Story, Try, make_run
from timestamp_authority import Authority, listening

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
STORY = Story(tries={("alpha", "plain"): (Try(reward="0.5"),)})


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def key(home: Path) -> OperatorKey:
    return load_or_create(home / "config")[0]


@pytest.fixture(scope="module")
def made(home: Path, key: OperatorKey) -> Path:
    asyncio.run(make_run(home / "made", story=STORY, end=0, key=key))
    return home / "made"


@pytest.fixture
def own(made: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of the operator whose key is in the configuration folder."""
    monkeypatch.setenv("PYTHONPATH", str(SRC))
    monkeypatch.setenv("PROCTOR_CONFIG_DIR", str(home / "config"))
    shutil.copytree(made, tmp_path / "own")
    return tmp_path / "own"


@pytest.fixture(scope="module")
def authority(home: Path) -> Iterator[Authority]:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to be an authority")
    (home / "tsa").mkdir()
    made = Authority(home / "tsa")
    made.make()
    with listening(made) as up:
        yield up


@pytest.fixture
def kind(authority: Authority) -> Iterator[Authority]:
    """The authority as it should be; what a test changes is put back."""
    yield authority
    authority.status, authority.answer, authority.location = 200, None, None


def statement(file: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(base64.b64decode(json.loads(file.read_bytes())["payload"]))
    return said


def test_what_is_attested_verifies_with_and_without_the_run(
    proctor, own: Path, key: OperatorKey, tmp_path: Path
) -> None:
    file = tmp_path / "x.dsse.json"
    made = proctor("attest", own, "-o", file)
    assert made.out == f"{file}\n"
    assert proctor(*shlex.split(made.err.splitlines()[-1])[2:]).status == 0, "as it says that it is checked"
    for more in ([], [own]):
        said = proctor("verify", file, *more, "--key", key.fingerprint, "--json")
        assert said.status == 0 and said.json()["exit_status"] == 0
    statuses = [check["status"] for check in said.json()["checks"]]
    assert statuses == [*["pass"] * 5, "not applicable"], "no anchor is asked"
    named = {each["name"] for each in statement(file)["subject"]}
    assert {"design.json", "summary.json", "grade_summary.json"} < named and len(named) == 4
    assert statement(file)["predicate"]["verification"]["checks"]["key.trust"] == "pass"


def test_the_forms_are_those_of_their_makers(proctor, own: Path, key: OperatorKey, tmp_path: Path) -> None:
    file = tmp_path / "x.dsse.json"
    record = proctor("attest", own, "-o", file, "--json").json()
    envelope = Envelope.from_dict(json.loads(file.read_bytes()))
    public = SSlibKey.from_crypto(key.private.public_key(), keyid=key.fingerprint)
    assert list(envelope.verify([public], 1)) == [key.fingerprint]
    read = Statement.copy_from_pb(json_format.Parse(envelope.payload, spb.Statement()))
    read.validate()
    assert read.pb.predicate_type == "urn:proctor:run:v1"
    assert record == {"path": str(file), "timestamp": None, "statement": statement(file)}


def test_another_run_is_not_the_one(proctor, own: Path, key: OperatorKey, tmp_path: Path) -> None:
    file = tmp_path / "x.dsse.json"
    proctor("attest", own, "-o", file)
    asyncio.run(make_run(tmp_path / "other", story=STORY, end=0, key=key))
    said = proctor("verify", file, tmp_path / "other", "--key", key.fingerprint, "--json").json()
    assert [check["check"] for check in said["checks"] if check["status"] == "fail"] == [
        "attestation.subjects",
        "attestation.run",
    ]
    assert proctor("verify", own, own).status == 2


def test_what_does_not_hold_is_not_attested(proctor, own: Path, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.dsse.json"
    asyncio.run(make_run(tmp_path / "theirs", story=STORY, end=0))
    theirs = proctor("attest", tmp_path / "theirs", "-o", file)
    assert theirs.status == 3 and "key.trust" in theirs.err
    asyncio.run(make_run(tmp_path / "open", story=STORY, end=None, key=load_or_create(home / "config")[0]))
    going = proctor("attest", tmp_path / "open", "-o", file)
    assert going.status == 3 and "run.ended" in going.err
    (own / "summary.json").write_bytes(b"{}")
    assert "files.digests" in proctor("attest", own, "-o", file).err
    assert not file.exists()
    assert proctor("attest", tmp_path / "nothing", "-o", file).status == 2


def test_without_the_extra(proctor, own: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "securesystemslib.dsse", None)
    said = proctor("attest", own, "-o", tmp_path / "x")
    assert said.status == 3 and "extra_missing" in said.err and not (tmp_path / "x").exists()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert f"-m pip install {shlex.join(sorted(extras['attest']))}`" in said.err


def test_a_timestamp_over_the_checkpoint(proctor, own: Path, kind: Authority, tmp_path: Path) -> None:
    file = tmp_path / "x.dsse.json"
    said = proctor("attest", own, "-o", file, "--timestamp", kind.url, "--timestamp-root", kind.roots)
    assert said.status == 0, said.err
    answer = tmp_path / "x.dsse.json.tsr"
    assert said.out == f"{file}\n{answer}\n"
    note = max((own / "checkpoints").glob("*.note"))
    assert kind.verify(note, answer)
    assert not kind.verify(own / "design.json", answer)
    assert statement(file)["predicate"]["timestamp"]["time"].startswith("20")
    assert proctor("verify", file, own).status == 0


def test_an_authority_that_gives_no_timestamp(proctor, own: Path, kind: Authority, tmp_path: Path) -> None:
    def asked(url: str, roots: Path) -> None:
        said = proctor("attest", own, "-o", tmp_path / "x", "--timestamp", url, "--timestamp-root", roots)
        assert said.status == 3 and "timestamp_failed" in said.err, said.err
        assert not (tmp_path / "x").exists()

    asked("http://127.0.0.1:1/", kind.roots)
    asked("file:///etc/hostname", kind.roots)
    asked("nonsense", kind.roots)
    asked(kind.url, own / "design.json")
    asked(kind.url, tmp_path / "nothing")
    kind.status = 500
    asked(kind.url, kind.roots)
    kind.status, kind.location = 302, kind.url
    asked(kind.url, kind.roots)
    kind.status, kind.location = 200, None
    for answer in (b"", b"no timestamp", b"\x30" * 2_000_000):
        kind.answer = answer
        asked(kind.url, kind.roots)
    assert proctor("attest", own, "-o", tmp_path / "x", "--timestamp", kind.url).status == 2


def test_an_authority_that_never_answers(
    proctor, own: Path, kind: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("proctor.evidence.timestamps.DEADLINE_SEC", 0.2)
    kind.silent = threading.Event()
    said = proctor("attest", own, "-o", tmp_path / "x", "--timestamp", kind.url, "--timestamp-root", kind.roots)
    kind.silent.set()
    kind.silent = None
    assert said.status == 3 and "timestamp_failed" in said.err and "0.2 seconds" in said.err


def test_a_timestamp_of_something_else_or_from_somebody_else(
    proctor, own: Path, kind: Authority, tmp_path: Path
) -> None:
    proctor("attest", own, "-o", tmp_path / "a", "--timestamp", kind.url, "--timestamp-root", kind.roots)
    words = ("attest", own, "-o", tmp_path / "b", "--timestamp", kind.url, "--timestamp-root")
    # an earlier answer, played again: its nonce is another's
    kind.answer = (tmp_path / "a.tsr").read_bytes()
    assert "timestamp_failed" in proctor(*words, kind.roots).err
    kind.answer = None
    (tmp_path / "strange").mkdir()
    stranger = Authority(tmp_path / "strange")
    stranger.make()
    assert "timestamp_failed" in proctor(*words, stranger.roots).err
    assert proctor(*words, kind.roots).status == 0
