"""The `git` program, called so that nothing but what is asked for happens: no prompts, no hooks, no one's settings.

Of the user's own configuration only what lets git in is kept: credential helpers, ssh commands, proxies, certificates,
and folders of other users that are trusted. Everything else (aliases, `insteadOf`, signing, hooks) could make a push
another one than the record says.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# of one git command; a push of a kilobyte that takes longer is taken for one that hangs
DEADLINE_SEC = 30.0
LOCAL_DEADLINE_SEC = 20.0
# of a pack that is fetched: all checkpoints of a run are some hundred kilobytes
_FETCHED_BYTES = 64 * 1024 * 1024
_LIMITED = ("sh", "-c", f'ulimit -f {_FETCHED_BYTES // 512} && exec "$@"', "sh")
# how long a killed git may take to be gone
_GONE_SEC = 5.0
MAX_OUTPUT_BYTES = 1024 * 1024
_WORDS = 300

_KEPT = re.compile(r"(credential|http|ssh)\.|core\.sshcommand$|safe\.directory$", re.IGNORECASE)
_CONFIG_FILES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
_KEPT_VARIABLES = frozenset(
    {
        *("GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_EXEC_PATH"),
        *("GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_CERT", "GIT_SSL_KEY"),
    }
)
_OWN = (
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("commit.gpgSign", "false"),
    ("push.gpgSign", "false"),
    ("push.followTags", "false"),
    ("fetch.recurseSubmodules", "false"),
    # one file, so that the bound of a file is that of all that is fetched
    ("fetch.unpackLimit", "1"),
    ("protocol.version", "2"),
)


@dataclass(frozen=True)
class Done:
    """How a command ended: `return_code` is None where it did not in time, was killed or could not be started."""

    return_code: int | None
    output: bytes
    words: str

    @property
    def ok(self) -> bool:
        """Whether it did what was asked."""
        return self.return_code == 0


class GitProgram:
    """Calls of git from one folder, one at a time; `cancel` from another thread ends the one that goes on."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        """`folder` is where commands start, and must be there before a call; nothing is done here.

        Args:
            environ: the process's own variables, of which what lets git in is kept.
        """
        self._folder = folder
        self._environ = dict(environ)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._cancelled = False
        self._quiet: dict[str, str] | None = None
        self._config: int | None = None

    def call(
        self,
        *args: str,
        deadline_sec: float,
        repository: Path | None = None,
        given: bytes = b"",
        variables: Mapping[str, str] | None = None,
    ) -> Done:
        """Run one command, and all that it starts, to its end or the deadline. Raises nothing of git's."""
        if self._quiet is None:
            self._quiet = _quiet(self._environ, self._kept(deadline_sec))
        # one that is to be made lies nowhere yet; other commands must not find any that they were not told of
        where = [] if args[0] == "init" else ["--git-dir", str(repository or os.devnull)]
        return self._run([*where, *args], {**self._quiet, **(variables or {})}, deadline_sec, given)

    def cancel(self) -> None:
        """End the command that goes on; every later one fails at once."""
        with self._lock:
            self._cancelled = True
            if self._process is not None:
                _kill(self._process)

    def _run(self, args: Sequence[str], environment: Mapping[str, str], deadline_sec: float, given: bytes) -> Done:
        with self._lock:
            if self._cancelled:
                return Done(None, b"", "it was cancelled")
            try:
                # a session of its own: no terminal to ask on, and one group to kill
                process = subprocess.Popen(
                    # what another machine sends must not fill this one's disk
                    [*(_LIMITED if "fetch" in args else ()), "git", *args],
                    cwd=self._folder,
                    env=dict(environment),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
            except OSError as error:
                return Done(None, b"", f"git cannot be started: {error.strerror or error}")
            self._process = process
        try:
            output, errors = process.communicate(given, timeout=deadline_sec)
        except subprocess.TimeoutExpired:
            _kill(process)
            _let_go(process)
            return Done(None, b"", f"git did not answer within {deadline_sec:.0f} seconds")
        finally:
            with self._lock:
                self._process = None
        words = _told(errors)
        if process.returncode < 0:
            return Done(None, b"", words or f"git was ended by signal {-process.returncode}")
        if len(output) > MAX_OUTPUT_BYTES:
            return Done(None, b"", "git said more than was asked")
        return Done(process.returncode, output, words)

    def close(self) -> None:
        """Let go of what commands read."""
        if self._config is not None:
            os.close(self._config)
            self._config = None

    def _kept(self, deadline_sec: float) -> str:
        """A file with the settings of the user and the system that are kept: in memory, for there may be secrets."""
        own = {name: value for name, value in self._environ.items() if not name.startswith("GIT_CONFIG")}
        own |= {name: self._environ[name] for name in _CONFIG_FILES if name in self._environ}
        listed = self._run(["config", "--list", "--includes", "-z"], {**own, "GIT_DIR": os.devnull}, deadline_sec, b"")
        pairs = [each.partition("\n") for each in listed.output.decode("utf-8", "surrogateescape").split("\0") if each]
        # a name alone means true
        named = [(name, value if divided else "true") for name, divided, value in pairs]
        text = "".join(_setting(name, value) for name, value in named if _KEPT.match(name))
        self._config = os.memfd_create("git-config", os.MFD_CLOEXEC)
        with open(self._config, "wb", closefd=False) as file:
            file.write(text.encode("utf-8", "surrogateescape"))
        # the other end of a push to a path reads it too, where variables do not get
        return f"/proc/{os.getpid()}/fd/{self._config}"


def _setting(name: str, value: str) -> str:
    """One setting as a configuration file has it."""
    section, _, rest = name.partition(".")
    within, _, key = rest.rpartition(".")
    head = f'[{section} "{_escaped(within)}"]' if within else f"[{section}]"
    shown = _escaped(value).replace("\n", "\\n").replace("\t", "\\t")
    return f'{head}\n\t{key} = "{shown}"\n'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _quiet(environ: Mapping[str, str], config: str) -> dict[str, str]:
    """The variables of every command."""
    kept = {
        name: value
        for name, value in environ.items()
        if name in _KEPT_VARIABLES or not name.startswith(("GIT_", "SSH_ASKPASS"))
    }
    kept |= {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS_REQUIRE": "never",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": config,
        "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        # not in that file: a repository on this machine has hooks of its own, and they are its business
        "GIT_CONFIG_COUNT": str(len(_OWN)),
    }
    for number, (name, value) in enumerate(_OWN):
        kept[f"GIT_CONFIG_KEY_{number}"], kept[f"GIT_CONFIG_VALUE_{number}"] = name, value
    return kept


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def _let_go(process: subprocess.Popen[bytes]) -> None:
    try:
        process.communicate(timeout=_GONE_SEC)
    except subprocess.TimeoutExpired:
        # in the kernel, for a file system that does not answer: its pipes must not be waited for
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def _told(errors: bytes) -> str:
    """What git said, on one line for people: never anything to decide by."""
    said = "; ".join(line.strip() for line in errors.decode("utf-8", "replace").splitlines() if line.strip())
    return "".join(char if char.isprintable() else "?" for char in said)[:_WORDS]
