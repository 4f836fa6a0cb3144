#!/bin/sh
# venv.sh run|dev: makes .venv at the root of the repository (once) and installs requirements/<run|dev>.lock and the
# project into it. Quick where nothing changed. Needs Python 3.11 or newer; PYTHON names one.
set -eu
cd "$(dirname "$0")/.."
lock=requirements/$1.lock
say() { printf '%s\n' "$*" >&2; }

# A virtual environment holds its own path: one that this script made, and that was moved since, is made anew.
for mark in .venv/.installed-*; do
    if [ -f "$mark" ] && [ "$(sed -n 2p "$mark")" != "$PWD" ]; then rm -rf .venv; fi
done
# A .venv whose interpreter is gone (or too old) would fail later, and less clearly.
fits() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
if [ -e .venv ] && ! fits .venv/bin/python; then
    say "venv.sh: .venv has no working Python 3.11 or newer; remove that folder and try again"
    exit 1
fi
if [ ! -e .venv ]; then
    found=
    for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
        if fits "$candidate"; then found=$candidate; break; fi
    done
    if [ -z "$found" ]; then
        say "venv.sh: no Python 3.11 or newer was found (set PYTHON to one)"
        exit 1
    fi
    if ! "$found" -c 'import ensurepip, venv' 2>/dev/null; then
        say "venv.sh: $found lacks the venv module. On Debian and Ubuntu, as root: apt-get install python3-venv"
        exit 1
    fi
    say "Making .venv with $("$found" --version)"
    if ! "$found" -m venv .venv >&2; then rm -rf .venv; exit 1; fi
fi

stamp=.venv/.installed-$1
now=$(cat "$lock" pyproject.toml | cksum; pwd)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$now" ]; then exit 0; fi
say "Installing $lock (once; a minute or so)"
pip() { .venv/bin/python -m pip --disable-pip-version-check --quiet "$@" >&2; }
.venv/bin/python -m pip --version >/dev/null 2>&1 || .venv/bin/python -m ensurepip >&2
pip install --require-hashes --requirement "$lock"
# What builds the project is in the lock too, so nothing is fetched here. Editable: changes count at once.
pip install --no-deps --no-build-isolation --editable .
printf '%s\n' "$now" >"$stamp"
