"""A file system in memory that only a launcher and what it starts have in sight.

It is mounted in a mount namespace of the launcher's own, so it needs no power over the host, shows in no mount table
there, and is gone with the last process that the launcher started.
"""

from __future__ import annotations

import os

from proctor.sandbox.namespace.launcher import linux, probes

# Files of no size take memory too, which the limit on bytes does not count.
_BYTES_FOR_INODE = 8192


def mount_own(point: str, size: int, *, many_users: bool) -> None:
    """Move this process to a mount namespace of its own, with `size` bytes of memory mounted at `point` there.

    Without `many_users` that takes a user namespace as well. Raises OSError.
    """
    uid, gid = os.geteuid(), os.getegid()
    linux.unshare(linux.CLONE_NEWNS if many_users else linux.CLONE_NEWUSER | linux.CLONE_NEWNS)
    # Else /proc/<pid>/root, by which the runner gets at the files, belongs to root.
    linux.prctl(linux.PR_SET_DUMPABLE, 1)
    if not many_users:
        probes.map_ids(os.getpid(), uid, gid, many_users=False)
    # What the host mounts later is seen, what is mounted here is not.
    linux.mount(None, "/", linux.MS_REC | linux.MS_SLAVE)
    options = f"size={size},nr_inodes={size // _BYTES_FOR_INODE},mode=0700"
    linux.mount("tmpfs", point, linux.MS_NOSUID | linux.MS_NODEV, "tmpfs", options)
