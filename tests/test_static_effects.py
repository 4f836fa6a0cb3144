"""The rule that nothing acts before admission bites: each way around it is planted, beside a corrected twin."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from static_effects import Sources, reachable_effects

HEAD = "import os, socket, subprocess\nfrom pathlib import Path\nfrom house.core.tokens import Admitted\n"
TWO_HOPS = """
== study/load.py
from house.tasks.read import read
def load(p): return read(p)
== tasks/read.py
from house.core.keep import keep
def read(p): return keep(p)
== core/keep.py
def keep(p): @
"""


@dataclass(frozen=True)
class Way:
    """Sources with a hole `@`, what to put in so that something acts, and what so that nothing does."""

    files: str
    acts: str
    rests: str

    def findings(self, folder: Path, filling: str) -> list[str]:
        """What the rule says of `house.study` with that filling."""
        text = "== core/tokens.py\nclass Admitted: ...\n" + self.files.replace("@", filling)
        for part in text.split("== ")[1:]:
            name, _, body = part.partition("\n")
            file = folder / "house" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(body if name == "core/tokens.py" else HEAD + body)
        reached = reachable_effects(Sources(folder, "house"), ["house.study"], hops=2)
        return [str(finding) for finding in reached.findings]


def here(line: str) -> str:
    return f"== study/load.py\n{line}\n"


WAYS = {
    "a program is started": Way(here("def load(p@): subprocess.run(['git'])"), "", ", token: Admitted"),
    "under another name": Way(
        here("from subprocess import Popen as Look, TimeoutExpired as Late\ndef load(p): return @('git', 1)"),
        "Look",
        "Late",
    ),
    "a file is written two hops away": Way(TWO_HOPS, "p.write_text('x')", "return p.read_text()"),
    "through a package that hands names on": Way(
        "== study/load.py\nfrom house.tasks import read\ndef load(p): return read(p)\n"
        "== tasks/__init__.py\nfrom .reader import read\n"
        "== tasks/reader.py\ndef read(p): return p.@()\n",
        "mkdir",
        "iterdir",
    ),
    "as a callback": Way(
        here("import asyncio\ndef save(p): p.@()\nasync def load(p): await asyncio.to_thread(save, p)"),
        "touch",
        "stat",
    ),
    "in the argument list of admission": Way(
        here("def engine(@): return os.fork()\ndef admit(e): ...\ndef load(): admit(engine())"),
        "",
        "token: Admitted",
    ),
    "in a default argument": Way(here("def load(out=subprocess.@): return out"), "check_output(['git'])", "PIPE"),
    "when the module is imported": Way(here("CACHE = Path('cache')\n@"), "CACHE.mkdir()", "CACHE.exists()"),
    "by a method of what is handed in": Way(
        "== study/load.py\nfrom house.core.disk import Disk\ndef load(disk: 'Disk'): disk.put()\n"
        "== core/disk.py\nclass Base:\n    def put(self): os.rename('a', 'b')\n"
        "class Disk(Base):\n    def __init__(self, token@): ...\n",
        "",
        ": Admitted",
    ),
    "by a method of what is made": Way(
        here("class Disk:\n    def put(self): @\ndef load():\n    disk = Disk()\n    disk.put()"),
        "os.unlink('a')",
        "os.stat('a')",
    ),
    "by a method of what something keeps": Way(
        here(
            "class Disk:\n    def put(self): @\nclass Folder:\n    def __init__(self, disk: Disk | None = None):\n"
            "        self.disk = disk if disk is not None else Disk()\n    def create(self): self.disk.put()\n"
            "def folder() -> Folder: ...\ndef load(): folder().create()"
        ),
        "os.rename('a', 'b')",
        "os.stat('a')",
    ),
    "behind a protocol": Way(
        here(
            "from typing import Protocol\nclass Kind(Protocol):\n    def probe(self) -> None: ...\n"
            "def load(kind: Kind): kind.probe()\n== sandbox/docker.py\nclass Docker:\n    def probe(self): @"
        ),
        "subprocess.run(['docker'])",
        "os.stat('docker')",
    ),
    "by a constructor": Way(
        here("class Client:\n    def __init__(self): self.s = socket.@\ndef load(): return Client()"),
        "socket()",
        "AF_UNIX",
    ),
    "more than by an annotation": Way(
        here("def load(made: 'socket.socket' = None, @) -> subprocess.Popen: ..."), "out=socket.socket()", "out=None"
    ),
    "by a token that may be absent": Way(here("def load(token: Admitted@): Path('x').unlink()"), " | None", ""),
    "by a file opened to write": Way(here("def load(p): open(p, '@')"), "r+", "rb"),
    "by a path opened in a mode that is not known": Way(here("def load(p, mode): p.open(@)"), "mode", ""),
    "by a descriptor opened to write": Way(
        here("def load(p): os.open(p, os.O_RDONLY | os.@)"), "O_CREAT", "O_NOFOLLOW"
    ),
    "by a file put in the place of another": Way(here("def load(p): p.replace(@)"), "'q'", "'q', 'r'"),
    "over the network": Way(
        here("def load(url):\n    import urllib.request, urllib.parse\n    return urllib.@(url)"),
        "request.urlopen",
        "parse.urlsplit",
    ),
    "by text that is run": Way(here("import ast\ndef load(text): return @(text)"), "eval", "ast.literal_eval"),
}


@pytest.mark.parametrize("name", WAYS)
def test_a_planted_effect_is_found(name: str, tmp_path: Path) -> None:
    assert WAYS[name].findings(tmp_path, WAYS[name].acts)


@pytest.mark.parametrize("name", WAYS)
def test_its_corrected_twin_is_not(name: str, tmp_path: Path) -> None:
    assert WAYS[name].findings(tmp_path, WAYS[name].rests) == []


def test_a_finding_names_the_way_to_it(tmp_path: Path) -> None:
    found = Way(TWO_HOPS, "p.write_text('x')", "").findings(tmp_path, "p.write_text('x')")
    assert found == ["house.study.load.load -> house.tasks.read.read -> house.core.keep.keep: .write_text() (line 4)"]


def test_a_third_hop_is_beyond_two(tmp_path: Path) -> None:
    """So the number of hops that the repository is held to means something."""
    deeper = TWO_HOPS.replace("@", "return far(p)\ndef far(p): @")
    assert Way(deeper, "", "").findings(tmp_path, "p.write_text('x')") == []
