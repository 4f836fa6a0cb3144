"""Words around a command, for what the engine alone cannot: both outputs in one pipe, and servers that stay.

What a wrapper has to say goes where the command's standard error does, marked by a word that the command does not know.
"""

from __future__ import annotations

from collections.abc import Sequence

# What cannot start says so; a shell would only exit by 126 or 127, as commands do too.
_BEGIN = r"""mark=$1
shift
cannot() { printf '\n%s cannot %s\n' "$mark" "$1" >&2; exit 127; }
case $1 in
*/*)
  [ -d "$1" ] && cannot "$1: is a folder"
  [ -e "$1" ] || cannot "$1: not found"
  [ -x "$1" ] || cannot "$1: permission denied" ;;
*) command -v "$1" >/dev/null || cannot "$1: not found" ;;
esac
"""
# one pipe takes both outputs, or their order would be lost on the way
_JOINED = _BEGIN + 'exec "$@" 2>&1'
# The engine closes the pipes two seconds after its own process ended, and a server that writes to one then dies of it:
# so that process stays, and says by itself that the command ended.
_LEAVING = (
    _BEGIN
    + r"""exec 3<&0 4>&2
"$@" <&3 3<&- 4>&- TOGETHER &
wait $!
printf '\n%s ended %s\n' "$mark" $? >&4
exec sleep 2147483647 <&- 3<&-"""
)
_MOST_LINE = 10_000


def wrapped(argv: Sequence[str], mark: str, *, joined: bool, leaving: bool) -> list[str]:
    """The command as the engine runs it: as it is, where nothing is to be added."""
    if not joined and not leaving:
        return list(argv)
    script = _LEAVING.replace("TOGETHER", "2>&1" if joined else "") if leaving else _JOINED
    return ["sh", "-c", script, "sh", mark, *argv]


class Report:
    """What a wrapper said: the command's `code`, or why it cannot start."""

    def __init__(self, mark: str, *, alone: bool = False) -> None:
        """`alone`: nothing else comes on standard error, so whatever does is the engine's, which could not start it."""
        self._alone = alone
        self._mark = f"\n{mark} ".encode()
        self._held = b""
        self.code: int | None = None
        self.cannot: str | None = None

    def take(self, data: bytes) -> bytes:
        """What of a piece of standard error is the command's own; the rest may be held back until more comes."""
        own = self._own(data)
        if own and self._alone and self.cannot is None:
            self.cannot = own[:_MOST_LINE].decode("utf-8", "replace").strip()
        return own

    def _own(self, data: bytes) -> bytes:
        data = self._held + data
        self._held = b""
        at = data.find(self._mark)
        if at < 0:
            kept = next((n for n in range(len(self._mark) - 1, 0, -1) if data.endswith(self._mark[:n])), 0)
            self._held = data[len(data) - kept :]
            return data[: len(data) - kept]
        line, end, rest = data[at + len(self._mark) :].partition(b"\n")
        if not end and len(line) < _MOST_LINE:
            self._held = data[at:]
            return data[:at]
        self._understand(line.decode("utf-8", "replace"))
        return data[:at] + rest

    def rest(self) -> bytes:
        """What was held back, at the end."""
        held, self._held = self._held, b""
        return held

    def _understand(self, line: str) -> None:
        what, _, value = line.partition(" ")
        if what == "ended" and value.isdecimal():
            self.code = int(value[:4])
        elif what == "cannot":
            self.cannot = value
