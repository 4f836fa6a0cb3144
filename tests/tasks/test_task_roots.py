"""Reading a root folder: packages of dpkg and python, interpreters, users."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.recipe import Install
from proctor.tasks.roots import check_packages, normalised, parse_dists, parse_dpkg_status, read_root
from proctor.tasks.shellrun import Package

STATUS = """Package: curl
Status: install ok installed
Version: 7.88.1-10+deb12u5
Provides: http-client, virtual (= 1.0)
Description: a tool
 with more: text
  Status: deinstall ok config-files

Package: gone
Status: deinstall ok config-files
Version: 1

Package: half
Status: install ok unpacked
Version: 2

Package: python3-yaml
Status: hold ok installed
Version: 6.0

Package: last
Version: 3
Status: install ok installed"""


def root(tmp_path: Path) -> Path:
    for path, text in {
        "usr/bin/sh": "",
        "usr/bin/python3.11": "",
        "usr/bin/python3.11-config": "",
        "usr/local/bin/python3.13": "",
        "etc/passwd": "root:x:0:0::/root:/bin/sh\nagent:x:1000:1000::/:/bin/sh\n",
        "var/lib/dpkg/status": STATUS,
        "usr/lib/python3/dist-packages/PyYAML-6.0.egg-info/PKG-INFO": "",
        "usr/local/lib/python3.13/site-packages/factor_analyzer-0.5.1.dist-info/METADATA": "",
        "usr/lib/python3.11/site-packages/old-1.0-py3.11.egg-info": "",
        "usr/lib/python3/dist-packages/bare.egg-info": "",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def test_a_root_is_read(tmp_path: Path) -> None:
    facts = read_root(root(tmp_path))
    assert facts.dpkg == {"curl": "7.88.1-10+deb12u5", "python3-yaml": "6.0", "last": "3"}
    assert facts.provided == {"http-client", "virtual"}
    assert facts.python == {"pyyaml": "6.0", "factor-analyzer": "0.5.1", "old": "1.0", "bare": None}
    assert facts.pythons == {"3.11", "3.13"}
    assert facts.users == {"root", "agent"}


def test_installs_are_held_against_it(tmp_path: Path) -> None:
    installs = [
        Install(1, "", "pip", (Package("PyYAML", "6.0"), Package("Factor.Analyzer", None), Package("bare", "2"))),
        Install(2, "", "apt", (Package("http-client", None), Package("gone", None), Package("half", None))),
        Install(3, "", "pip", (Package("absent", "1"), Package("curl", None))),
    ]
    check = check_packages(read_root(root(tmp_path)), installs)
    assert check.missing == ("gone (apt)", "half (apt)", "absent (pip)", "curl (pip)")
    assert check.notes == ("bare (pip): 2 is asked for, the root has an unknown version",)


@pytest.mark.parametrize("content", ["none", "empty", "file"])
def test_what_is_no_root_is_refused(tmp_path: Path, content: str) -> None:
    at = tmp_path / content
    if content == "empty":
        at.mkdir()
    elif content == "file":
        at.write_text("")
    with pytest.raises(Refusal) as refused:
        read_root(at)
    assert refused.value.reason is Reason.ROOTFS_INVALID


def test_a_root_without_packages_is_a_root(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sh").symlink_to("busybox")
    facts = read_root(tmp_path)
    assert (facts.dpkg, facts.python, facts.pythons, facts.users) == ({}, {}, frozenset(), frozenset())


def test_the_host_can_be_read() -> None:
    facts = read_root(None)
    assert (facts.path, facts.users) == (None, None)


@pytest.mark.parametrize(("name", "wanted"), [("A.b__C", "a-b-c"), ("x-.-y", "x-y"), ("Plain", "plain")])
def test_names_compare_as_pep_503_has_it(name: str, wanted: str) -> None:
    assert normalised(name) == wanted


def test_empty_lists() -> None:
    assert parse_dpkg_status("") == ({}, frozenset())
    assert parse_dists([]) == {}
