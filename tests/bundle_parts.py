"""Small bundles for tests: a program of one script, installed as real ones are."""

from __future__ import annotations

import json
from pathlib import Path

from proctor.agents.bundles import InstalledBundle, architecture
from proctor.tasks.tree import read_tree


def make_bundle(folder: Path, name: str, version: str) -> InstalledBundle:
    where = folder / name / f"{version}-{architecture()}"
    (where / "program").mkdir(parents=True)
    start = where / "program/start"
    start.write_text(f'#!/bin/sh\necho "{name} {version}"\n')
    start.chmod(0o755)
    bundle = InstalledBundle(name, version, architecture(), read_tree(where / "program").digest, ("static",), where)
    (where / "bundle.json").write_text(json.dumps(bundle.as_record()))
    return bundle
