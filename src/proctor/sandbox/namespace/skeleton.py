"""What a world shows around the host's /usr: a synthetic /etc, an empty /var and /opt, links, and no more of the host.

With a given root only what must differ from it is laid above.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Tier
from proctor.sandbox.linux import tree
from proctor.sandbox.namespace.command import HOSTNAME

_FOLDERS = (
    "dev",
    "etc",
    "etc/default",
    "etc/pam.d",
    "etc/ssl",
    "home",
    "media",
    "mnt",
    "opt",
    "proc",
    "run",
    "run/lock",
    "srv",
    "sys",
    "usr",
    "var",
    "var/cache",
    "var/lib",
    "var/local",
    "var/log",
    "var/mail",
    "var/opt",
    "var/spool",
)
_OPEN_FOLDERS = ("tmp", "var/tmp")
_USERS = (
    ("root", 0, 0, "/root", "/bin/bash"),
    ("daemon", 1, 1, "/usr/sbin", "/usr/sbin/nologin"),
    ("bin", 2, 2, "/bin", "/usr/sbin/nologin"),
    ("sys", 3, 3, "/dev", "/usr/sbin/nologin"),
    ("sync", 4, 65534, "/bin", "/bin/sync"),
    ("games", 5, 60, "/usr/games", "/usr/sbin/nologin"),
    ("man", 6, 12, "/var/cache/man", "/usr/sbin/nologin"),
    ("mail", 8, 8, "/var/mail", "/usr/sbin/nologin"),
    ("www-data", 33, 33, "/var/www", "/usr/sbin/nologin"),
    ("_apt", 42, 65534, "/nonexistent", "/usr/sbin/nologin"),
    ("nobody", 65534, 65534, "/nonexistent", "/usr/sbin/nologin"),
)
_GROUPS = {"root": 0, "daemon": 1, "bin": 2, "sys": 3, "adm": 4, "tty": 5, "disk": 6, "mail": 8, "man": 12}
_GROUPS |= {"sudo": 27, "www-data": 33, "shadow": 42, "utmp": 43, "staff": 50, "games": 60, "users": 100}
_GROUPS |= {"nogroup": 65534}
_PAM = "auth sufficient pam_rootok.so\nauth required pam_deny.so\naccount required pam_permit.so\n"
_PAM += "password required pam_permit.so\nsession required pam_permit.so\n"
_TEXTS = {
    "etc/passwd": "".join(f"{name}:x:{uid}:{gid}::{home}:{shell}\n" for name, uid, gid, home, shell in _USERS),
    "etc/group": "".join(f"{name}:x:{gid}:\n" for name, gid in _GROUPS.items()),
    "etc/shadow": "".join(f"{user[0]}:*:19000:0:99999:7:::\n" for user in _USERS),
    "etc/gshadow": "".join(f"{name}:*::\n" for name in _GROUPS),
    "etc/hostname": f"{HOSTNAME}\n",
    "etc/hosts": f"127.0.0.1 localhost {HOSTNAME}\n::1 localhost ip6-localhost ip6-loopback\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\n",
    "etc/resolv.conf": "",
    "etc/timezone": "Etc/UTC\n",
    "etc/shells": "/bin/sh\n/bin/bash\n",
    "etc/fstab": "",
    "etc/environment": "",
    "etc/profile": "umask 022\n",
    "etc/bash.bashrc": "",
    "etc/login.defs": "UID_MIN 1000\nUID_MAX 60000\nGID_MIN 1000\nGID_MAX 60000\nUMASK 022\n"
    "USERGROUPS_ENAB yes\nENCRYPT_METHOD SHA512\n",
    "etc/pam.d/other": _PAM,
    "etc/default/useradd": "SHELL=/bin/sh\nHOME=/home\nCREATE_MAIL_SPOOL=no\n",
}
_PRIVATE = {"etc/shadow": 0o640, "etc/gshadow": 0o640}
_LINKS = {
    "etc/mtab": "../proc/self/mounts",
    "etc/localtime": "/usr/share/zoneinfo/Etc/UTC",
    "etc/os-release": "../usr/lib/os-release",
    "var/run": "/run",
    "var/lock": "/run/lock",
}
# Tables without secrets that programs below /usr need: where libraries and alternatives lie, whom to trust.
_FROM_HOST = (
    "alternatives",
    "fonts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "magic",
    "mime.types",
    "perl",
    "protocols",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
)
_PREFIXES_FROM_HOST = ("java-", "python3")
_OPAQUE = "user.overlay.opaque"
_LIB_TOPS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
# An ordinary user's world shows the host's folders as another user's; those that installers write to are given over.
_WRITABLE_IN_USR = ("bin", "sbin", "lib", "lib/python3", "lib/python3/dist-packages", "share", "include", "local")


def host_tops() -> tuple[str, ...]:
    """Top folders of the host that are shown: /usr, and bin or lib where they are no links into it."""
    return ("usr", *(name for name in _LIB_TOPS if _is_plain_folder(Path("/") / name)))


def _is_plain_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def build_on_host(base: Path, tier: Tier, hidden: Sequence[Path]) -> None:
    """The layer above the host's top folders: `base/root` and one folder for each top.

    Raises:
        Refusal: PATH_UNSAFE when a top folder itself is to be hidden.
        OSError: the host's disk refuses.
    """
    root = base / "root"
    for folder in (base, root, *(base / name for name in host_tops())):
        _folder(folder, 0o755)
    for name in _FOLDERS:
        _folder(root / name, 0o755)
    for name in _OPEN_FOLDERS:
        _folder(root / name, 0o1777)
    _folder(root / "root", 0o700)
    for name, text in _TEXTS.items():
        path = root / name
        path.write_text(text, encoding="ascii")
        path.chmod(_PRIVATE.get(name, 0o644))
    for name, to in _LINKS.items():
        (root / name).symlink_to(to)
    for name in _LIB_TOPS:
        if (Path("/") / name).is_symlink():
            (root / name).symlink_to((Path("/") / name).readlink())
    own = [path.name for path in Path("/etc").iterdir() if path.name.startswith(_PREFIXES_FROM_HOST)]
    for name in (*_FROM_HOST, *own):
        _copy(Path("/etc") / name, root / "etc" / name)
    if tier is Tier.ORDINARY:
        _give_over(base / "usr", "/usr", (*_WRITABLE_IN_USR, *_children("/usr/local", "local")))
    for top in host_tops():
        _hide(base / top, Path("/") / top, hidden)


def build_on_root(base: Path, given: Path, tier: Tier, hidden: Sequence[Path]) -> None:
    """The layer above a given root: `base/root`, which hides what must not be seen of it.

    Raises:
        OSError: the host's disk refuses.
    """
    _folder(base, 0o755)
    _folder(base / "root", stat.S_IMODE(given.stat().st_mode))
    if tier is Tier.ORDINARY:
        names = [*_children(str(given), ""), *_children(f"{given}/usr", "usr"), *_children(f"{given}/var", "var")]
        _give_over(base / "root", str(given), [*names, *_children(f"{given}/usr/local", "usr/local")])
    _hide(base / "root", given, hidden)


def try_layer(folder: Path) -> None:
    """Make and remove what layers need where `folder` lies: a whiteout and an attribute. Raises OSError."""
    trial = folder / "t"
    os.mknod(trial, stat.S_IFCHR, os.makedev(0, 0))
    trial.unlink()
    os.setxattr(folder, _OPAQUE, b"y")
    os.removexattr(folder, _OPAQUE)


def _children(path: str, name: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            found = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [f"{name}/{child}" if name else child for child in sorted(found)]


def _give_over(layer: Path, below: str, names: Iterable[str]) -> None:
    """Lay a folder of our own over each of the names that is a folder below: its entries stay, its owner changes."""
    for name in names:
        source = Path(below) / name
        if not _is_plain_folder(source):
            continue
        _folder(layer / name, stat.S_IMODE(source.stat().st_mode) | 0o700)
        if not os.access(source, os.R_OK | os.X_OK):
            os.setxattr(layer / name, _OPAQUE, b"y")  # unreadable below: merging would fail


def _hide(layer: Path, below: Path, hidden: Sequence[Path]) -> None:
    """Lay a whiteout over each hidden path below: inside there is nothing at all at its place."""
    places = {place for given in hidden for place in (given, given.resolve())}
    for path in places:
        if any(parent in places and below in parent.parents for parent in path.parents):
            continue  # what it lies in is hidden already
        if path == below or not path.is_relative_to(below):
            if below.is_relative_to(path) and below.parent == Path("/"):
                raise Refusal(Reason.PATH_UNSAFE, "a folder that the sandbox shows is to be hidden", path=str(path))
            continue
        if not os.path.lexists(path):
            continue
        parts = path.relative_to(below).parts
        for depth in range(1, len(parts)):
            at = layer.joinpath(*parts[:depth])
            if not at.exists():
                info = below.joinpath(*parts[:depth]).stat()
                _folder(at, stat.S_IMODE(info.st_mode))
                if os.geteuid() == 0:
                    os.chown(at, info.st_uid, info.st_gid)
        tree.remove(layer.joinpath(*parts))
        os.mknod(layer.joinpath(*parts), stat.S_IFCHR, os.makedev(0, 0))


def _folder(path: Path, mode: int) -> None:
    path.mkdir(exist_ok=True)
    path.chmod(mode)


def _copy(source: Path, target: Path) -> None:
    """Copy what can be read of a file, link or folder of the host's /etc; the rest is not there inside."""
    try:
        if source.is_symlink():
            target.symlink_to(source.readlink())
        elif source.is_dir():
            target.mkdir()
            for child in source.iterdir():
                _copy(child, target / child.name)
        elif source.is_file():
            shutil.copyfile(source, target)
            target.chmod(0o644)
    except PermissionError:
        return
