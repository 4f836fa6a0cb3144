"""Images that a registry gives: resolved to a digest, pulled by it, and a tag that moves meanwhile. The registry is the
test's own, on the machine of the engine."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from docker_bench import Bench, admitted, bench, call, kind

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import seal_probe
from proctor.sandbox.base import Image
from proctor.sandbox.docker.engine import EngineError
from proctor.sandbox.docker.kind import DockerKind
from proctor.sandbox.docker.probe import look

__all__ = ["admitted", "bench", "kind"]
pytestmark = pytest.mark.real

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
NAME = "proctor-test/pulled"


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class Registry:
    """Manifests by tag and digest, and blobs by digest."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, bytes] = {}
        self.layers: set[str] = set()
        self.asked: list[str] = []
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                registry.asked.append(f"{self.command} {self.path}")
                what, _, name = self.path.rpartition("/")
                found = registry.blobs.get(name) if what.endswith("blobs") else registry.manifests.get(name)
                data = b"{}" if self.path == "/v2/" else found
                self.send_response(404 if data is None else 200)
                self.send_header("Content-Type", MANIFEST if "manifests" in what else "application/octet-stream")
                self.send_header("Docker-Content-Digest", digest(data or b""))
                self.send_header("Content-Length", str(len(data or b"")))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(data or b"")

            do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.name = f"127.0.0.1:{self.server.server_port}/{NAME}"

    def push(self, tag: str, content: bytes) -> str:
        """Put an image of one file under a tag; its digest."""
        layer = io.BytesIO()
        with tarfile.open(fileobj=layer, mode="w") as archive:
            info = tarfile.TarInfo("content")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        packed = gzip.compress(layer.getvalue())
        config = json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": {"Env": ["A=b"]},
                "rootfs": {"type": "layers", "diff_ids": [digest(layer.getvalue())]},
            }
        ).encode()
        self.layers.add(digest(packed))
        self.blobs |= {digest(packed): packed, digest(config): config}
        manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": {
                    "mediaType": "application/vnd.docker.container.image.v1+json",
                    "size": len(config),
                    "digest": digest(config),
                },
                "layers": [
                    {
                        "mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip",
                        "size": len(packed),
                        "digest": digest(packed),
                    }
                ],
            }
        ).encode()
        self.manifests |= {tag: manifest, digest(manifest): manifest}
        return digest(manifest)


@pytest.fixture
def registry(kind: DockerKind) -> Iterator[Registry]:
    if not look(10).local:
        pytest.skip("the engine is not on this machine, and cannot reach a registry on it")
    made = Registry()
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    for row in call("GET", "images/json"):
        if any(made.name in tag for tag in (*(row["RepoTags"] or ()), *(row["RepoDigests"] or ()))):
            try:
                call("DELETE", f"images/{row['Id']}", params={"force": "1"})
            except EngineError as fault:
                assert fault.gone


def resolved(kind: DockerKind, name: str, pull: str) -> Image | Refusal:
    return kind.images([name], seal_probe(30), pull=pull)[name]


async def test_an_image_that_is_absent_is_pulled_by_the_digest_that_was_resolved(
    bench: Bench, registry: Registry
) -> None:
    name = f"{registry.name}:1.0"
    first = registry.push("1.0", b"first")
    image = resolved(bench.kind, name, "missing")
    assert image == Image(reference=name, pull=f"{registry.name}@{first}")
    assert not any(layer in path for path in registry.asked for layer in registry.layers), "resolving brings nothing"
    registry.push("1.0", b"second")  # the tag moves before it is pulled
    facts = await bench.kind.provide(image, bench.admitted)
    assert facts.digests == (f"{registry.name}@{first}",) and facts.env == {"A": "b"}
    pulled = sum("blobs" in path for path in registry.asked)
    assert await bench.kind.provide(image, bench.admitted) == facts
    assert sum("blobs" in path for path in registry.asked) == pulled, "it is here now"


async def test_always_asks_the_registry_and_brings_what_moved(bench: Bench, registry: Registry) -> None:
    name = f"{registry.name}:1.0"
    first = registry.push("1.0", b"first")
    facts = await bench.kind.provide(Image(reference=name, pull=f"{registry.name}@{first}"), bench.admitted)
    call("POST", f"images/{facts.id}/tag", params={"repo": registry.name, "tag": "1.0"})
    assert resolved(bench.kind, name, "always") == Image(reference=name, id=facts.id)
    second = registry.push("1.0", b"second")
    assert resolved(bench.kind, name, "always") == Image(reference=name, pull=f"{registry.name}@{second}")
    assert resolved(bench.kind, name, "missing") == resolved(bench.kind, name, "never")
    assert resolved(bench.kind, name, "never") == Image(reference=name, id=facts.id)


async def test_what_is_here_needs_no_registry(bench: Bench, registry: Registry) -> None:
    name = f"{registry.name}:1.0"
    found = registry.push("1.0", b"first")
    facts = await bench.kind.provide(Image(reference=name, pull=f"{registry.name}@{found}"), bench.admitted)
    call("POST", f"images/{facts.id}/tag", params={"repo": registry.name, "tag": "1.0"})
    registry.asked.clear()
    assert resolved(bench.kind, name, "missing") == Image(reference=name, id=facts.id)
    assert registry.asked == []


async def test_a_digest_that_is_gone_is_an_image_that_is_missing(bench: Bench, registry: Registry) -> None:
    for refused_name in (f"{registry.name}:none", f"{registry.name}@sha256:{'0' * 64}"):
        found = resolved(bench.kind, refused_name, "missing")
        assert isinstance(found, Refusal) and found.reason is Reason.IMAGE_MISSING
    image = Image(reference=registry.name, pull=f"{registry.name}@sha256:{'0' * 64}")
    with pytest.raises(Refusal) as refused:
        await bench.kind.provide(image, bench.admitted)
    assert refused.value.reason is Reason.IMAGE_MISSING


async def test_a_pull_that_breaks_off_is_an_image_that_is_missing(bench: Bench, registry: Registry) -> None:
    found = registry.push("1.0", b"first")
    for name in list(registry.blobs):
        registry.blobs[name] = b"another"
    with pytest.raises(Refusal) as refused:
        await bench.kind.provide(Image(reference="x", pull=f"{registry.name}@{found}"), bench.admitted)
    assert refused.value.reason is Reason.IMAGE_MISSING and "pulled" in refused.value.message
