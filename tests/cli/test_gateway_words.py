"""proctor gateway: what it is told on its command line, and what it says no to."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("PROCTOR_RUNS", str(tmp_path / "runs"))


@pytest.mark.parametrize(
    "words",
    [
        ("--budget", "1"),
        ("--upstream", "practice"),
        ("--upstream", "practice", "--budget", "1", "--price", "1"),
        ("--upstream", "practice", "--budget", "1", "--port", "65536"),
        ("--upstream", "practice", "--budget", "1", "--api", "soap"),
        ("--upstream", "practice", "--budget", "1", "--mutate", "everything"),
        ("--upstream", "practice", "--budget", "1", "--max-output-tokens", "0"),
    ],
    ids=["no upstream", "no budget", "one price", "port", "format", "mutation", "bound"],
)
def test_words_that_are_none_are_a_usage_error(proctor, words: tuple[str, ...]) -> None:
    said = proctor("gateway", *words)
    assert said.status == 2 and "Usage:" in said.err


def test_all_refusals_are_printed_and_nothing_is_left(proctor, tmp_path: Path) -> None:
    said = proctor("gateway", "--upstream", "openai", "--budget", "-1", "--model", "gpt-4o-mini-hack")
    assert said.status == 3 and not said.out
    for reason in ("money_invalid", "price_unknown", "key_missing"):
        assert f"refused: {reason}" in said.err
    assert not list(tmp_path.iterdir())


def test_a_file_of_somebodys_is_not_overwritten(proctor, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine\n")
    said = proctor("gateway", "--upstream", "practice", "--budget", "1", "--record", tmp_path / "notes")
    assert said.status == 3 and "would_overwrite" in said.err and (tmp_path / "notes").read_text() == "mine\n"
