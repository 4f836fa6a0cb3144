"""Files into a world and out of it, in every kind of sandbox, also where an agent laid traps. Runs again as others."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from each_kind import Bench, bench

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Fetched, PutItem, Sandbox, Tier

__all__ = ["bench"]
pytestmark = pytest.mark.real


async def fetch(world: Sandbox, into: Path, *paths: str, size: int = 1 << 20, files: int = 100) -> list[Fetched]:
    return await world.get(paths, into, cap_bytes=size, cap_files=files)


async def test_a_folder_comes_back_as_it_was_put(bench: Bench, tmp_path: Path) -> None:
    source = tmp_path / "source"
    undecodable = os.fsdecode(b"\xff -dash *")
    (source / "deep/er").mkdir(parents=True)
    (source / "empty").mkdir()
    (source / "deep/er/run.sh").write_bytes(b"#!/bin/sh\n")
    (source / "deep/er/run.sh").chmod(0o755)
    (source / "data").write_bytes(bytes(range(256)) * 3000)
    (source / "-new\nline *\u2028").write_bytes(b"odd")
    (source / undecodable).write_bytes(b"no name for a record")
    (source / "link").symlink_to("/etc/passwd")
    with (source / "sparse").open("wb") as file:
        file.truncate(3 << 20)
        file.seek(1 << 20)
        file.write(b"x")
    world = await bench.start()
    await world.put([PutItem("/work/tree", source=source)])
    _, said = await bench.run(
        world, "cd /work/tree; readlink link; stat -c %a deep/er/run.sh; ls -d empty; stat -c %s sparse"
    )
    assert said == f"/etc/passwd\n755\nempty\n{3 << 20}\n"
    found = {one.path: one for one in await fetch(world, tmp_path / "got", "/work/tree", size=10 << 20)}
    assert found["/work/tree/link"].skipped == "link" and found["/work/tree/link"].host_path is None
    for path in source.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.name != undecodable:
            one = found[f"/work/tree/{path.relative_to(source)}"]
            assert one.host_path is not None and one.host_path.read_bytes() == path.read_bytes()
            assert one.size == path.stat().st_size
            assert one.host_path.stat().st_mode & 0o100 == path.stat().st_mode & 0o100
    assert found[f"/work/tree/{undecodable}"].skipped == "name is no UTF-8"
    assert found["/work/tree/empty"].skipped == "empty folder" and not (tmp_path / "got/work/tree/empty").exists()
    assert {path for path, one in found.items() if one.skipped} == {
        f"/work/tree/{name}" for name in ("link", "empty", undecodable)
    }
    assert await fetch(world, tmp_path / "got", "/work/tree/empty") == []  # nothing to bring is nothing dropped
    ended, _ = await bench.run(world, "cd /work/tree && cat ./*dash*")
    assert ended.exit_code == 0
    ended, _ = await bench.run(world, "", argv=("cat", f"/work/tree/{undecodable}"))
    # an engine's API has no word for such names
    assert ended.exit_code == 0 or (bench.has_images and "UTF-8" in (ended.start_error or ""))


async def test_content_modes_and_empty_folders_are_put(bench: Bench) -> None:
    world = await bench.start()
    await world.put(
        [
            PutItem("/logs/verifier", mode=0o777),
            PutItem("/tests/test.sh", content=b"exit 0", mode=0o755),
            PutItem("/tests/test.sh", content=b"exit 3", mode=0o700),
            PutItem("/empty", content=b""),
        ]
    )
    _, said = await bench.run(world, "stat -c '%a %F' /logs/verifier /tests/test.sh /empty; /tests/test.sh; echo $?")
    assert said == "777 directory\n700 regular file\n644 regular empty file\n3\n"


async def test_putting_into_a_folder_keeps_its_mode_and_its_files(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir(mode=0o700)
    (tmp_path / "source/new").write_text("new")
    world = await bench.start()
    await bench.run(world, "mkdir -m 755 /app; echo old > /app/old")
    await world.put([PutItem("/app", source=tmp_path / "source")])
    _, said = await bench.run(world, "stat -c %a /app; cat /app/old /app/new")
    assert said == "755\nold\nnew"


async def test_an_owner_is_looked_up_inside(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "source/in").mkdir(parents=True)
    (tmp_path / "source/in/file").write_text("x")
    world = await bench.start()
    items = [PutItem("/theirs", source=tmp_path / "source", owner="www-data")]
    if world.facts["tier"] == Tier.ORDINARY.value:
        with pytest.raises(Refusal) as refused:
            await world.put(items)
        assert refused.value.reason is Reason.TASK_NEEDS_ROOT
        return
    await world.put(items)
    _, said = await bench.run(world, "stat -c %U:%G /theirs /theirs/in /theirs/in/file")
    assert said == "www-data:www-data\n" * 3
    with pytest.raises(Refusal) as refused:
        await world.put([PutItem("/x", content=b"", owner="nobody-knows")])
    assert refused.value.reason is Reason.INVALID_VALUE


@pytest.mark.parametrize("target", ["relative", "/a/../../etc", "", "/a\0b", "/a\ud800"])
async def test_targets_must_be_plain(bench: Bench, target: str) -> None:
    world = await bench.start()
    with pytest.raises(Refusal) as refused:
        await world.put([PutItem(target, content=b"")])
    assert refused.value.reason is Reason.PATH_UNSAFE
    with pytest.raises(Refusal) as refused:
        await fetch(world, bench.folder / "got", target)
    assert refused.value.reason is Reason.PATH_UNSAFE


async def test_a_special_file_in_a_source_is_refused(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    os.mkfifo(tmp_path / "source/pipe")
    world = await bench.start()
    with pytest.raises(Refusal) as refused:
        await world.put([PutItem("/app", source=tmp_path / "source")])
    assert refused.value.reason is Reason.PATH_UNSAFE


async def test_links_inside_never_lead_a_put_to_the_host(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("untouched")
    world = await bench.start()
    await bench.run(
        world,
        f"o={outside}; mkdir -p $o; ln -s $o /logs; ln -s $o/file /reward; ln -s $o /tests",
    )
    await world.put(
        [PutItem("/logs/file", content=b"1"), PutItem("/reward", content=b"2"), PutItem("/tests", mode=0o755)]
    )
    assert (outside / "file").read_text() == "untouched" and sorted(outside.iterdir()) == [outside / "file"]
    _, said = await bench.run(world, f"cat {outside}/file /reward; stat -c %F /reward /tests")
    assert said == "12regular file\ndirectory\n"


async def test_links_inside_never_lead_a_get_out(bench: Bench, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    world = await bench.start()
    await bench.run(
        world,
        f"mkdir -p /logs/verifier /real; ln -s /etc/passwd /logs/verifier/reward.txt; ln -s {secret} /logs/host;"
        f" ln -s {tmp_path} /logs/up; ln -s /proc/1/root /logs/root; ln -s / /logs/loop;"
        " ln -s /real /alias",
    )
    got = tmp_path / "got"
    found = await fetch(
        world, got, "/logs", "/logs/up/secret", "/logs/root/etc/passwd", "/proc/1/environ", "/alias", "/logs/none"
    )
    assert {one.path: one.skipped for one in found} == {
        "/logs/host": "link",
        "/logs/loop": "link",
        "/logs/root": "link",
        "/logs/up": "link",
        "/logs/verifier/reward.txt": "link",
        "/logs/up/secret": "not there",
        "/logs/root/etc/passwd": "not there" if bench.has_images else "Permission denied",
        "/proc/1/environ": "kernel file",
        "/alias": "link",
        "/logs/none": "not there",
    } | {one.path: None for one in found if one.path == "/logs/root/etc/passwd" and one.skipped is None}
    for path in got.rglob("*"):
        assert path.is_dir() or path.read_bytes() != b"of the host"


async def test_special_files_are_never_opened(bench: Bench, tmp_path: Path) -> None:
    world = await bench.start()
    await bench.run(
        world,
        "mkdir /logs; mkfifo /logs/pipe; "
        " python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"/logs/sock\")'; echo good > /logs/file",
    )
    found = {one.path: one.skipped for one in await fetch(world, tmp_path / "got", "/logs", "/dev/zero")}
    # an engine leaves sockets out
    sockets = {} if bench.has_images else {"/logs/sock": "special file"}
    zero = "kernel file" if bench.has_images else "special file"
    assert found == {"/logs/pipe": "special file", **sockets, "/logs/file": None, "/dev/zero": zero}


async def test_caps_hold(bench: Bench, tmp_path: Path) -> None:
    world = await bench.start()
    await bench.run(
        world,
        "mkdir /logs; truncate -s 2T /logs/huge; echo small > /logs/a; echo small > /logs/b; mkdir /many;"
        " cd /many; seq 3000 | xargs touch",
    )
    found = {one.path: one.skipped for one in await fetch(world, tmp_path / "got", "/logs", size=8)}
    # what an engine sends of a file must be read to its end
    after = ": what comes after it is not looked at" if bench.has_images else ""
    assert found == {"/logs/a": None, "/logs/b": "cap of bytes", "/logs/huge": f"cap of bytes{after}"}
    many = await fetch(world, tmp_path / "got", "/many", files=50)
    assert len(many) == 51 and many[-1].skipped == "cap of files: 2,950 more left out"
    assert sum(one.skipped is None for one in many) == 50


async def test_what_is_fetched_is_owned_by_the_runner_and_has_no_powers(bench: Bench, tmp_path: Path) -> None:
    world = await bench.start()
    await bench.run(world, "mkdir /o; echo x > /o/s; chmod 6777 /o/s; echo y > /o/n; chmod 000 /o/n")
    for one in await fetch(world, tmp_path / "got", "/o"):
        assert one.host_path is not None
        info = one.host_path.stat()
        assert info.st_uid == os.geteuid() and not info.st_mode & (stat.S_ISUID | stat.S_ISGID)
        assert one.host_path.read_text() in ("x\n", "y\n")


async def test_a_deep_tree_ends(bench: Bench, tmp_path: Path) -> None:
    world = await bench.start()
    deep = "import os\nos.mkdir('/deep')\nos.chdir('/deep')\n"
    deep += "for i in range(1200):\n  os.mkdir('d' * 20)\n  os.chdir('d' * 20)\n"
    ended, said = await bench.run(world, "", argv=("python3", "-c", deep))
    assert ended.exit_code == 0, said
    found = await fetch(world, tmp_path / "got", "/deep")
    assert [one.skipped for one in found] == ["path too long"]
    await world.stop()
    assert await bench.nothing_left()


async def test_a_get_overwrites_what_an_earlier_one_brought(bench: Bench, tmp_path: Path) -> None:
    world = await bench.start()
    for text in ("one", "two"):
        await world.put([PutItem("/f", content=text.encode())])
        found = await fetch(world, tmp_path / "got", "/f")
        assert found[0].host_path is not None and found[0].host_path.read_text() == text


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (PutItem("/x", source=Path("/no/such/source")), Reason.FILE_UNREADABLE),
        (PutItem("/etc/passwd/x", content=b""), Reason.PATH_UNSAFE),
        (PutItem("/etc", content=b""), Reason.PATH_UNSAFE),
        (PutItem("/" + "n" * 300, content=b""), Reason.PATH_UNSAFE),
        (PutItem("/dev/x", content=b""), Reason.PATH_UNSAFE),
    ],
)
async def test_what_cannot_be_put_is_a_typed_refusal_and_the_world_goes_on(
    bench: Bench, item: PutItem, reason: Reason
) -> None:
    world = await bench.start()
    with pytest.raises(Refusal) as refused:
        await world.put([PutItem("/first", content=b"1"), item])
    assert refused.value.reason is reason
    assert (await bench.run(world, "echo on"))[1] == "on\n"


@pytest.mark.parametrize(
    "trap",
    ["ln -s /etc/passwd /v", "mkdir -p /v/a/b; chmod 0 /v/a", "mkfifo /v", "echo 1 > /v", "ln -s /etc /v", "true"],
)
@pytest.mark.parametrize("content", [b"new", None])
async def test_a_fresh_put_inherits_nothing(bench: Bench, trap: str, content: bytes | None) -> None:
    world = await bench.start()
    await bench.run(world, trap)
    await world.put([PutItem("/v", content=content, mode=0o755, fresh=True)])
    _, said = await bench.run(
        world, "stat -c '%F %a' /v; ls -A /v; cat /v 2>/dev/null; head -c 4 /etc/passwd; ls -d /etc"
    )
    what = "regular file 755\n/v\nnew" if content else "directory 755\n"
    assert said == f"{what}root/etc\n"


async def test_what_is_mounted_is_not_replaced(bench: Bench) -> None:
    world = await bench.start()
    mounted = ("/etc", "/etc/hosts", "/dev/shm") if bench.has_images else ("/usr",)
    for target in ("/", "/proc", *mounted):
        with pytest.raises(Refusal) as refused:
            await world.put([PutItem(target, fresh=True)])
        assert refused.value.reason is Reason.PATH_UNSAFE
    assert (await bench.run(world, "ls /usr/bin/env"))[0].exit_code == 0


@pytest.mark.parametrize(
    "trap",
    [
        "mkfifo /etc/passwd /etc/group",
        "ln -s /dev/zero /etc/passwd; ln -s /dev/zero /etc/group",
        "truncate -s 10G /etc/passwd /etc/group",
        "mkdir /etc/passwd /etc/group",
        "ln -s passwd /etc/passwd; ln -s /dev/tty /etc/group",
        "printf 'root:x:1:1::/nowhere:/bin/sh\\n0:x:1:1::/nowhere:/bin/sh\\n' > /etc/passwd",
        "(printf 'root:x:'; head -c 100000 /dev/zero | tr '\\0' 1; echo ':0::/:/bin/sh') > /etc/passwd",
        "true",
    ],
)
async def test_a_world_whose_tables_are_traps_still_runs_commands(bench: Bench, trap: str) -> None:
    world = await bench.start()
    await bench.run(world, f"rm /etc/passwd /etc/group; {trap}")
    for user in (None, "root", "0", "root:0"):
        ended, said = await bench.run(world, "cat /proc/self/uid_map > /dev/null; id -u; id -g; echo $HOME", user=user)
        assert (ended.exit_code, said) == (0, "0\n0\n/root\n")
    await world.put([PutItem("/mine", content=b"x", owner="root")])
    ended, _ = await bench.run(world, "true", user="www-data")
    assert "www-data" in (ended.start_error or "")
