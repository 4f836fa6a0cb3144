"""A file system in memory that only a launcher and what it starts have in sight.

It is mounted in a mount namespace of the launcher's own, and that in a user namespace of its own: so it needs no power
over the host, which root in a container lacks too, shows in no mount table there, and is gone with the last process
that the launcher started.
"""

from __future__ import annotations

import errno
import os

from proctor.sandbox.linux import syscalls
from proctor.sandbox.namespace.launcher import probes

# Files of no size take memory too, which the limit on bytes does not count.
_BYTES_FOR_INODE = 8192


def mount_own(point: str, size: int, *, many_users: bool) -> None:
    """Move this process to namespaces of its own, with `size` bytes of memory mounted at `point` there.

    Its ids are those of worlds: 65,536 with `many_users`, else one. Raises OSError.
    """
    _unshare(many_users=many_users)
    # What the host mounts later is seen, what is mounted here is not.
    syscalls.mount(None, "/", syscalls.MS_REC | syscalls.MS_SLAVE)
    options = f"size={size},nr_inodes={size // _BYTES_FOR_INODE},mode=0700"
    syscalls.mount("tmpfs", point, syscalls.MS_NOSUID | syscalls.MS_NODEV, "tmpfs", options)


def _unshare(*, many_users: bool) -> None:
    """Enter new namespaces; a child that stays outside maps the ids, which takes powers there."""
    ours = os.getpid(), os.geteuid(), os.getegid()
    gate_r, gate_w = os.pipe()
    child = os.fork()
    if child == 0:
        code = errno.EIO
        try:
            os.close(gate_w)
            if os.read(gate_r, 1):
                probes.map_ids(*ours, many_users=many_users)
                code = 0
        except OSError as fault:
            code = fault.errno or code
        finally:
            os._exit(code)
    os.close(gate_r)
    try:
        syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNS)
        # Else the maps, and /proc/<pid>/root by which the runner gets at the files, belong to root.
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)
        os.write(gate_w, b"g")
    finally:
        os.close(gate_w)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code != 0:
        raise OSError(code, f"mapping ids: {os.strerror(code)}")
