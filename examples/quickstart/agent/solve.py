"""A toy agent: a few rules, no model. It shows what a study does, not what an agent can do.

The instruction comes on standard input, the task lies in the working directory, and skills (if the arm has any) lie in
/skills. It mends a Python program by trying small changes until the examples hold, quotes variables in shell scripts,
converts an export of orders, and writes one kind of command-line program. It cannot read prose: the conventions of
the house are known to it only where a skill file lists them. Where no rule fits it says so and does nothing.
"""

import csv
import json
import re
import subprocess
import sys
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

SKILLS = Path("/skills")
CONVENTION = re.compile(r"^- \*\*(?P<name>[^*]+)\*\*: `(?P<value>[^`]+)`", re.MULTILINE)
CHANGES = [("<", "<="), (">", ">="), ("<=", "<"), (">=", ">"), ("+ 1", "+ 0"), ("- 1", "- 0"), ("max", "min")]


def conventions():
    """What skill files list as `- **name**: `value``; nothing without skills."""
    found = {}
    for skill in sorted(SKILLS.glob("*/SKILL.md")):
        print(f"reading {skill}")
        found.update(CONVENTION.findall(skill.read_text(encoding="utf-8")))
    return found


def mend_program(program, examples):
    """Tries one small change at a time, and keeps the first with which every example gives its output."""
    original = program.read_text(encoding="utf-8")
    for old, new in CHANGES:
        for match in re.finditer(rf"(?<![\w=<>]){re.escape(old)}(?![\w=<>])", original):
            program.write_text(original[: match.start()] + new + original[match.end() :], encoding="utf-8")
            if all(gives(program, example) for example in examples):
                line = original[: match.start()].count("\n") + 1
                return f"{program}: line {line}: `{old}` became `{new}`"
    program.write_text(original, encoding="utf-8")
    return f"{program}: no small change makes the examples hold"


def gives(program, example):
    """Whether the program gives the example's output for its input."""
    command = [sys.executable, "-B", str(program)]
    with example.open("rb") as stdin:
        try:
            ended = subprocess.run(command, stdin=stdin, capture_output=True, timeout=5)
        except subprocess.TimeoutExpired:
            return False
    return ended.returncode == 0 and ended.stdout == example.with_suffix(".out").read_bytes()


def quote_variables(script):
    """Puts every bare `$name` of a shell script between double quotes."""
    text = script.read_text(encoding="utf-8")
    script.write_text(re.sub(r"(?<=[\s])(\$\w+)(?=[\s/;])", r'"\1"', text), encoding="utf-8")
    return f"{script}: variables are quoted"


def convert_orders(export, known):
    """Writes orders.json; days, rounding and what is left out follow the conventions where they are known."""
    orders = []
    with export.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter=";"):
            if row["status"] == known.get("left out"):
                continue
            quantity, price = row["quantity"], row["unit_price"]
            if known.get("rounding") == "half up":
                total = str((Decimal(quantity) * Decimal(price)).quantize(Decimal("0.01"), ROUND_HALF_UP))
            else:
                total = f"{int(quantity) * float(price):.2f}"
            day, month, year = (int(part) for part in row["date"].split("."))
            date = known.get("day", "{day}.{month}.{year}").format(day=day, month=month, year=year)
            customer = row["customer"].strip()
            orders.append(
                {"id": int(row["id"]), "date": date, "customer": customer, "items": int(quantity), "total": total}
            )
    orders.sort(key=lambda order: order["id"])
    target = export.with_suffix(".json")
    target.write_text(json.dumps(orders, ensure_ascii=False, indent=1), encoding="utf-8")
    return f"{target}: {len(orders)} orders"


WORD_COUNTER = """#!/usr/bin/env python3
import re
import sys
from collections import Counter


def usage():
    print("usage: {name} N [FILE]", file=sys.{usage_stream})
    sys.exit({usage_status})


if not 2 <= len(sys.argv) <= 3 or not re.fullmatch("0*[1-9][0-9]*", sys.argv[1], re.ASCII):
    usage()
name = sys.argv[2] if len(sys.argv) == 3 else "-"
try:
    data = sys.stdin.buffer.read() if name == "-" else open(name, "rb").read()
except OSError as error:
    sys.exit(f"{name}: {{error}}")
counts = Counter(word.lower().decode() for word in re.findall(rb"[A-Za-z]+", data))
for word, count in sorted(counts.items(), key=lambda item: {order})[: int(sys.argv[1])]:
    print(count, word)
"""


def write_word_counter(program, known):
    """Writes a program that counts words; how it refuses and orders follows the conventions where they are known."""
    text = WORD_COUNTER.format(
        name=program.name,
        usage_stream=known.get("usage stream", "stdout"),
        usage_status=known.get("usage status", "1"),
        order="(-item[1], item[0])" if known.get("equal counts") == "alphabetical" else "-item[1]",
    )
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    return f"{program}: written"


def main():
    """Tries the rules in order and says what was done."""
    instruction = sys.stdin.read()
    here = Path.cwd()
    known = conventions()
    examples = sorted(here.glob("examples/*.in"))
    scripts = sorted(here.glob("*.sh"))
    counter = re.search(r"command-line program `(/\S+)`.*most frequent words", instruction, re.DOTALL)
    if examples:
        print(*(mend_program(program, examples) for program in sorted(here.glob("*.py"))), sep="\n")
    elif scripts:
        print(*(quote_variables(script) for script in scripts), sep="\n")
    elif (here / "orders.csv").is_file():
        print(convert_orders(here / "orders.csv", known))
    elif counter:
        print(write_word_counter(Path(counter[1]), known))
    else:
        print("no rule fits this task: nothing done")


if __name__ == "__main__":
    main()
