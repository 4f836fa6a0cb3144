"""Tries what no program inside may do. Prints JSON: a list of what was tried and how it ended; "done" is a breach."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
# numbers of x86_64
_CALLS: dict[str, tuple[int, ...]] = {
    "mount": (165, 0, 0, 0, 0, 0),
    "umount2": (166, 0, 0),
    "pivot_root": (155, 0, 0),
    "fsopen": (430, 0, 0),
    "open_tree": (428, -100, 0, 1),
    "move_mount": (429, -1, 0, -1, 0, 0),
    "mount_setattr": (442, -1, 0, 0, 0, 0),
    "swapon": (167, 0, 0),
    "reboot": (169, 0xFEE1DEAD, 672274793, 0, 0),
    "sethostname": (170, 0, 0),
    "iopl": (172, 3),
    "ioperm": (173, 0, 8, 1),
    "init_module": (175, 0, 0, 0),
    "finit_module": (313, -1, 0, 0),
    "delete_module": (176, 0, 0),
    "kexec_load": (246, 0, 0, 0, 0),
    "kexec_file_load": (320, -1, -1, 0, 0, 0),
    "add_key": (248, 0, 0, 0, 0, 0),
    "request_key": (249, 0, 0, 0, 0),
    "keyctl": (250, 0, -3, 0),
    "perf_event_open": (298, 0, 0, -1, -1, 0),
    "open_by_handle_at": (304, -100, 0, 0),
    "bpf": (321, 0, 0, 0),
    "userfaultfd": (323, 1),
    "io_uring_setup": (425, 1, 0),
    "io_uring_enter": (426, -1, 0, 0, 0, 0, 0),
    "settimeofday": (164, 0, 0),
    "clock_settime": (227, 0, 0),
    "clock_adjtime": (305, 0, 0),
    "acct": (163, 0),
    "quotactl": (179, 0, 0, 0, 0),
    "syslog": (103, 3, 0, 0),
    "lookup_dcookie": (212, 0, 0, 0),
    "pidfd_getfd": (438, -1, 0, 0),
}
# what each may say where it was let through to the kernel: those calls are refused before anything of them is read
_REFUSED = {errno.EPERM, errno.ENOSYS, errno.EACCES}
_NEW = {"mnt": 0x00020000, "user": 0x10000000, "pid": 0x20000000, "net": 0x40000000, "cgroup": 0x02000000}
_PTRACE_ATTACH, _PTRACE_SEIZE = 16, 0x4206

Deed = Callable[[], object]


def main() -> None:
    print(json.dumps([(what, ended(deed)) for what, deed in deeds()]))


def ended(deed: Deed) -> str:
    """How a deed ended: its error, "none" where there was nothing to do it to, or "done"."""
    try:
        return "none" if deed() is None else "done"
    except OSError as fault:
        return errno.errorcode.get(fault.errno or 0, type(fault).__name__)


def deeds() -> Iterator[tuple[str, Deed]]:
    for name, words in _CALLS.items():
        yield f"call {name}", lambda w=words: refused(w)
    for name, kind in _NEW.items():
        yield f"unshare {name}", lambda k=kind: checked(_LIBC.unshare(k))
        yield f"unshare user and {name}", lambda k=kind: checked(_LIBC.unshare(k | _NEW["user"]))
        yield f"clone {name}", lambda k=kind: cloned(k)
        yield f"setns 1 {name}", lambda n=name: joined(f"/proc/1/ns/{n}")
    yield "ptrace attach 1", lambda: traced(_PTRACE_ATTACH, 1)
    yield "ptrace seize 1", lambda: traced(_PTRACE_SEIZE, 1)
    yield "read memory of 1", lambda: remote(310, 1)
    yield "write memory of 1", lambda: remote(311, 1)
    for name in ("root", "cwd", "exe", "fd/0", "environ"):
        yield f"open /proc/1/{name}", lambda n=name: opened(f"/proc/1/{n}", os.O_RDONLY)
    yield "open /proc/1/mem", lambda: opened("/proc/1/mem", os.O_RDWR)
    yield "kill 1", lambda: killed(1)
    for path in kernel_files():
        yield f"write {path}", lambda p=path: written(p)
    for path in ("/dev/mem", "/dev/kmem", "/dev/kmsg", "/dev/port", "/dev/fuse", "/dev/kvm", "/dev/sda", "/dev/vda"):
        yield f"device {path}", lambda p=path: opened(p, os.O_RDONLY)
    for name, number in (("mem", (1, 1)), ("kmsg", (1, 11)), ("fuse", (10, 229)), ("tun", (10, 200))):
        yield f"mknod {name}", lambda n=number: made(stat.S_IFCHR, n)
    for number in ((8, 0), (253, 0), (254, 0), (259, 0)):
        yield f"mknod disk {number}", lambda n=number: made(stat.S_IFBLK, n)
    yield "raise powers", raised
    yield "setuid program", setuid
    yield "leave the root by chroot", left_root
    yield "type for the terminal", typed
    for path in (
        "/var/run/docker.sock",
        "/run/docker.sock",
        "/run/containerd/containerd.sock",
        "/run/dbus/system_bus_socket",
    ):
        yield f"open {path}", lambda p=path: Path(p).stat()
    for group in groups():
        yield f"group in {group}", lambda g=group: (g / "hostile").mkdir() or "made"


def kernel_files() -> Iterator[str]:
    """All files of the kernel that are no process's own: whoever writes there acts on the host."""
    pending = ["/proc", "/sys"]
    while pending:
        folder = pending.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            if folder == "/proc" and (entry.name.isdecimal() or entry.is_symlink()):
                continue
            try:
                kind = Path(entry.path).lstat().st_mode
            except OSError:
                continue
            if stat.S_ISDIR(kind):
                pending.append(entry.path)
            elif stat.S_ISREG(kind):
                yield entry.path


def groups() -> list[Path]:
    """Folders of control groups: that of all of them, and of each controller where they are apart."""
    top = Path("/sys/fs/cgroup")
    if (top / "cgroup.procs").exists():
        return [top]
    return [path for path in top.iterdir() if path.is_dir()] if top.is_dir() else []


def checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def refused(words: tuple[int, ...]) -> str | None:
    """Make a call with words that mean nothing: where the kernel looks at them, the call itself was let through."""
    result = _LIBC.syscall(*map(ctypes.c_long, words))
    if result < 0 and ctypes.get_errno() in _REFUSED:
        checked(result)
    return f"let through: {result}, {errno.errorcode.get(ctypes.get_errno())}"


def cloned(kind: int) -> int:
    """A child in a namespace of its own."""
    pid = checked(_LIBC.syscall(ctypes.c_long(56), ctypes.c_long(kind | signal.SIGCHLD), *[ctypes.c_long(0)] * 4))
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def joined(path: str) -> int:
    fd = os.open(path, os.O_RDONLY)
    try:
        return checked(_LIBC.setns(fd, 0)) + 1
    finally:
        os.close(fd)


def traced(how: int, pid: int) -> int:
    _LIBC.ptrace.restype = ctypes.c_long
    return checked(_LIBC.ptrace(ctypes.c_long(how), ctypes.c_long(pid), None, None)) + 1


def remote(call: int, pid: int) -> int:
    """Read or write the memory of a process, where its program begins."""
    buffer = ctypes.create_string_buffer(8)
    ours = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
    theirs = (ctypes.c_void_p * 2)(0x400000, 8)
    return checked(
        _LIBC.syscall(
            ctypes.c_long(call),
            ctypes.c_long(pid),
            ours,
            ctypes.c_long(1),
            theirs,
            *[ctypes.c_long(1), ctypes.c_long(0)],
        )
    )


def opened(path: str, flags: int) -> int:
    fd = os.open(path, flags | os.O_NONBLOCK)
    os.close(fd)
    return fd + 1


def written(path: str) -> str:
    """Write nothing to a file of the kernel: only one that takes writes answers anything else than EIO."""
    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    try:
        os.write(fd, b"")
    except OSError as fault:
        if fault.errno == errno.EIO:
            raise
    finally:
        os.close(fd)
    return "takes writes"


def killed(pid: int) -> str | None:
    """A signal to PID 1 is sent and does nothing; the world going on is what the rest of this program shows."""
    os.kill(pid, signal.SIGTERM)
    os.kill(pid, signal.SIGKILL)
    return None


def made(kind: int, number: tuple[int, int]) -> str | None:
    """A device file that can be opened: to have made its name is nothing yet."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/device"
        os.mknod(path, kind | 0o666, os.makedev(*number))
        return f"opened {opened(path, os.O_RDONLY)}"


def raised() -> str | None:
    """Take every capability that there is."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    every = (ctypes.c_uint32 * 6)(*[0xFFFFFFFF] * 6)
    checked(_LIBC.capset(header, every))
    return "raised"


def setuid() -> str | None:
    """A program of root with the setuid bit, run by another user."""
    if os.geteuid() != 0:
        return None
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = f"{folder}/id"
        shutil.copy(shutil.which("id") or "/usr/bin/id", path)
        Path(path).chmod(0o6755)
        said = subprocess.run([path, "-u"], user=12345, group=12345, extra_groups=[], capture_output=True, check=False)
        return "root" if said.stdout.strip() == b"0" else None


def left_root() -> str | None:
    """The old way out of a chroot leads to the world's own root, and no further."""
    with tempfile.TemporaryDirectory() as folder:
        before = Path("/").stat()
        child = os.fork()
        if child == 0:
            try:
                os.chroot(folder)
                for _ in range(64):
                    os.chdir("..")
                os.chroot(".")
                after = Path("/").stat()
                os._exit(0 if (after.st_dev, after.st_ino) == (before.st_dev, before.st_ino) else 7)
            except OSError:
                os._exit(0)
        return "left" if os.waitpid(child, 0)[1] else None


def typed() -> int:
    """Push a letter into the terminal that started all this."""
    fd = os.open("/dev/tty", os.O_RDWR)
    try:
        return fcntl.ioctl(fd, 0x5412, b"x") + 1
    finally:
        os.close(fd)


if __name__ == "__main__":
    main()
