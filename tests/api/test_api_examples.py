"""The examples of docs/api.md run, in order, and print what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\w+\.py)\n")


def test_the_examples_print_what_the_page_says(tmp_path: Path) -> None:
    blocks = _BLOCK.findall((ROOT / "docs/api.md").read_text(encoding="utf-8"))
    assert {language for language, _ in blocks} == {"python", "text"}
    script, printed = [], []
    for language, text in blocks:
        if language == "text":
            printed.append(text)
        elif named := _FILE.match(text):
            (tmp_path / named[1]).write_text(text, encoding="utf-8")
        else:
            script.append(text)
    assert len(script) > 10 and len(printed) > 8
    (tmp_path / "example.py").write_text("\n".join(script), encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "example.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "XDG_CONFIG_HOME": str(tmp_path / "config")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == "".join(printed).splitlines()
