"""How scripts and commands of a task are run: by bash where its world has it, as the formats say; by sh elsewhere."""

from __future__ import annotations

# `sh -c` with these takes one word more: the script's path, or the command's text
RUN_FILE = 'if command -v bash >/dev/null 2>&1; then exec bash "$1"; else exec sh "$1"; fi'
RUN_TEXT = 'if command -v bash >/dev/null 2>&1; then exec bash -c "$1"; else exec sh -c "$1"; fi'
