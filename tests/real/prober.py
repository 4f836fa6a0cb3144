"""A program that runs inside a sandbox and tries to reach anything at all. It needs nothing but Python.

Its argument is JSON: `tcp` and `udp` (lists of address and port, to try), `names` (to look up), `abstract` and `paths`
(names of unix sockets), `far` (whether to try addresses of others, too, and to change the network), `scan` (whether to
try every loopback port), `wait` (seconds in which somebody may answer). It prints JSON: a list of what was tried, each
`[what, how it ended, whether anything was reached]`.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import selectors
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

WORD = b"is anybody there\n"
_WAIT_SEC = 0.3
_METADATA = ("169.254.169.254", "169.254.170.2", "100.100.100.200", "fd00:ec2::254")
_FAR = ("192.0.2.1", "198.51.100.7", "8.8.8.8", "10.0.0.1", "172.17.0.1", "192.168.1.1", "2001:db8::1", "fe80::1")
_MULTICAST = (("255.255.255.255", 9), ("224.0.0.251", 5353), ("ff02::1", 5353), ("239.255.255.250", 1900))

Tried = tuple[str, str, bool]
Probe = Callable[[], "str | None"]


def main(given: dict[str, Any]) -> list[Tried]:
    """Everything, in order: what is reached says so in its last column."""
    global _WAIT_SEC
    _WAIT_SEC = given.get("wait", _WAIT_SEC)
    found = [attempt(what, probe) for what, probe in probes(given)]
    if given["scan"]:
        found += scan("127.0.0.1") + scan("::1")
    if not given["far"]:
        return found
    # last, for it may lead elsewhere, from where everything is tried again
    for what, kinds in (("net", 0x40000000), ("user and net", 0x50000000)):
        tried = attempt(f"unshare {what}", lambda kinds=kinds: unshared(kinds))
        found.append(tried)
        if tried[2]:
            found += [attempt(f"after unshare {what}: {name}", probe) for name, probe in probes(given)]
    return found


def attempt(what: str, probe: Probe) -> Tried:
    """How one probe ended: a text that it returned is what it reached."""
    try:
        reached = probe()
    except OSError as fault:
        name = errno.errorcode.get(fault.errno or 0, type(fault).__name__)
        return what, name, False
    return what, reached or "silence", reached is not None


def probes(given: dict[str, Any]) -> Iterator[tuple[str, Probe]]:
    """All that is tried one by one."""
    far = (*_METADATA, *_FAR) if given["far"] else ()
    tcp = [*given["tcp"], *((address, port) for address in far for port in (53, 80, 443))]
    udp = [*given["udp"], *((address, port) for address in far for port in (53, 123)), *(_MULTICAST if far else ())]
    for kind, talk, targets in (("tcp", tcp_talk, tcp), ("udp", udp_talk, udp)):
        for address, port in targets:
            for scoped in scopes(address):
                yield f"{kind} {scoped} {port}", lambda t=talk, a=scoped, p=port: t(a, p)
    for name in given["names"]:
        yield f"name {name}", lambda n=name: socket.getaddrinfo(n, 80)[0][4][0]
    for name in given["abstract"]:
        yield f"abstract {name}", lambda n=name: unix_talk(b"\0" + n.encode())
    for path in given["paths"]:
        yield f"unix {path}", lambda p=path: unix_talk(p.encode())
    if not far:
        return
    for what, family, kind, number in (
        ("raw icmp", socket.AF_INET, socket.SOCK_RAW, 1),
        ("raw tcp", socket.AF_INET, socket.SOCK_RAW, 6),
        ("raw icmp6", socket.AF_INET6, socket.SOCK_RAW, 58),
        ("packet", socket.AF_PACKET, socket.SOCK_RAW, 0x0300),
        ("vsock", socket.AF_VSOCK, socket.SOCK_STREAM, 0),
        ("bluetooth", 31, socket.SOCK_RAW, 1),
        ("xdp", 44, socket.SOCK_RAW, 0),
        ("alg", 38, socket.SOCK_SEQPACKET, 0),
        ("tipc", 30, socket.SOCK_STREAM, 0),
    ):
        yield f"socket {what}", lambda f=family, k=kind, n=number: opened(f, k, n)
    yield "link lo up", lambda: netlink(16, link("lo"))
    yield "link new dummy", lambda: netlink(16, link("probe0"), device="dummy")
    yield "link new veth", lambda: netlink(16, link("probe1"), device="veth")
    yield "address 10.99.0.1 on lo", lambda: netlink(20, struct.pack("=BBBBI", 2, 24, 0, 0, 1) + four(2, "10.99.0.1"))
    yield "route default by lo", lambda: netlink(24, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 3, 0, 1, 0) + out(1))
    for device in ("/dev/net/tun", "/dev/vhost-net", "/dev/vsock", "/dev/kmsg", "/dev/mem"):
        yield f"device {device}", lambda d=device: opened_file(d)
    for path in ("/proc/1/ns/net", "/proc/self/ns/net"):
        yield f"setns {path}", lambda p=path: entered(p)


def scopes(address: str) -> list[str]:
    """An address, or where it needs one of its interfaces, itself on each of them."""
    if not address.startswith(("fe80:", "ff02:")):
        return [address]
    return [address, *(f"{address}%{name}" for _, name in socket.if_nameindex())]


def tcp_talk(address: str, port: int) -> str:
    """Connect, say a word and listen a moment: to have connected is to have reached."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.settimeout(_WAIT_SEC)
        sock.connect(socket.getaddrinfo(address, port, family, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST)[0][4])
        try:
            sock.sendall(WORD)
            return f"connected, heard {sock.recv(100)!r}"
        except OSError:
            return "connected"


def udp_talk(address: str, port: int) -> str | None:
    """Send a word. To send beyond the loopback is to have reached something; on it, only an answer is."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        sock.settimeout(_WAIT_SEC)
        target = socket.getaddrinfo(address, port, family, socket.SOCK_DGRAM, 0, socket.AI_NUMERICHOST)[0][4]
        sock.connect(target)
        sock.send(WORD)
        near = sock.getsockname()[0] in ("127.0.0.1", "::1", "::ffff:127.0.0.1")
        try:
            return f"heard {sock.recv(100)!r}"
        except TimeoutError:
            return None if near else "left this host"


def unix_talk(name: bytes) -> str:
    """Connect to a unix socket, as a stream and as datagrams."""
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        with socket.socket(socket.AF_UNIX, kind) as sock:
            try:
                sock.connect(name)
            except OSError as fault:
                if fault.errno != errno.EPROTOTYPE:
                    raise
                continue
            return "connected"
    raise OSError(errno.EPROTOTYPE, "no kind of socket")


def opened(family: int, kind: int, number: int) -> str:
    with socket.socket(family, kind, number):
        return "opened"


def opened_file(path: str) -> str:
    os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
    return "opened"


def link(name: str) -> bytes:
    """A message that wants a link of that name up."""
    return struct.pack("=BBHiII", 0, 0, 0, 0, 1, 1) + attribute(3, name.encode() + b"\0")


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def four(kind: int, address: str) -> bytes:
    return attribute(kind, socket.inet_aton(address))


def out(index: int) -> bytes:
    return attribute(4, struct.pack("=I", index))


def netlink(change: int, body: bytes, *, device: str | None = None) -> str:
    """Ask the kernel for a change of the network, which it refuses or makes."""
    if device is not None:
        body += attribute(18, attribute(1, device.encode()))
    flags = 0x5 | (0x600 if device is not None or change != 16 else 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as sock:
        sock.settimeout(_WAIT_SEC)
        sock.send(struct.pack("=IHHII", 16 + len(body), change, flags, 1, 0) + body)
        said = sock.recv(4096)
    number = -struct.unpack_from("=i", said, 16)[0]
    if number:
        raise OSError(number, os.strerror(number))
    return "changed"


def entered(path: str) -> str | None:
    """Enter a namespace; into one's own leads nowhere."""
    fd = os.open(path, os.O_RDONLY)
    try:
        before = str(Path("/proc/self/ns/net").readlink())
        check(ctypes.CDLL(None, use_errno=True).setns(fd, 0))
    finally:
        os.close(fd)
    return "entered" if str(Path("/proc/self/ns/net").readlink()) != before else None


def unshared(kinds: int) -> str:
    check(ctypes.CDLL(None, use_errno=True).unshare(kinds))
    return "made"


def check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def scan(address: str) -> list[Tried]:
    """Every port of a loopback address: those that take connections, and how many did not."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    found: list[Tried] = []
    refused = 0
    for port in range(1, 65_536):
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.setblocking(False)
            number = sock.connect_ex((address, port))
            if number == errno.EINPROGRESS:
                with selectors.DefaultSelector() as selector:
                    selector.register(sock, selectors.EVENT_WRITE)
                    selector.select(_WAIT_SEC)
                number = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if number == 0 and sock.getpeername() != sock.getsockname():
                found.append((f"tcp {address} {port}", "connected", True))
            else:
                refused += 1
    return [*found, (f"all other ports of {address}", f"{refused} refused", False)]


if __name__ == "__main__":
    json.dump(main(json.loads(sys.argv[1])), sys.stdout)
