"""Images and worlds of Docker that are made to harm who builds, keeps or starts them: each is a typed refusal."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker_bench import BUSYBOX, Bench, admitted, bench, call, image_id, kind

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Image
from proctor.sandbox.docker import changes
from proctor.tasks.dockerfile import parse

__all__ = ["admitted", "bench", "kind"]
pytestmark = pytest.mark.real


class Builds:
    """Builds of one test, removed with it."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench, self.folder = bench, folder
        self.tags: set[str] = set()

    async def start(self, text: str, **files: str) -> Any:
        """A world from what a Dockerfile builds. Raises Refusal."""
        facts = await self.bench.kind.provide(self.image(text, **files), self.bench.admitted)
        return await self.bench.start(image=facts.id)

    def image(self, text: str, **files: str) -> Image:
        context = self.folder / f"context{len(self.tags)}"
        context.mkdir()
        for name, content in {"Dockerfile": text, **files}.items():
            (context / name).write_text(content)
        key = hashlib.sha256(f"{self.folder}{text}".encode()).hexdigest()
        self.tags.add(f"proctor-build:{key[:32]}")
        stages = tuple(each.last for each in parse(text, "Dockerfile") if each.keyword == "FROM")
        base = {BUSYBOX: image_id(self.bench.kind, BUSYBOX)}
        return Image(context=context, dockerfile=text, stages=stages, base_ids=base, key=key)


@pytest.fixture
def builds(bench: Bench, tmp_path: Path) -> Iterator[Builds]:
    made = Builds(bench, tmp_path)
    yield made
    for tag in made.tags:
        if any(tag in (row["RepoTags"] or ()) for row in call("GET", "images/json")):
            call("DELETE", f"images/{tag}", params={"force": "1"})


async def test_a_file_of_holes_is_not_written_out_by_a_capture(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MOST_HOLES", 1 << 20)
    world = await bench.start()
    await bench.run(world, "truncate -s 1T /one; truncate -s 300K /other; ln /one /same")
    with pytest.raises(Refusal) as refused:
        await world.capture()
    assert refused.value.reason is Reason.CAPTURE_FAILED and "holes" in refused.value.message
    assert await bench.nothing_left()
    world = await bench.start()
    await bench.run(world, "truncate -s 600K /other")
    fork = await bench.kind.fork(await world.capture(), bench.spec(), bench.admitted)
    assert (await bench.run(fork, "stat -c %s /other"))[1] == "614400\n"
    await fork.stop()


TRAPS = {
    "a shell that ends": "RUN cp /bin/busybox /bin/box && rm /bin/sh && ln -s /bin/true /bin/sh",
    "a shell that says yes for ever": r"RUN printf '#!/bin/yes\n' > /bin/t; chmod 755 /bin/t; ln -sf /bin/t /bin/sh",
    "a shell that is none": r"RUN printf '#!/bin/none\n' > /bin/t; chmod 755 /bin/t; ln -sf /bin/t /bin/sh",
    "a volume of everything": "VOLUME /",
    "a volume of processes": "VOLUME /proc",
    "a volume of programs": "VOLUME /bin",
    "a user that is none": "USER nobody-here",
    "a user beyond all numbers": "USER 99999999999",
    "an entry that is none": 'ENTRYPOINT ["/no/such"]',
    "an entry that never ends": 'ENTRYPOINT ["sleep", "1000"]\nSTOPSIGNAL SIGCONT',
    "no path to programs": "ENV PATH=/nowhere",
    "another loader": "ENV LD_PRELOAD=/evil.so ENV=/evil BASH_ENV=/evil",
    "a working folder that is a file": "RUN touch /file\nWORKDIR /file",
    "a health check that kills": "HEALTHCHECK --interval=1s CMD kill -9 1",
    "tables that are folders": "RUN rm -f /etc/passwd /etc/group && mkdir -p /etc/passwd/x /etc/group/x",
}


async def test_links_of_a_context_lead_nowhere(bench: Bench, builds: Builds, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret of the host")
    image = builds.image("FROM busybox:latest\nCOPY . /c/\nRUN cat /c/* /c/up/secret 2>/dev/null | grep secret; true\n")
    assert image.context is not None
    (image.context / "link").symlink_to(tmp_path / "secret")
    (image.context / "up").symlink_to("..")
    facts = await bench.kind.provide(image, bench.admitted)
    world = await bench.start(image=facts.id)
    said = (await bench.run(world, "ls -l /c; cat /c/link /c/up/secret; true"))[1]
    assert "secret of" not in said and "up ->" in said
    for line in ("COPY link /x", "COPY up/secret /x", "ADD up /y"):
        with pytest.raises(Refusal) as refused:
            linked = builds.image(f"FROM busybox:latest\n{line}\nRUN cat /x /y/secret\n")
            assert linked.context is not None
            (linked.context / "link").symlink_to(tmp_path / "secret")
            (linked.context / "up").symlink_to("..")
            await bench.kind.provide(linked, bench.admitted)
        assert refused.value.reason is Reason.IMAGE_BUILD_FAILED and "secret of the host" not in str(refused.value)


@pytest.mark.parametrize("name", TRAPS)
async def test_a_trap_starts_as_a_world_or_is_refused(bench: Bench, builds: Builds, name: str) -> None:
    try:
        world = await builds.start(f"FROM busybox:latest\n{TRAPS[name]}\n")
    except Refusal as refusal:
        assert refusal.reason in (Reason.SANDBOX_START_FAILED, Reason.SANDBOX_LOST, Reason.IMAGE_BUILD_FAILED)
    else:
        assert (await bench.run(world, "/bin/busybox echo here"))[1] == "here\n"
        await world.stop()
    assert await bench.nothing_left()
