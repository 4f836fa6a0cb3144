"""A build's context: which files are in its archive, and that the same files give the same bytes."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.docker.building import refuse_unsupported
from proctor.sandbox.docker.context import Ignore, archive


def fill(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def names(folder: Path, dockerfile: str = "Dockerfile") -> list[str]:
    data = b"".join(archive(folder, dockerfile))
    with tarfile.open(fileobj=io.BytesIO(data)) as found:
        return found.getnames()


# path, rules, whether it is left out; from the documentation of .dockerignore and the behaviour of its client
RULES = [
    ("a", "a", True),
    ("a/b", "a", True),
    ("a/b", "/a", True),
    ("b/a", "a", False),
    ("b/a", "**/a", True),
    ("a", "**/a", True),
    ("b/c/a/d", "**/a", True),
    ("a.log", "*.log", True),
    ("b/a.log", "*.log", False),
    ("b/a.log", "*/*.log", True),
    ("c/b/a.log", "*/*.log", False),
    ("c/b/a.log", "**/*.log", True),
    ("temp1", "temp?", True),
    ("temp", "temp?", False),
    ("temp/1", "temp?", False),
    ("a", "./a/", True),
    ("a", "b/../a", True),
    ("a", "# a", False),
    ("#a", "\\#a", True),
    ("a b", "a b", True),
    ("keep.md", "*.md\n!keep.md", False),
    ("keep.md", "!keep.md\n*.md", True),
    ("docs/keep", "docs\n!docs/keep", False),
    ("docs/other", "docs\n!docs/keep", True),
    ("x/y/z", "**", True),
    ("x/y/z", "**\n!x/y", False),
    ("ab", "a[bc]", True),
    ("ad", "a[bc]", False),
    ("a.b", "a.b", True),
    ("axb", "a.b", False),
    ("a+b", "a+b", True),
    ("x/node_modules/y", "**/node_modules/", True),
    ("a/x/b", "a/**/b", True),
    ("a/b", "a/**/b", True),
    ("\ufeffa", "\ufeffa", False),
    ("a", "\n\n  a  \n", True),
    ("a", "!", False),
    ("a", "/", False),
]


@pytest.mark.parametrize(("path", "rules", "out"), RULES)
def test_rules_leave_out(path: str, rules: str, out: bool) -> None:
    assert Ignore.parse(rules).leaves_out(path) is out


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    first = fill(tmp_path / "one", "Dockerfile", "b/c", "a", "z/y/x")
    second = fill(tmp_path / "two", "z/y/x", "a", "b/c", "Dockerfile")
    os.utime(second / "a", (5, 5))
    for folder in (first, second):
        (folder / "a").chmod(0o755)
        (folder / "link").symlink_to("b/c")
    assert b"".join(archive(first, "Dockerfile")) == b"".join(archive(second, "Dockerfile"))
    (second / "a").chmod(0o644)
    assert b"".join(archive(first, "Dockerfile")) != b"".join(archive(second, "Dockerfile"))


def test_members_are_sorted_and_nobodys(tmp_path: Path) -> None:
    fill(tmp_path, "Dockerfile", "b/c", "a")
    (tmp_path / "link").symlink_to("/etc/passwd")
    with tarfile.open(fileobj=io.BytesIO(b"".join(archive(tmp_path, "Dockerfile")))) as found:
        assert found.getnames() == ["Dockerfile", "a", "b", "b/c", "link"]
        assert {(member.uid, member.gid, member.mtime) for member in found} == {(0, 0, 946_684_800)}
        assert found.getmember("link").linkname == "/etc/passwd"


def test_what_the_builder_needs_is_in_whatever_the_rules_say(tmp_path: Path) -> None:
    fill(tmp_path, "sub/Dockerfile.x", "sub/other", "keep")
    (tmp_path / ".dockerignore").write_text("**\n!keep\n")
    assert names(tmp_path, "sub/Dockerfile.x") == [".dockerignore", "keep", "sub", "sub/Dockerfile.x"]


def test_a_dockerfile_may_have_rules_of_its_own(tmp_path: Path) -> None:
    fill(tmp_path, "Dockerfile", "a", "b")
    (tmp_path / ".dockerignore").write_text("a\n")
    (tmp_path / "Dockerfile.dockerignore").write_text("b\n")
    assert names(tmp_path) == [".dockerignore", "Dockerfile", "Dockerfile.dockerignore", "a"]


@pytest.mark.parametrize(("rules", "reason"), [(b"\xff\xfe", Reason.INVALID_VALUE), (b"a[z-a]", Reason.INVALID_VALUE)])
def test_rules_that_are_none_are_refused(tmp_path: Path, rules: bytes, reason: Reason) -> None:
    fill(tmp_path, "Dockerfile")
    (tmp_path / ".dockerignore").write_bytes(rules)
    with pytest.raises(Refusal) as refused:
        names(tmp_path)
    assert refused.value.reason is reason


def test_special_files_are_refused_and_unreadable_ones_named(tmp_path: Path) -> None:
    fill(tmp_path, "Dockerfile")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Refusal) as refused:
        names(tmp_path)
    assert refused.value.reason is Reason.PATH_UNSAFE and "pipe" in refused.value.message
    with pytest.raises(Refusal) as refused:
        names(tmp_path / "none")
    assert refused.value.reason is Reason.FILE_UNREADABLE


@pytest.mark.parametrize(
    "line",
    [
        "RUN <<EOF",
        "RUN cat <<'EOF' > /x",
        "run --mount=type=cache,target=/x echo 1",
        "RUN --network=none echo",
        "COPY --chmod=755 a b",
        "COPY --link a b",
        "COPY --from=x --parents a b",
        "ADD --checksum=sha256:0 a b",
        "ADD <<E /x",
        "RUN \\\n# words\n\n --security=insecure echo",
    ],
)
def test_lines_that_need_another_builder_are_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "Dockerfile").write_text(f"# escape=x\nFROM scratch\n{line}\n")
    with pytest.raises(Refusal) as refused:
        refuse_unsupported(tmp_path / "Dockerfile")
    assert refused.value.reason is Reason.BUILD_UNSUPPORTED and "line 3" in refused.value.message


@pytest.mark.parametrize(
    "line",
    [
        "RUN echo $((1<<2))",
        'RUN echo "a<<b"',
        "RUN cat <<< hello",
        "COPY --from=x --chown=1:1 a b",
        "ADD --chown=1 a b",
        "RUN ls --mount=x",
        "# RUN <<EOF",
        "RUN a \\\n  && b",
        "LABEL a='--mount'",
    ],
)
def test_lines_that_the_builder_knows_pass(tmp_path: Path, line: str) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM scratch\n{line}\n")
    refuse_unsupported(tmp_path / "Dockerfile")
