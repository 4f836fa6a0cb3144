#!/usr/bin/env python3
"""top-words N [FILE]: prints the N most frequent words of FILE, or of standard input."""

import re
import sys
from collections import Counter
from pathlib import Path


def main(arguments):
    """Returns the exit status."""
    if not 1 <= len(arguments) <= 2 or not re.fullmatch("0*[1-9][0-9]*", arguments[0], re.ASCII):
        print("usage: top-words N [FILE]", file=sys.stderr)
        return 2
    name = arguments[1] if len(arguments) == 2 else "-"
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        print(f"top-words: {name}: {error.strerror}", file=sys.stderr)
        return 1
    counts = Counter(word.lower().decode() for word in re.findall(rb"[A-Za-z]+", data))
    for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[: int(arguments[0])]:
        print(count, word)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
