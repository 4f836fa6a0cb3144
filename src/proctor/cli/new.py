"""proctor new: a small study that works, to change into your own."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.common import json_option, print_json
from proctor.cli.words import PATH

_STUDY = """\
# One study: which tasks, who works on them, in which arms. Every key: docs/study.md, or `proctor check` on a guess.
# Relative paths start from this file's folder.

[study]
name = "{name}"
question = "Does a hint raise the solve rate?"

[tasks]
path = "tasks"

[agent]
# oracle runs each task's own solution, nop does nothing, command runs a program of yours inside the sandbox:
#   name = "command"
#   command = ["python3", "/agent/solve.py"]   # the instruction is on standard input
#   files = "agent"                            # this folder, put at /agent
# toolloop lets a model work with a shell. It needs a model, and a budget, which `proctor plan --write` works out:
#   name = "toolloop"
# and, as a table of its own (practice is made up inside proctor, and needs no key):
#   [models.practice]
#   provider = "practice"
#   model = "practice-1"
name = "oracle"

# Arms differ in what they say; an empty one is the baseline.
[arms.plain]
[arms.hinted]
prompt = "Hint: one pipeline of standard tools is enough."

[sandbox]
network = "none"

[grading]
solved = "reward >= 1.0"

[stages.main]
epochs = 1          # how often each task is tried in each arm
lanes = 2           # attempts at once
"""
_README = """\
# {name}

`proctor check .` says whether the study would be admitted, `proctor run .` runs it.

`study.toml` says what is run. A task is a folder below `tasks/`: `task.toml`, `instruction.md`, the files it starts
with in `environment/`, its tests in `tests/test.sh`, and a solution that passes them in `solution/solve.sh`.
`proctor tasks check tasks/*` holds each task to that: its own solution passes, and doing nothing fails.
"""
_TASK = """\
schema_version = "1.4"

[task]
name = "{name}/unique-words"
description = "Count the different words of a text."

[metadata]
difficulty = "easy"

[agent]
timeout_sec = 120

[verifier]
timeout_sec = 60

[environment]
workdir = "/app"
network_mode = "no-network"
cpus = 1
memory_mb = 256
"""
_INSTRUCTION = """\
`/app/words.txt` has one word a line. Write to `/app/count.txt` how many different words it has, as one number.
Words that differ only in upper and lower case are the same word.
"""
_WORDS = "apple\nPear\nquince\napple\npear\nplum\nAPPLE\n"
_SOLVE = """\
#!/bin/sh
tr '[:upper:]' '[:lower:]' < /app/words.txt | sort -u | wc -l > /app/count.txt
"""
_TEST = """\
#!/bin/sh
# Whatever happens, a reward is written: without one the attempt would be ungraded.
reward=0
if [ "$(tr -d '[:space:]' < /app/count.txt)" = 4 ]; then
    reward=1
fi
echo "$reward" > /logs/verifier/reward.txt
"""
_FILES = {
    "study.toml": _STUDY,
    "README.md": _README,
    "tasks/unique-words/task.toml": _TASK,
    "tasks/unique-words/instruction.md": _INSTRUCTION,
    "tasks/unique-words/environment/words.txt": _WORDS,
    "tasks/unique-words/solution/solve.sh": _SOLVE,
    "tasks/unique-words/tests/test.sh": _TEST,
}


@click.command(short_help="Write a small study that works")
@click.argument("folder", metavar="DIR", type=PATH)
@json_option
def new(folder: Path, as_json: bool) -> None:
    """Write a small study that works to DIR: a study file, one task, its solution and its tests."""
    from proctor.report.text import command, safe, short_path

    name = _name(folder)
    _write(folder, {path: text.replace("{name}", name) for path, text in _FILES.items()})
    if as_json:
        print_json({"study": str(folder / "study.toml"), "files": sorted(_FILES)})
        return
    shown = short_path(folder)
    click.echo(f"wrote      {safe(shown)}")
    click.echo(f"check it   {safe(command('proctor', 'check', shown))}")
    click.echo(f"run it     {safe(command('proctor', 'run', shown))}")


def _name(folder: Path) -> str:
    """The folder's name with nothing in it that a study's name may not have."""
    import re

    from proctor.core.files import last_name

    return re.sub(r"[^A-Za-z0-9._-]+", "-", last_name(folder)).strip("-._")[:60] or "study"


def _write(folder: Path, files: dict[str, str]) -> None:
    """Write all of them, or none where anything stands there.

    Raises:
        Refusal: `would_overwrite`.
        click.UsageError: nothing can be written there.
    """
    from proctor.core.reasons import Reason
    from proctor.core.refusal import Refusal

    try:
        if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
            raise Refusal(Reason.WOULD_OVERWRITE, "there is something there already", path=str(folder))
        for relative, text in files.items():
            path = folder / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            if path.suffix == ".sh":
                path.chmod(0o755)
    except FileExistsError as error:
        raise Refusal(Reason.WOULD_OVERWRITE, "there is something there already", path=str(error.filename)) from error
    except OSError as error:
        raise click.UsageError(f"{folder} cannot be written: {error.strerror or error}") from error
