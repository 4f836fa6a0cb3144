#!/bin/sh
# Sets up what is needed (once), runs the quickstart's study and has its evidence checked. Works from any folder, as
# root or as an ordinary user, without Docker and without a key; each time into a run folder of its own under runs/.
# Arguments go to `proctor run`: after a change to the study, `--waive git_dirty` says that it is not committed yet.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
sh "$root/requirements/venv.sh" run
proctor() { "$root/.venv/bin/proctor" "$@"; }

number=1
while [ -e "$root/runs/quickstart-$number" ]; do number=$((number + 1)); done
run=$root/runs/quickstart-$number
mkdir -p "$root/runs"

status=0
proctor run "$root/examples/quickstart/study.toml" --out "$run" --yes "$@" || status=$?
# 1: done, with a trial that could not be graded. What was printed says which; the evidence is whole, and is checked.
if [ "$status" -gt 1 ]; then exit "$status"; fi

key=$(proctor keys --json | "$root/.venv/bin/python" -c 'import json, sys; print(json.load(sys.stdin)["fingerprint"])')
checked=0
report=$("$root/.venv/bin/python" -P -m proctor_verify "$run" --key "$key") || checked=$?
echo
if [ "$checked" -ne 0 ]; then
    printf '%s\n' "$report"
    exit "$checked"
fi
echo "The second program, which shares no code with the first, re-checked the evidence with your key:"
printf '%s\n' "$report" | tail -n 1
shown=$root/
if [ "$(pwd -P)" = "$(cd "$root" && pwd -P)" ]; then shown=; fi
echo "To look closer: ${shown}.venv/bin/proctor show ${shown}runs/quickstart-$number"
exit "$status"
