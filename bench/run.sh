#!/bin/sh
# Runs every benchmark and keeps what they printed in docs/figures.md, if all of them ran. A machine that does nothing
# else meanwhile gives the best figures; ratios within one run hold anywhere.
set -eu
cd "$(dirname "$0")/.."
sh requirements/venv.sh dev
export PYTHONPATH=src:tests:tests/verify
cache=${XDG_CACHE_HOME:-$HOME/.cache}/proctor
inspect=$cache/inspect/bin/inspect
if [ ! -x "$inspect" ]; then
    # what `proctor --help` is compared with; in a place of its own, so that neither brings the other anything
    rm -rf "$cache/inspect"
    mkdir -p "$cache"
    .venv/bin/python -m venv "$cache/inspect"
    "$cache/inspect/bin/python" -m pip --quiet --disable-pip-version-check install inspect-ai >&2
fi
litellm=$cache/litellm/bin/litellm
if [ ! -x "$litellm" ]; then
    rm -rf "$cache/litellm"
    mkdir -p "$cache"
    .venv/bin/python -m venv "$cache/litellm"
    # where it cannot be had the gateway is compared with the bare pass-through alone, which is said
    "$cache/litellm/bin/python" -m pip --quiet --disable-pip-version-check install 'litellm[proxy]' >&2 || true
fi

figures=$(mktemp)
trap 'rm -f "$figures"' EXIT
cat >"$figures" <<TEXT
# Figures

What the scripts below printed when they last ran together (\`bench/run.sh\`, $(nproc) cores, $(uname -sr | cut -d. -f1,2),
$(.venv/bin/python --version)). Absolute figures are that machine's; ratios, taken within one run, are what to compare.
TEXT
for bench in bench/*.py; do
    echo "== $bench"
    case $bench in
    bench/startup.py) set -- "$inspect" ;;
    bench/gateway.py) set -- "$litellm" ;;
    bench/rows.py) set -- "$cache/inspect/bin/python" ;;
    bench/verify.py) set -- ${PROCTOR_BENCH_LARGE:+--large} ;;
    *) set -- ;;
    esac
    printed=$(.venv/bin/python "$bench" "$@")
    printf '%s\n' "$printed"
    printf '\n## `%s`\n\n```\n%s\n```\n' "$bench" "$printed" >>"$figures"
done
cp "$figures" docs/figures.md
echo "docs/figures.md holds these figures"
