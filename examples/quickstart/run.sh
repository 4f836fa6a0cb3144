#!/bin/sh
# Sets up what is needed (once), runs the quickstart's study and has its evidence checked. Works from any folder, as
# root or as an ordinary user, without Docker and without a key; each time into a run folder of its own under runs/.
# Arguments go to `proctor run`: after a change to the study, `--waive git_dirty` says that it is not committed yet.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
sh "$root/requirements/venv.sh" run
proctor() { "$root/.venv/bin/python" -m proctor "$@"; }

number=1
while [ -e "$root/runs/quickstart-$number" ]; do number=$((number + 1)); done
run=$root/runs/quickstart-$number
mkdir -p "$root/runs"

status=0
proctor run "$root/examples/quickstart/study.toml" --out "$run" --yes "$@" || status=$?
# 1: done, with a trial that could not be graded. The results say which, and are still worth reading.
if [ "$status" -gt 1 ]; then exit "$status"; fi
echo
proctor results "$run"
echo
key=$(proctor keys --json | "$root/.venv/bin/python" -c 'import json, sys; print(json.load(sys.stdin)["fingerprint"])')
proctor verify "$run" --key "$key" || status=$?
echo
echo "The evidence is in $run"
echo "Check it again with: $root/.venv/bin/python -m proctor_verify $run --key $key"
exit "$status"
