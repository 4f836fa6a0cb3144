#!/bin/sh
set -eu
python3 - <<'PYTHON'
import re

LINE = re.compile(r"\S+ [A-Z]+ (/[^ ?]*)(?:\?\S*)? ([1-5][0-9]{2}) ([0-9]+)")

paths, broken = {}, 0
with open("/app/access.log", encoding="utf-8") as file:
    for line in file.read().split("\n")[:-1]:
        match = LINE.fullmatch(line)
        if match is None:
            broken += 1
            continue
        path, status, milliseconds = match.groups()
        paths.setdefault(path, []).append((int(milliseconds), int(status)))

rows = []
for path, requests in paths.items():
    times = sorted(time for time, _ in requests)
    errors = sum(status >= 500 for _, status in requests)
    rank = lambda percent: times[-(-percent * len(times) // 100) - 1]
    rows.append((path, len(requests), errors, rank(50), rank(95)))
with open("/app/report.txt", "w", encoding="utf-8") as file:
    for row in sorted(rows, key=lambda row: (-row[4], row[0])):
        print(*row, file=file)
    print("broken", broken, file=file)
PYTHON
