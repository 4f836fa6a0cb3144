"""A small study folder for tests: what a user would have on disk."""

from __future__ import annotations

from pathlib import Path

from proctor.core.reasons import Reason
from proctor.study.load import LoadedStudy

SMALL = """
[study]
name = "small"

[tasks]
path = "tasks"

[agent]
name = "command"
command = "python3 /agent/solve.py"
files = "agent"

[arms.plain]
[arms.skilled]
skills = "packs/mentor"
"""

WHOLE = """
[study]
name = "gravity-hints"
question = "Do hints about units help?"

[[hypothesis]]
id = "H1"
stage = "full"
endpoint = "solved"
compare = ["hinted", "bare"]
test = "sign-flip"
direction = "greater"
alpha = 0.025

[tasks]
path = "tasks"
questions = "rows.jsonl"
include = ["phys-*"]
where = { difficulty = "easy" }
slice = "0:10"
pull = "always"

[draw]
seed = 41

[models.moon]
provider = "openai"
model = "moon-1"
effort = "low"
max_output_tokens = 1000
request_timeout = "1m30s"
base_url = "https://models.example/v1"
api_key_env = "MOON_KEY"
rate = { rpm = 10, tpm = 1000 }
price = { input = "1.25", output = "10.00", cache_read = "0.125", per = "1M", source = "price page" }

[agent]
name = "toolloop"
expect_version = "1.2"
timeout = "2h"
idle_timeout = "10m"
[agent.pacing]
improvement = "until_deadline"
max_passes = 6
finish_share = 0.15
stall_rounds = 12

[arms.bare]
[arms.hinted]
skills = "packs/mentor"
prompt = { file = "hint.md" }
environment = "lab@1"
tools = ["calc"]
model = { effort = "high" }
[arms.hinted.config.sandbox]
memory = "1 GiB"

[tools.calc]
python = "calc.engine:run"
pool = 2
[tools.web]
provider_side = "web_search"
price = { unit = "call", usd = "0.010", source = "price page" }
[arm_profiles.hinted]
forbids = ["web"]

[sandbox]
kind = "docker"
network = "allowlist"
cpus = 1.5
memory = "4 GiB"
storage = "1.5 GiB"
pids = 200
rootfs = "roots/plain"
[sandbox.substitute]
"python:3.13-slim" = "roots/plain"
[[sandbox.protected]]
path = "/reference"
allow = ["execute"]

[grading]
solved = "reward >= 0.5"
scorer = "number"
duplicate_tests = "last"
verifier_timeout = "10m"
retries = 1

[scoring]
build = "2026.11"
exclusions = "left-out.json"
judge = "moon"

[stages.pilot]
[stages.full]
type = "calibration"
after = [{ stage = "pilot", run = "../pilot", design_sha256 = "ZEROS", inherit = ["tasks"] }]
roster = "open"
models = ["moon"]
arms = ["bare", "hinted"]
epochs = 3
fork_at = "env-ready"
capture = ["pre-verify"]
keep_snapshots = true
lanes = 2
deadline = "6h"
replacements = 2
[stages.full.model_arms]
moon = ["bare"]
[stages.full.budget]
spent_before = "0"
allocation = "145.00"
cap = "150.00"
margin = "25.00"
cap_quantum = "0.01"
reserve_quantum = "0.001"
reserve_factor = 3
[stages.full.expected_costs]
moon = "36.20"
[stages.full.caps]
moon = "145.00"
[stages.full.reserves]
moon = "0.302"

[stopping]
rule = "e-value"
alpha = 0.05

[anchor]
git = "file:///srv/anchors.git"
every = "10m"
required = true

[prior_spend]
amount = "3.50"
source = "invoice 7"
sha256 = "ZEROS"
""".replace("ZEROS", "0" * 64)


def make(folder: Path, text: str = SMALL) -> Path:
    """Write the study and everything that it may name; returns the folder."""
    for name in ("tasks", "agent", "packs/mentor/units", "packs/mentor/signs", "roots/plain"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "study.toml").write_text(text)
    (folder / "agent/solve.py").write_text("print('solved')\n")
    (folder / "packs/mentor/units/SKILL.md").write_text("Check the units.\n")
    (folder / "packs/mentor/signs/SKILL.md").write_text("Check the signs.\n")
    (folder / "hint.md").write_text("Mind the units.\n")
    (folder / "rows.jsonl").write_text("")
    (folder / "left-out.json").write_text("{}")
    return folder


def problems(loaded: LoadedStudy) -> list[tuple[Reason, str | None]]:
    """What is wrong with a study: reason and place of each refusal."""
    return [(refusal.reason, refusal.path) for refusal in loaded.refusals]


def with_lines(table: str, *lines: str) -> str:
    """The small study with lines added to a table of it, or with a new table."""
    head = f"[{table}]\n"
    body = "\n".join(lines) + "\n"
    return SMALL.replace(head, head + body) if head in SMALL else f"{SMALL}\n{head}{body}"
