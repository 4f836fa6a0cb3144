"""What an agent finds when it looks for the host. Runs again as an ordinary user."""

from __future__ import annotations

import asyncio
import os
import sysconfig
from pathlib import Path

import pytest
from namespace_bench import Bench, admitted, bench, kind

from proctor.core.tokens import seal_probe
from proctor.sandbox.base import Exec, Limits, PutItem, Tier

__all__ = ["admitted", "bench", "kind"]
pytestmark = pytest.mark.real

SOURCES = Path(__file__).resolve().parent.parent.parent


async def test_nothing_in_proc_names_a_path_of_the_host(bench: Bench) -> None:
    world = await bench.start()
    look = (
        "import os, glob\n"
        "for name in glob.glob('/proc/[0-9]*/*') + glob.glob('/proc/[0-9]*/task/*/*') + glob.glob('/proc/*'):\n"
        "    if os.path.isfile(name) and not os.path.islink(name) and '/kpage' not in name:\n"
        "        try: print(open(name, 'rb').read(1 << 20))\n"
        "        except OSError: pass\n"
        "    elif os.path.islink(name):\n"
        "        try: print(os.readlink(name))\n"
        "        except OSError: pass\n"
        "for link in glob.glob('/proc/[0-9]*/fd/*'):\n"
        "    try: print(os.readlink(link))\n"
        "    except OSError: pass\n"
    )
    _, said = await bench.run(world, "", argv=("python3", "-c", look), output_cap=64 << 20)
    assert "/oldroot/" in said  # the mount table was read
    for path in (bench.scratch, bench.folder, SOURCES):
        assert str(path) not in said


async def test_files_of_the_host_are_not_there(bench: Bench, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    world = await bench.start()
    for path in (secret, SOURCES / "pyproject.toml", Path(__file__)):
        for way in ("", "/proc/1/root", "/proc/self/root", "/proc/1/cwd", "/proc/self/cwd", "/oldroot", "/.."):
            ended, said = await bench.run(world, f"cat '{way}{path}'")
            assert ended.exit_code != 0 and "of the host" not in said


async def test_etc_holds_nothing_of_the_hosts_users_and_keys(bench: Bench) -> None:
    world = await bench.start()
    _, said = await bench.run(world, "cut -d: -f2 /etc/shadow | sort -u; cd /; ls -d etc/ssl/private etc/ssh root/.ssh")
    assert said.splitlines()[0] == "*" and said.count("No such file") == 3
    _, said = await bench.run(world, "ls -A /home /opt /srv /root /mnt | grep -v :; true")
    assert said.strip() == ""


async def test_hidden_paths_below_shown_ones_are_not_there(bench: Bench) -> None:
    folder = next(path for path in sorted(Path("/usr/share").iterdir()) if path.is_dir() and not path.is_symlink())
    file = next(path for path in sorted(Path("/usr/bin").iterdir()) if path.is_file() and not path.is_symlink())
    world = await bench.start(hidden=(folder, file, Path("/usr/share/never-was-there")))
    _, said = await bench.run(world, f"ls -d {folder} {file}; ls -d /usr/src; ls /usr/share | wc -l")
    assert said.count("No such file") == 3
    ended, _ = await bench.run(world, f"mkdir {folder} && echo mine > {folder}/x && cat {folder}/x && ls -A {folder}")
    assert ended.exit_code == 0


async def test_a_command_cannot_mount_trace_or_make_namespaces(bench: Bench) -> None:
    world = await bench.start()
    script = (
        "mkdir -p /m; for c in 'mount -t tmpfs x /m' 'mount --bind / /m' 'umount /proc' 'unshare -U true'"
        " 'unshare -m true' 'unshare -r true' 'nsenter -t 1 -m true' 'nsenter -t 1 -U true' 'hostname other' 'dmesg'"
        " 'chroot /proc/1/root /bin/mount -t tmpfs x /m' 'mknod /n b 8 0' 'cat /proc/1/environ' 'cat /proc/1/fd/0'"
        " 'readlink /proc/1/exe' 'date -s 2000-01-01'; do $c >/dev/null 2>&1 && echo \"$c\"; done; true"
    )
    _, said = await bench.run(world, script)
    assert said == ""


async def test_kernel_settings_cannot_be_written(bench: Bench) -> None:
    world = await bench.start()
    before = Path("/proc/sys/kernel/core_pattern").read_text()
    script = (
        "for f in kernel/core_pattern kernel/modprobe kernel/hostname vm/overcommit_memory fs/file-max"
        " kernel/ns_last_pid user/max_user_namespaces; do"
        ' v=$(cat /proc/sys/$f 2>/dev/null); (echo "$v" > /proc/sys/$f) 2>/dev/null && echo $f; done;'
        " (echo h > /proc/sysrq-trigger) 2>/dev/null && [ ! -c /proc/sysrq-trigger ] && echo sysrq; true"
    )
    _, said = await bench.run(world, script)
    assert said == ""
    assert Path("/proc/sys/kernel/core_pattern").read_text() == before


async def test_system_calls_that_reach_beyond_are_denied(bench: Bench) -> None:
    world = await bench.start()
    script = (
        "import ctypes, errno, os, platform, socket\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "x = platform.machine() == 'x86_64'\n"
        "calls = {'keyctl': 250 if x else 219, 'bpf': 321 if x else 280, 'perf_event_open': 298 if x else 241,\n"
        "  'init_module': 175 if x else 105, 'open_by_handle_at': 304 if x else 265, 'io_uring_setup': 425,\n"
        "  'mount': 165 if x else 40, 'move_mount': 429, 'setns': 308 if x else 268, 'unshare': 272 if x else 97}\n"
        "for name, number in calls.items():\n"
        "    r = c.syscall(number, 0x10000000, 0, 0, 0, 0)\n"
        "    if r != -1 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS): print(name, r, ctypes.get_errno())\n"
        "for family in (40, 38, 31):\n"
        "    try: socket.socket(family, socket.SOCK_STREAM); print('family', family)\n"
        "    except OSError as e: assert e.errno == errno.EAFNOSUPPORT, e\n"
        "if x:\n"
        "    r = c.syscall(0x40000000 + 39)\n"
        "    if r != -1 or ctypes.get_errno() != errno.ENOSYS: print('x32', r)\n"
        "pid = os.fork()\n"
        "if pid == 0: os._exit(3)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    _, said = await bench.run(world, "", argv=("python3", "-c", script))
    assert said == "3\n"


async def test_what_keeps_the_world_cannot_be_traced(bench: Bench) -> None:
    world = await bench.start()
    script = (
        "import ctypes, errno, os\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "for request in (16, 0x4206):\n"
        "    print(c.ptrace(request, 1, 0, 0), ctypes.get_errno() == errno.EPERM)\n"
        "for name in ('mem', 'maps', 'environ', 'auxv', 'stack', 'syscall'):\n"
        "    try: print(name, open(f'/proc/1/{name}', 'rb').read(10))\n"
        "    except OSError as e: pass\n"
        "child = os.fork()\n"
        "if child == 0: os.kill(os.getpid(), 19); os._exit(0)\n"
        "print(c.ptrace(16, child, 0, 0))\n"
    )
    _, said = await bench.run(world, "", argv=("python3", "-c", script))
    assert said == "-1 True\n-1 True\n0\n"


DESCRIPTORS = (
    "import os\n"
    "found = []\n"
    "for number in range(1 << 16):\n"
    "    try: os.fstat(number)\n"
    "    except OSError: continue\n"
    "    found.append(number)\n"
    "print(found)\n"
)


async def test_a_command_has_three_descriptors_and_no_other(bench: Bench, tmp_path: Path) -> None:
    world = await bench.start(limits=Limits(pids=64, storage_bytes=1 << 30))
    errors = tmp_path / "err"
    for changes in ({}, {"stdin": b"in"}, {"stderr": errors}, {"env": {"A": "1"}}, {"user": "0"}):
        _, said = await bench.run(world, "", argv=("python3", "-c", DESCRIPTORS), **changes)
        assert said == "[0, 1, 2]\n"
    _, said = await bench.run(world, "ls /proc/self/fd")  # and the one by which it lists
    assert said == "0\n1\n2\n3\n"
    command = bench.kind.enter(bench.scratch)
    assert command is not None
    pipe = asyncio.subprocess.PIPE
    shell = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    shown, _ = await shell.communicate(f"exec python3 -c '{DESCRIPTORS}'".encode())
    assert shown == b"[0, 1, 2]\n"


async def test_what_serves_a_world_cannot_be_reached_from_inside(bench: Bench, tmp_path: Path) -> None:
    """While requests are served, a command looks for processes beside its own and tries to get at what they hold."""
    script = (
        "import ctypes, os, time\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "print('begun', flush=True)\n"
        "others = set()\n"
        "while not os.path.exists('/stop'):\n"
        "    for name in set(os.listdir('/proc')) | {'1'}:\n"
        "        if not name.isdecimal() or int(name) == os.getpid(): continue\n"
        "        others.add(name)\n"
        "        for what in ('cwd', 'root', 'exe', 'fd/0', 'fd/3', 'fd/8'):\n"
        "            try: print(what, os.readlink('/proc/' + name + '/' + what))\n"
        "            except OSError: pass\n"
        "        for what in ('mem', 'environ', 'maps'):\n"
        "            try: held = open('/proc/' + name + '/' + what, 'rb').read(1)\n"
        "            except OSError: continue\n"
        "            if held: print(what, name)\n"  # a dead process has empty ones
        "        for request in (16, 0x4206):\n"
        "            if c.ptrace(request, int(name), 0, 0) == 0: print('traced', name)\n"
        "        held = c.syscall(434, int(name), 0)\n"
        "        for number in range(12):\n"
        "            if held >= 0 and c.syscall(438, held, number, 0) >= 0: print('took', name, number)\n"
        "        if held >= 0: os.close(held)\n"
        "print('ended', '1' in others)\n"
    )
    world = await bench.start()
    users = [None] if world.facts["tier"] == Tier.ORDINARY.value else [None, "nobody"]
    for user in users:
        out = bench.folder / "looking"
        command = Exec(("python3", "-c", script), stdout=out, user=user, deadline_sec=1200)
        looking = asyncio.ensure_future(world.exec(command))
        await _says(out, "begun\n")
        for _ in range(10):
            await world.put([PutItem("/data/file", content=b"1" * (1 << 20))])
            await world.get(["/data"], tmp_path / "got", cap_bytes=1 << 30, cap_files=10)
            await world.freeze()
            await world.thaw()
        await world.put([PutItem("/stop", content=b"")])
        ended = await looking
        assert (ended.exit_code, out.read_text()) == (0, "begun\nended True\n")
        await bench.run(world, "rm /stop")
        out.unlink()


async def _says(path: Path, text: str) -> None:
    for _ in range(20_000):
        if path.exists() and path.read_text() == text:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{path} does not say {text!r}")


async def test_a_set_user_id_program_gives_nothing(bench: Bench) -> None:
    world = await bench.start()
    if world.facts["tier"] != Tier.PRIVILEGED.value:
        pytest.skip("one user inside only")
    await bench.run(world, "cp /usr/bin/id /id; chmod 4755 /id; cp /bin/dash /sh; chmod 4755 /sh")
    _, said = await bench.run(world, "/id -u; /sh -p -c 'cat /etc/shadow'", user="nobody")
    assert said.startswith("65534\n") and "root:" not in said


async def test_worlds_do_not_see_each_other(bench: Bench) -> None:
    one, other = await bench.start(), await bench.start()
    await one.put([PutItem("/opt/mine", content=b"one")])
    await bench.run(one, "echo one > /tmp/mine; echo one > /usr/mine; echo one > /dev/shm/mine")
    _, said = await bench.run(other, "ls /opt /tmp /dev/shm; ls /usr/mine; ps -e | wc -l")
    assert "mine\n" not in said.replace("/usr/mine", "")
    assert not Path("/usr/mine").exists()


async def test_the_facts_say_what_is_shown(bench: Bench) -> None:
    world = await bench.start()
    assert world.facts["usr_src"] == "hidden" and world.facts["usr_local"] == "shown"
    assert world.facts["tier"] == ("privileged" if os.geteuid() == 0 else "ordinary")
    facts = bench.kind.probe(seal_probe(60)).facts
    assert "/usr" in facts["shown_of_host"]


async def test_what_enters_a_world_loads_nothing_from_it(bench: Bench) -> None:
    world = await bench.start()
    library = sysconfig.get_path("stdlib")
    trap = "open('/pwned', 'a').write(__name__ + chr(10))\n"
    names = [
        "encodings/__init__.py",
        "encodings/ascii.py",
        "encodings/idna.py",
        "traceback.py",
        "linecache.py",
        "pwd.py",
    ]
    names += ["warnings.py", "errno.py", "sitecustomize.py", "usercustomize.py", "copyreg.py", "pickle.py"]
    folders = dict.fromkeys([library, f"{library}/lib-dynload", f"{SOURCES}/src", "/", str(Path(library).parent)])
    if world.facts["tier"] != Tier.PRIVILEGED.value:  # the host's own libraries cannot be changed there at all
        folders = {folder: None for folder in folders if not folder.startswith("/usr/")}
    await world.put([PutItem(f"{folder}/{name}", content=trap.encode()) for folder in folders for name in names])
    await bench.run(world, "setsid sleep 1000 & true")
    await bench.run(world, "true", user="no-such-user")
    await bench.run(world, "true", cwd="/n\udcff")
    await bench.run(world, "", argv=("/\udcff",))
    await world.get(["/etc", "/none"], bench.folder / "got", cap_bytes=1 << 20, cap_files=1000)
    await world.kill_all()
    _, said = await bench.run(world, "cat /pwned")
    assert "No such file" in said, said


async def test_where_a_world_lies_may_have_any_name(bench: Bench) -> None:
    bench.scratch = bench.folder / "odd :,\\ name\n%s" / ("long" * 60) / ("long" * 60)
    world = await bench.start()
    await bench.run(world, "echo x > /f")
    snapshot = await world.capture()
    forked = await bench.kind.fork(snapshot, bench.spec(), bench.admitted)
    bench.worlds.append(forked)
    assert (await bench.run(forked, "cat /f"))[1] == "x\n"
    await forked.stop()
    bench.kind.release(snapshot, bench.admitted)
    assert bench.left() == []
