"""Which process is meant, also after its number was given to another: by the machine's boot and when it started."""

from __future__ import annotations

from pathlib import Path


def boot() -> str | None:
    """This boot of the machine; None where the kernel does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def started(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when it does not run, or only waits to be waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
