"""An RFC 3161 authority on loopback: `openssl ts` behind an HTTP server, with a root and a certificate of its own."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from serving import serving

_CONFIG = """
[ tsa ]
serial = {folder}/serial
crypto_device = builtin
signer_cert = {folder}/tsa.pem
signer_key = {folder}/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha512
ess_cert_id_alg = sha256
[ purpose ]
extendedKeyUsage = critical,timeStamping
basicConstraints = CA:FALSE
"""
_SUBJECT = ("-newkey", "rsa:2048", "-nodes")


@dataclass
class Authority:
    """Where it listens, and its root. `answer`, where it is set, is what it says instead."""

    folder: Path
    url: str = ""
    status: int = 200
    answer: bytes | None = None
    location: str | None = None
    silent: threading.Event | None = None

    @property
    def roots(self) -> Path:
        return self.folder / "ca.pem"

    def reply(self, query: bytes) -> bytes:
        if self.answer is not None:
            return self.answer
        (self.folder / "query").write_bytes(query)
        self._openssl("ts", "-reply", "-config", "ts.cnf", "-section", "tsa", "-queryfile", "query", "-out", "reply")
        return (self.folder / "reply").read_bytes()

    def make(self) -> None:
        """Root, certificate and configuration."""
        (self.folder / "ts.cnf").write_text(_CONFIG.format(folder=self.folder))
        (self.folder / "serial").write_text("01\n")
        self._openssl(
            *("req", "-x509", *_SUBJECT, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=root", "-days", "2")
        )
        self._openssl("req", "-new", *_SUBJECT, "-keyout", "tsa.key", "-out", "tsa.csr", "-subj", "/CN=authority")
        self._openssl(
            *("x509", "-req", "-in", "tsa.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"),
            *("-out", "tsa.pem", "-days", "2", "-extfile", "ts.cnf", "-extensions", "purpose"),
        )

    def verify(self, data: Path, answer: Path) -> bool:
        """Whether openssl, too, takes the timestamp."""
        words = ("ts", "-verify", "-data", str(data), "-in", str(answer), "-CAfile", str(self.roots))
        done = subprocess.run(["openssl", *words], cwd=self.folder, capture_output=True, timeout=60)
        return done.returncode == 0

    def _openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], cwd=self.folder, check=True, capture_output=True, timeout=60)


@contextmanager
def listening(authority: Authority) -> Iterator[Authority]:
    """The authority, answering until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = self.rfile.read(int(self.headers["Content-Length"]))
            if authority.silent is not None:
                # until who asked has given up
                authority.silent.wait(60)
                return
            answer = authority.reply(query)
            self.send_response(authority.status)
            if authority.location is not None:
                self.send_header("Location", authority.location)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as at:
        authority.url = f"http://{at}/"
        yield authority
