"""Fills every place that can be written, with bytes and with names, until each is full or there is enough of it.

A sandbox without a limit on its disk shares the disk of the host: what this writes there stays small.
"""

from __future__ import annotations

from pathlib import Path

_PLACES = ("/app", "/tmp", "/var/tmp", "/logs/agent", "/logs/artifacts", "/logs/verifier", "/root", "/dev/shm", "/run")
_PIECE = b"x" * (1 << 20)
_MOST_PIECES = 128


def main() -> None:
    left = _MOST_PIECES
    for place in _PLACES:
        try:
            Path(place, "names").mkdir(parents=True, exist_ok=True)
            with Path(place, "bytes").open("wb", buffering=0) as file:
                while left:
                    left -= 1
                    file.write(_PIECE)
                    Path(f"{place}/names/{left}").touch()
        except OSError:
            continue


if __name__ == "__main__":
    main()
