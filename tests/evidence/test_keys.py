"""The operator's key: made once, private, and never shown."""

from __future__ import annotations

import base64
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence import keys, notes


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def refusal(call: Callable[[], object]) -> Refusal:
    with pytest.raises(Refusal) as caught:
        call()
    assert caught.value.reason is Reason.KEY_UNREADABLE
    return caught.value


def test_the_first_use_makes_a_key_and_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "config"
    key, made = keys.load_or_create(folder)
    assert made
    assert mode(folder) == 0o700
    assert mode(folder / keys.KEY_FILE) == 0o600
    assert [p.name for p in folder.iterdir()] == [keys.KEY_FILE]
    assert keys.load_or_create(folder) == (key, False)


def test_what_it_signs_verifies_with_its_vkey(tmp_path: Path) -> None:
    made, _ = keys.load_or_create(tmp_path)
    again, _ = keys.load_or_create(tmp_path)
    text = notes.Checkpoint("proctor/run/abc", 1, bytes(32)).text()
    notes.parse(again.sign(text)).verify(notes.VerifierKey.parse(made.vkey))
    assert again.vkey.startswith(f"{keys.KEY_NAME}+")


def test_two_configuration_folders_have_two_keys(tmp_path: Path) -> None:
    assert keys.load_or_create(tmp_path / "a")[0].fingerprint != keys.load_or_create(tmp_path / "b")[0].fingerprint


def test_many_that_come_first_at_once_get_one_key(tmp_path: Path) -> None:
    barrier = threading.Barrier(8)
    results: list[tuple[keys.OperatorKey, bool]] = []

    def come() -> None:
        barrier.wait(600)
        results.append(keys.load_or_create(tmp_path / "config"))

    threads = [threading.Thread(target=come) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert len(results) == 8
    assert len({key.fingerprint for key, _ in results}) == 1
    assert [made for _, made in results].count(True) == 1
    assert [p.name for p in (tmp_path / "config").iterdir()] == [keys.KEY_FILE]


def test_the_private_half_is_not_shown(tmp_path: Path) -> None:
    key, _ = keys.load_or_create(tmp_path)
    line = (tmp_path / keys.KEY_FILE).read_text()
    secret = line.strip().split("+", 4)[4]
    assert line.startswith(f"PRIVATE+KEY+{keys.KEY_NAME}+") and len(secret) == 44
    (tmp_path / keys.KEY_FILE).write_text(line.replace(keys.KEY_NAME, "another-name"))
    refused = refusal(lambda: keys.load_or_create(tmp_path))
    for shown in (repr(key), str(refused), str(refused.as_record())):
        assert secret[:16] not in shown


def test_only_a_whole_key_of_the_right_kind_is_read(tmp_path: Path) -> None:
    keys.load_or_create(tmp_path)
    path = tmp_path / keys.KEY_FILE
    line = path.read_text().strip()
    head, encoded = line[:-45], line[-44:]
    assert base64.b64decode(encoded)[0] == 1
    other_kind = base64.b64encode(b"\x02" + base64.b64decode(encoded)[1:]).decode()
    for bad in (f"{head}+{other_kind}", line.removeprefix("PRIVATE+KEY+"), line + " " * 5000, line + "\nmore"):
        path.write_text(bad)
        refusal(lambda: keys.load_or_create(tmp_path))
    path.write_text(line)
    assert not keys.load_or_create(tmp_path)[1]


@pytest.mark.parametrize("bits", [0o640, 0o604, 0o660, 0o610, 0o601, 0o777])
def test_a_key_that_others_may_touch_is_refused(tmp_path: Path, bits: int) -> None:
    keys.load_or_create(tmp_path)
    (tmp_path / keys.KEY_FILE).chmod(bits)
    refused = refusal(lambda: keys.load_or_create(tmp_path))
    assert refused.observed == f"mode {bits:04o}"
    assert "chmod 600" in refused.remedy


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"PRIVATE+KEY+",
        b"PRIVATE+KEY+a+b+c",
        b"PRIVATE+KEY+proctor-operator+00000000+AQ==",
        b"\xff\xfe",
        b"PRIVATE+KEY+proctor-operator+00000000+AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        b"proctor-operator+00000000+AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        b"a" * 5000,
    ],
)
def test_a_file_that_holds_no_key_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / keys.KEY_FILE
    path.write_bytes(content)
    path.chmod(0o600)
    assert refusal(lambda: keys.load_or_create(tmp_path)).path == str(path)
    assert path.read_bytes() == content


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder" / keys.KEY_FILE).mkdir(parents=True)
    refusal(lambda: keys.load_or_create(tmp_path / "folder"))
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / keys.KEY_FILE, 0o600)
    refusal(lambda: keys.load_or_create(tmp_path / "pipe"))
    (tmp_path / "nowhere").mkdir()
    (tmp_path / "nowhere" / keys.KEY_FILE).symlink_to(tmp_path / "gone")
    refusal(lambda: keys.load_or_create(tmp_path / "nowhere"))
    (tmp_path / "file").write_text("")
    refusal(lambda: keys.load_or_create(tmp_path / "file"))


def test_where_the_configuration_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert keys.config_dir({"PROCTOR_CONFIG_DIR": "/a", "XDG_CONFIG_HOME": "/b"}) == Path("/a")
    assert keys.config_dir({"PROCTOR_CONFIG_DIR": "", "XDG_CONFIG_HOME": "/b"}) == Path("/b/proctor")
    assert keys.config_dir({"XDG_CONFIG_HOME": "relative"}) == tmp_path / ".config" / "proctor"
    assert keys.config_dir({}) == tmp_path / ".config" / "proctor"
