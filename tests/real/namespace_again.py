"""Running test files again in another process: as another user, on another kind of machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import proctor

HERE = Path(__file__).resolve().parent
NOBODY = 64321
_SOURCES = (Path(proctor.__file__).parent.parent, Path(sysconfig.get_path("purelib")))

# Every folder lies on an overlay, and memory for all takes no programs: as in a container.
CONTAINER = """
set -e
for place in "$TMPDIR" /var/tmp; do
    work=$(mktemp -d -p "$1")
    mkdir "$work/u" "$work/w"
    mount -t overlay overlay -o "lowerdir=$place,upperdir=$work/u,workdir=$work/w" "$place" || exit 77
done
mount -t tmpfs -o noexec,mode=1777 tmpfs /dev/shm
if [ -d "/run/user/$2" ]; then mount -t tmpfs -o noexec,mode=0700,uid="$2" tmpfs "/run/user/$2"; fi
chmod 1777 "$TMPDIR"
user=$2
caps=$3
shift 3
exec setpriv --reuid "$user" --regid "$user" --clear-groups --bounding-set "$caps" -- "$@"
"""
# what root in a container usually keeps, which is no power over mounts
_CAPABILITIES = (
    "chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service net_raw sys_chroot mknod"
    " audit_write setfcap"
)


def python_for(uid: int) -> str:
    """A Python of our version with which the user of that number can import what the tests need; skips without one."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user; the other files ran as an ordinary one already")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    candidates = [str(Path(sys.executable).resolve()), shutil.which(version, path="/usr/local/bin:/usr/bin")]
    for candidate in filter(None, candidates):
        try:
            subprocess.run(
                [candidate, "-c", f"import proctor, pytest; open({str(HERE / 'namespace_bench.py')!r})"],
                env={"PYTHONPATH": os.pathsep.join(map(str, _SOURCES)), "PYTHONDONTWRITEBYTECODE": "1"},
                user=uid,
                group=uid,
                extra_groups=[],
                capture_output=True,
                check=True,
            )
        except (OSError, subprocess.CalledProcessError):
            continue
        return candidate
    pytest.skip("no Python of this version that another user can run, or the sources cannot be read by another user")


def run_again(
    names: Sequence[str],
    uid: int,
    *options: str,
    container: bool = False,
    env: Mapping[str, str] | None = None,
    groups: Sequence[int] = (),
) -> str:
    """The test files of those names pass, run by that user; with `container`, as in one. What they said.

    `env` are further variables of theirs, `groups` are groups in which the user is beside its own.
    """
    python = python_for(uid)
    files = [str(HERE / f"test_{name}.py") for name in names]
    command = [python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *files, *options]
    with tempfile.TemporaryDirectory(prefix="u", dir="/tmp") as folder, tempfile.TemporaryDirectory() as uppers:
        os.chown(folder, uid, uid)
        beside = [f"--groups={','.join(map(str, groups))}"] if groups else ["--clear-groups"]
        become = ["setpriv", "--reuid", str(uid), "--regid", str(uid), *beside, "--"]
        if container:
            caps = ",".join(["-all", *(f"+{name}" for name in _CAPABILITIES.split())])
            become = ["unshare", "--mount", "--propagation", "private", "sh", "-c", CONTAINER]
            become += ["sh", uppers, str(uid), caps]
        done = subprocess.run(
            [*become, *command],
            cwd=HERE.parent.parent,
            env={
                "HOME": folder,
                "TMPDIR": folder,
                "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
                "PYTHONPATH": os.pathsep.join(map(str, _SOURCES)),
                "PYTHONDONTWRITEBYTECODE": "1",
                **(env or {}),
            },
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )
        if done.returncode == 77:
            pytest.skip(f"no overlay can be mounted here: {done.stderr.strip()}")
        assert done.returncode == 0 and " passed" in done.stdout, done.stdout[-6000:] + done.stderr[-2000:]
        # What the tests made may need more patience than the end of the folder's own block has.
        shutil.rmtree(folder, ignore_errors=True)
        Path(folder).mkdir()
        return done.stdout
