"""What the practice model does with a shell: it looks, reads what it is told to read, and follows what it understands.

It looks in this order: the files of the working directory, each skill file that the system prompt names
(`/skills/NAME/SKILL.md`), the files that the task names (absolute paths between backticks). Then it acts, one command
at a time, by all that fits of:

- in the task: "write `TEXT` to `PATH`" and "run `COMMAND`", in this order;
- in a skill file: "when a task says `WORDS`, run `COMMAND`", where the task says these words, in any case;

and where nothing of these fits, by what it knows itself:

- programs in Python that have examples (`examples/NAME.in` with `NAME.out`): it tries small changes, one at a time,
  and keeps the first with which all examples hold;
- scripts `*.sh`, where the task speaks of spaces: it puts bare variables between quotes.

Where nothing fits at all it says so and leaves everything as it is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from proctor.gateway.rules.talk import Move, Talk

TOOL = "shell"
_LIST = "find . -maxdepth 2 -not -path '*/.*' | LC_ALL=C sort | head -n 200"
_SKILL = re.compile(r"/skills/[A-Za-z0-9._-]{1,100}/SKILL\.md")
_PATH = re.compile(r"`(/[A-Za-z0-9._/+-]{1,200})`")
_MOST_READ = 8
_WRITE = re.compile(r"\bwrite `([^`]{1,2000})` to `([^`\n]{1,400})`", re.IGNORECASE)
_RUN = re.compile(r"\brun `([^`]{1,2000})`", re.IGNORECASE)
_RECIPE = re.compile(r"\bwhen a task says `([^`]{1,200})`, run `([^`]{1,2000})`", re.IGNORECASE)
_PROGRAM = re.compile(r"^\./([^/\n]+\.py)$", re.MULTILINE)
_SCRIPT = re.compile(r"^\./([^/\n]+\.sh)$", re.MULTILINE)
_EXAMPLE = re.compile(r"^\./examples/([^/\n]+)\.(in|out)$", re.MULTILINE)
# what stands after white space and is not quoted yet
_QUOTE = r"""s/([[:space:]])(\$[A-Za-z0-9_]+)/\1"\2"/g"""
_MEND = r"""python3 -B - {programs} <<'PROGRAM'
import re, subprocess, sys
from pathlib import Path

CHANGES = [("<", "<="), (">", ">="), ("<=", "<"), (">=", ">"), ("+ 1", "+ 0"), ("- 1", "- 0"), ("max", "min")]


def holds(program):
    run = [sys.executable, "-B", program]
    for example in sorted(Path("examples").glob("*.in")):
        try:
            ran = subprocess.run(run, input=example.read_bytes(), capture_output=True, timeout=5)
        except subprocess.TimeoutExpired:
            return False
        if ran.returncode or ran.stdout != example.with_suffix(".out").read_bytes():
            return False
    return True


def mend(program):
    path = Path(program)
    text = path.read_text()
    for old, new in CHANGES:
        for found in re.finditer(rf"(?<![\w=<>]){{re.escape(old)}}(?![\w=<>])", text):
            path.write_text(text[: found.start()] + new + text[found.end() :])
            if holds(program):
                return f"line {{text[: found.start()].count(chr(10)) + 1}}: {{old}} became {{new}}"
    path.write_text(text)
    return "no small change makes the examples hold"


for program in sys.argv[1:]:
    print(program, "holds" if holds(program) else mend(program), sep=": ")
PROGRAM
"""


def move(talk: Talk) -> Move:
    """The next command, or the last word."""
    looks = _looks(talk)
    steps = looks
    if len(talk.done) >= len(looks):
        steps = [*looks, *_acts(talk, [done.result for done in talk.done[: len(looks)]])]
    if len(talk.done) < len(steps):
        why, command = steps[len(talk.done)]
        return Move(why, TOOL, {"command": command})
    if len(steps) == len(looks):
        return Move("None of my rules fits this task: I leave everything as it is.")
    ends = [done.result.partition("\n")[0] for done in talk.done[len(looks) :]]
    return Move(f"Done. My commands ended so: {'; '.join(ends)}.")


def _looks(talk: Talk) -> list[tuple[str, str]]:
    looks = [("I look around.", _LIST)]
    looks += [(f"I read {path}.", f"cat {path}") for path in dict.fromkeys(_SKILL.findall(talk.system))]
    named = list(dict.fromkeys(_PATH.findall(talk.question)))[:_MOST_READ]
    if named:
        files = " ".join(named)
        show = f'for file in {files}; do if [ -f "$file" ]; then echo "== $file"; head -c 2000 "$file"; fi; done'
        looks.append(("I read what the task names.", show))
    return looks


def _acts(talk: Talk, seen: Sequence[str]) -> list[tuple[str, str]]:
    task = _one_line(talk.question)
    acts = [
        (f"The task says what to write to {path}.", f"printf '%s\\n' {shlex.quote(text)} > {shlex.quote(path)}")
        for text, path in _WRITE.findall(task)
    ]
    acts += [("The task says what to run.", command) for command in _RUN.findall(task)]
    for skill in seen[1:]:
        for words, command in _RECIPE.findall(_one_line(skill)):
            if words.lower() in task.lower():
                acts.append((f"A skill says what to run where a task says {words!r}.", command))
    return acts or _own(task, seen[0])


def _own(task: str, listing: str) -> list[tuple[str, str]]:
    examples = _EXAMPLE.findall(listing)
    programs = _PROGRAM.findall(listing)
    if programs and any((name, "out") in examples for name, kind in examples if kind == "in"):
        return [("I try small changes until the examples hold.", _MEND.format(programs=shlex.join(programs)))]
    scripts = _SCRIPT.findall(listing)
    if scripts and "spaces" in task.lower():
        return [("I put variables between quotes.", f"sed -E -i {shlex.quote(_QUOTE)} -- {shlex.join(scripts)}")]
    return []


def _one_line(text: str) -> str:
    return " ".join(text.split())
