"""A host that listens everywhere: on each of its addresses, on all at once, by datagrams and by unix sockets.

Whatever is heard was sent from inside a sandbox, or by nobody.
"""

from __future__ import annotations

import asyncio
import fcntl
import secrets
import socket
import struct
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

_SIOCGIFADDR = 0x8915
_LISTENING = "0A"


class Ears:
    """Listeners of one test; `heard` are the names of those that anybody reached."""

    def __init__(self, folder: Path) -> None:
        self.heard: list[str] = []
        self.tcp: list[tuple[str, int]] = []
        self.udp: list[tuple[str, int]] = []
        self.abstract = f"ears-{secrets.token_hex(6)}"
        self.path = folder / "ears"
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Ears:
        loop = asyncio.get_running_loop()
        for address in ["0.0.0.0", "::", *own_addresses()]:
            scope = f"%{_scope_of(address)}" if address.startswith("fe80") else ""
            with socket_of(socket.SOCK_STREAM, address + scope) as bound:
                port = bound.getsockname()[1]
                server = await asyncio.start_server(self._note(f"tcp {address} {port}"), sock=bound.dup())
            self._open.callback(server.close)
            with socket_of(socket.SOCK_DGRAM, address + scope) as bound:
                port_udp = bound.getsockname()[1]
                transport, _ = await loop.create_datagram_endpoint(
                    lambda name=f"udp {address} {port_udp}": _Echo(self.heard, name), sock=bound.dup()
                )
            self._open.callback(transport.close)
            any_of = [place for place in own_addresses() if (":" in place) == (":" in address)]
            reached_at = any_of if address in ("0.0.0.0", "::") else [address]
            self.tcp += [(place, port) for place in reached_at]
            self.udp += [(place, port_udp) for place in reached_at]
        for name, target in ((f"abstract {self.abstract}", f"\0{self.abstract}"), ("path", str(self.path))):
            unix = await asyncio.start_unix_server(self._note(name), path=target)
            self._open.callback(unix.close)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    def _note(self, name: str) -> Any:
        async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.heard.append(name)
            writer.write(b"heard\n")
            writer.close()

        return note

    def all_doors(self) -> dict[str, Any]:
        """What a prober is told to try: our own listeners, and everything else that listens on this host."""
        own, listening = own_addresses(), _listening_ports()
        places = [*own, "127.0.0.2", "0.0.0.0", "::", "::ffff:127.0.0.1", *(f"::ffff:{a}" for a in own if "." in a)]
        tcp = {
            *self.tcp,
            *((place, port) for place in places for port in {*listening, *(port for _, port in self.tcp)}),
        }
        resolvers = [(address, 53) for address in resolver_addresses()]
        abstract, paths = _unix_names()
        return {
            "tcp": sorted({*tcp, *resolvers}),
            "udp": sorted({*self.udp, *resolvers}),
            "names": ["example.com", "metadata.google.internal", "host.docker.internal", socket.gethostname()],
            "abstract": sorted({self.abstract, *abstract}),
            "paths": sorted({str(self.path), *paths}),
        }


class _Echo(asyncio.DatagramProtocol):
    def __init__(self, heard: list[str], name: str) -> None:
        self._heard, self._name = heard, name

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._heard.append(self._name)
        self._transport.sendto(data, addr)


def socket_of(kind: int, address: str) -> socket.socket:
    """A socket bound to a free port of an address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, kind)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    made.bind(socket.getaddrinfo(address, 0, family, kind, 0, socket.AI_NUMERICHOST)[0][4])
    if kind == socket.SOCK_STREAM:
        made.listen()
    made.setblocking(False)
    return made


def own_addresses() -> list[str]:
    """The addresses of this host's interfaces."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _, name in socket.if_nameindex():
            try:
                said = fcntl.ioctl(sock, _SIOCGIFADDR, struct.pack("256s", name.encode()))
            except OSError:
                continue  # it has none
            found.append(socket.inet_ntoa(said[20:24]))
    return [*found, *(address for address, _ in _six())]


def _six() -> list[tuple[str, str]]:
    try:
        lines = Path("/proc/net/if_inet6").read_text().splitlines()
    except FileNotFoundError:
        return []
    found = [(socket.inet_ntop(socket.AF_INET6, bytes.fromhex(line.split()[0])), line.split()[5]) for line in lines]
    # the host's ends of other containers' networks come and go meanwhile
    return [(address, name) for address, name in found if not name.startswith("veth")]


def _scope_of(address: str) -> str:
    return next(name for found, name in _six() if found == address)


def _listening_ports() -> set[int]:
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if len(row) > 3 and row[3] == _LISTENING}


def resolver_addresses() -> list[str]:
    """The resolvers of this host."""
    lines = [line.split() for line in Path("/etc/resolv.conf").read_text().splitlines()]
    return [words[1] for words in lines if len(words) > 1 and words[0] == "nameserver"]


def _unix_names() -> tuple[list[str], list[str]]:
    names = [line.split()[7] for line in Path("/proc/net/unix").read_text().splitlines()[1:] if len(line.split()) > 7]
    return [name[1:] for name in names if name[0] == "@"], [name for name in names if name[0] == "/"]
