"""Images: what stands under their names, and building what is not there."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from docker_bench import BUSYBOX, Bench, admitted, bench, call, image_id, kind
from engine_left import docker

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import seal_probe
from proctor.sandbox.base import Image
from proctor.sandbox.docker.kind import DockerKind
from proctor.sandbox.docker.owner import BUILDING, mark
from proctor.tasks.dockerfile import parse

__all__ = ["admitted", "bench", "kind"]
pytestmark = pytest.mark.real

NONE = "proctor-test/no-such-image:1"


class Builds:
    """Builds of one test, by what their Dockerfile says; removed with it."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench, self.folder = bench, folder
        self.made: set[str] = set()

    def image(self, text: str, **changes: Any) -> Image:
        context = self.folder / f"context{len(self.made)}"
        context.mkdir(exist_ok=True)
        (context / "Dockerfile").write_text(text)
        key = hashlib.sha256(f"{self.folder}{text}".encode()).hexdigest()
        self.made.add(f"proctor-build:{key[:32]}")
        base = {"busybox:latest": image_id(self.bench.kind, BUSYBOX)}
        stages = tuple(each.last for each in parse(text, "Dockerfile") if each.keyword == "FROM")
        made = Image(context=context, dockerfile=text, stages=stages, base_ids=base, key=key)
        return replace(made, **changes)


@pytest.fixture
def builds(bench: Bench, tmp_path: Path) -> Iterator[Builds]:
    made = Builds(bench, tmp_path)
    yield made
    for tag in made.made:
        if any(tag in (row["RepoTags"] or ()) for row in call("GET", "images/json")):
            call("DELETE", f"images/{tag}", params={"force": "1"})


@pytest.fixture
def word() -> str:
    """In the commands of one test's builds, and of nobody's else."""
    return f"begun-{secrets.token_hex(8)}"


async def until_runs(word: str, runs: bool = True, over: Callable[[], object] = lambda: False) -> str:
    """Until a container does, or does not, run a command with the word, or that is over; the container's id."""
    for _ in range(20_000):
        rows = call("GET", "containers/json", params={"all": "1"})
        found = [row["Id"] for row in rows if word in row["Command"]]
        if bool(found) is runs or over():
            return "".join(found[:1])
        await asyncio.sleep(0.01)
    raise AssertionError(f"{word} runs: {not runs}")


def layers(bench: Bench) -> list[str]:
    """Ids of what the builds of this test made, but for what an image lies on."""
    rows = call("GET", "images/json", params={"filters": '{"dangling": ["true"]}'})
    return [row["Id"] for row in rows if (row["Labels"] or {}).get(BUILDING) == mark(bench.admitted)]


# --- prebuilt


def test_an_image_that_is_here_is_named_by_its_id(kind: DockerKind) -> None:
    wanted = image_id(kind, BUSYBOX)
    for pull in ("missing", "never"):
        found = kind.images([BUSYBOX, wanted], seal_probe(30), pull=pull)
        assert {name: isinstance(one, Image) and one.id for name, one in found.items()} == {
            BUSYBOX: wanted,
            wanted: wanted,
        }


@pytest.mark.parametrize(
    ("name", "pull"), [(NONE, "never"), ("sha256:" + "0" * 64, "missing"), ("Not A Name!", "never")]
)
def test_an_image_that_is_not_here_is_refused(kind: DockerKind, name: str, pull: str) -> None:
    found = kind.images([name], seal_probe(30), pull=pull)[name]
    assert isinstance(found, Refusal) and found.reason is Reason.IMAGE_MISSING


@pytest.mark.parametrize("pull", ["missing", "always"])
def test_a_registry_that_gives_nothing_is_said(kind: DockerKind, pull: str) -> None:
    name = f"127.0.0.1:9/{NONE}"  # nothing listens there
    found = kind.images([name], seal_probe(30), pull=pull)[name]
    assert isinstance(found, Refusal) and found.reason is Reason.IMAGE_MISSING and "registry" in found.message


async def test_facts_of_an_image_are_what_worlds_need(bench: Bench, builds: Builds) -> None:
    image = builds.image(
        "FROM busybox:latest\nRUN echo nobody:x:65534:65534::/:/bin/sh >> /etc/passwd\n"
        "ENV A=b B='c d'\nWORKDIR /srv/app\nVOLUME /data /more\nUSER nobody\nCMD never\n"
        'HEALTHCHECK CMD false\nENTRYPOINT ["/bin/false"]\n'
    )
    facts = await bench.kind.provide(image, bench.admitted)
    assert (facts.workdir, facts.user, facts.volumes) == ("/srv/app", "nobody", ("/data", "/more"))
    assert (facts.env["A"], facts.env["B"]) == ("b", "c d") and facts.platform.startswith("linux/")
    again = await bench.kind.provide(Image(reference="x", id=facts.id), bench.admitted)
    assert again == facts
    world = await bench.start(image=facts.id)
    _, said = await bench.run(world, 'id -u; echo "$A $B"; ls -d /srv/app; cat /proc/1/comm')
    assert said == "0\nb c d\n/srv/app\nsh\n"
    _, said = await bench.run(world, "id -un", user="nobody")
    assert said == "nobody\n"


@pytest.mark.parametrize(
    ("reference", "reason"), [(BUSYBOX, Reason.IMAGE_MOVED), (NONE, Reason.IMAGE_MISSING), (None, Reason.IMAGE_MISSING)]
)
async def test_an_image_that_went_since_is_told_from_one_that_moved(
    bench: Bench, reference: str | None, reason: Reason
) -> None:
    with pytest.raises(Refusal) as refused:
        await bench.kind.provide(Image(reference=reference, id="sha256:" + "0" * 64), bench.admitted)
    assert refused.value.reason is reason


async def test_a_world_needs_an_image_that_is_there(bench: Bench) -> None:
    for image, reason in ((None, Reason.SANDBOX_START_FAILED), ("sha256:" + "0" * 64, Reason.IMAGE_MISSING)):
        with pytest.raises(Refusal) as refused:
            await bench.start(image=image)
        assert refused.value.reason is reason


async def test_an_image_without_a_shell_is_refused_plainly(bench: Bench, builds: Builds) -> None:
    image = builds.image("FROM scratch\nCOPY Dockerfile /\n", base_ids={})
    facts = await bench.kind.provide(image, bench.admitted)
    with pytest.raises(Refusal) as refused:
        await bench.start(image=facts.id)
    assert refused.value.reason is Reason.SANDBOX_START_FAILED and '"sh"' in refused.value.message
    assert await bench.nothing_left()


async def test_an_image_without_root_in_its_tables_works(bench: Bench, builds: Builds) -> None:
    image = builds.image("FROM busybox:latest\nRUN rm -f /etc/passwd /etc/group\n")
    world = await bench.start(image=(await bench.kind.provide(image, bench.admitted)).id)
    for user in (None, "root", "0", "0:0", "root:root"):
        assert (await bench.run(world, "id -u; echo $HOME", user=user))[1] == "0\n/root\n"
    assert (await bench.run(world, "id -u; id -g", user="1234:5"))[1] == "1234\n5\n"


# --- built


async def test_what_is_built_is_used_again(bench: Bench, builds: Builds) -> None:
    image = builds.image("FROM busybox:latest\nRUN date +%N > /made\n")
    facts = await asyncio.gather(*(bench.kind.provide(image, bench.admitted) for _ in range(3)))
    assert len({each.id for each in facts}) == 1
    image = replace(image, dockerfile="FROM busybox:latest\nRUN exit 1\n")  # not looked at: same key
    assert (await DockerKind().provide(image, bench.admitted)).id == facts[0].id


async def test_a_build_that_fails_says_the_end_of_its_log(bench: Bench, builds: Builds, word: str) -> None:
    image = builds.image(f"FROM busybox:latest\nRUN seq 1 2000; echo 'it is here'; echo {word}; exit 3\n")
    with pytest.raises(Refusal) as refused:
        await bench.kind.provide(image, bench.admitted)
    assert refused.value.reason is Reason.IMAGE_BUILD_FAILED
    assert "it is here" in refused.value.message and "\n1\n" not in refused.value.message
    await until_runs(word, False)
    assert layers(bench) == []


@pytest.mark.parametrize(
    "text",
    [
        "FROM busybox:latest\nRUN echo one\nRUN exit 3",
        "fRoM --platform=linux \\\n# which one\n  busybox:latest \\\n\n as first\nRUN true\nCOPY / /x\nRUN exit 3\n",
        "# escape=`\nFROM `\nbusybox:latest\nRUN echo `\none\nRUN exit 3\n",
        "ARG WHICH=latest\nFROM busybox:$WHICH AS one\nRUN echo one\nFROM scratch\nCOPY --from=one /bin /bin\n"
        "FROM one\nRUN exit 3\n",
        "FROM busybox:latest\r\nRUN echo one\r\nRUN exit 3\r\n",
        "FROM busybox:latest",
        "FROM busybox:latest AS one\nRUN echo one > /one\nFROM busybox:latest\nCOPY --from=one /one /one",
    ],
    ids=["plain", "odd", "escape", "stages", "crlf", "good", "good stages"],
)
async def test_of_builds_nothing_but_images_stays(bench: Bench, builds: Builds, text: str) -> None:
    image = builds.image(text)
    try:
        await bench.kind.provide(image, bench.admitted)
        good = True
    except Refusal as refusal:
        assert refusal.reason is Reason.IMAGE_BUILD_FAILED and "returned a non-zero code: 3" in refusal.message
        assert BUILDING not in refusal.message
        good = False
    assert good is ("exit" not in text) and layers(bench) == []


async def test_builds_of_one_run_share_layers_and_are_left_alone_while_another_fails(
    bench: Bench, builds: Builds, word: str
) -> None:
    shared = "FROM busybox:latest AS one\nRUN date +%s%N > /made\n"
    first = await bench.kind.provide(builds.image(shared), bench.admitted)
    # its first stage is no image's, and nothing runs in it
    waits = f"echo {word}; until test -e /go; do sleep 0.1; done"
    rest = f"RUN echo two > /two\nFROM busybox:latest\nRUN {waits}\nCOPY --from=one /made /two /\n"
    coming = asyncio.create_task(bench.kind.provide(builds.image(shared + rest), bench.admitted))
    container = await until_runs(word)
    with pytest.raises(Refusal):
        await bench.kind.provide(builds.image(shared + "RUN exit 3\n"), bench.admitted)
    docker("exec", container, "touch", "/go")
    said = [(await bench.run(await bench.start(image=facts.id), "cat /made"))[1] for facts in (first, await coming)]
    assert said[0] == said[1] and layers(bench) == []


@pytest.mark.parametrize("ignore", [None, "", ".dockerignore\nx"])
async def test_an_image_holds_its_context_and_nothing_of_who_built_it(
    bench: Bench, builds: Builds, ignore: str | None
) -> None:
    text = f"FROM busybox:latest\nCOPY . /all/\n# {ignore!r}\n"
    image = builds.image(text)
    (image.context / "x").write_text("")
    (image.context / "y").write_text("")
    if ignore is not None:
        (image.context / ".dockerignore").write_text(ignore)
    world = await bench.start(image=(await bench.kind.provide(image, bench.admitted)).id)
    _, said = await bench.run(world, "cd /all; ls -A; cat Dockerfile")
    names = {
        None: ["Dockerfile", "x", "y"],
        "": [".dockerignore", "Dockerfile", "x", "y"],
        # all else is its caller's to leave out
        ".dockerignore\nx": ["Dockerfile", "x", "y"],
    }[ignore]
    assert said == "".join(f"{name}\n" for name in names) + text


@pytest.mark.parametrize("how", ["cancelled", "deadline"])
async def test_nothing_of_a_build_that_is_broken_off_stays(bench: Bench, builds: Builds, how: str, word: str) -> None:
    seconds = 3.0 if how == "deadline" else 600.0
    image = builds.image(f"FROM busybox:latest\nRUN echo {word} && sleep 98761\n", timeout_sec=seconds)
    coming = asyncio.create_task(bench.kind.provide(image, bench.admitted))

    await until_runs(word, over=coming.done)
    if how == "cancelled":
        coming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await coming
    else:
        with pytest.raises(Refusal) as refused:
            await coming
        assert refused.value.reason is Reason.IMAGE_BUILD_FAILED
    await until_runs(word, False)
    assert layers(bench) == []


async def test_a_base_that_moved_is_refused(bench: Bench, builds: Builds) -> None:
    for ids in ({"busybox:latest": "sha256:" + "0" * 64}, {NONE: "sha256:" + "0" * 64}):
        image = builds.image("FROM busybox:latest\n", base_ids=ids)
        with pytest.raises(Refusal) as refused:
            await bench.kind.provide(image, bench.admitted)
        assert refused.value.reason is Reason.IMAGE_MOVED


async def test_a_context_that_cannot_be_sent_is_refused(bench: Bench, builds: Builds) -> None:
    image = builds.image("FROM busybox:latest\nCOPY . /\n")
    os.mkfifo(image.context / "pipe")
    with pytest.raises(Refusal) as refused:
        await bench.kind.provide(image, bench.admitted)
    assert refused.value.reason is Reason.PATH_UNSAFE
