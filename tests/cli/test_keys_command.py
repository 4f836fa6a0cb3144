"""proctor keys: made on first use, which is said; the private half is never shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROCTOR_CONFIG_DIR", str(tmp_path / "config"))
    return tmp_path / "config"


def test_the_key_is_made_once_and_that_is_said(proctor, config: Path) -> None:
    first, second = proctor("keys"), proctor("keys")
    assert first.status == second.status == 0
    assert "made a signing key" in first.err and not second.err
    assert first.out == second.out
    assert re.search(r"^fingerprint  sha256:[0-9a-f]{64}$", first.out, re.M)
    assert str(config / "operator.key") in first.out


def test_only_the_public_half_is_shown(proctor, config: Path) -> None:
    told = proctor("keys", "--json").json()
    secret = (config / "operator.key").read_text().strip().rpartition("+")[2]
    again = proctor("keys")
    assert secret not in again.out + again.err + str(told)
    assert told == {**told, "made": True, "path": str(config / "operator.key")}
    assert told["vkey"].startswith("proctor-operator+") and told["fingerprint"] in again.out


def test_a_key_that_others_can_read_is_refused(proctor, config: Path) -> None:
    proctor("keys")
    (config / "operator.key").chmod(0o644)
    said = proctor("keys")
    assert said.status == 3 and "key_unreadable" in said.err and "chmod 600" in said.err
