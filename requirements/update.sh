#!/bin/sh
# Makes both lock files anew from pyproject.toml (needs uv). Pins and hashes only: no host names, no paths.
set -eu
cd "$(dirname "$0")"
compile() {
    uv pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 \
        --no-header --no-annotate --no-emit-index-url --no-emit-find-links "$@"
}
compile ../pyproject.toml build.in --output-file run.lock
compile ../pyproject.toml build.in --group ../pyproject.toml:dev --constraints run.lock --output-file dev.lock
