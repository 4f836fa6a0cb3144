"""A provider in threads of the test's own process, for programs that run as processes of their own."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class QuietHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass


class ThreadedProvider:
    """Serves until `end`; a handler may wait for `go_on`."""

    def __init__(self, handler: type[QuietHandler]) -> None:
        self.go_on = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self) -> None:
        self.go_on.set()
        self.server.shutdown()
        self.server.server_close()
