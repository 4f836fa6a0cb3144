"""Dockerfiles: what is read without an image builder, and that everything else is named with its line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.context import Context, CopyIn, Ignore
from proctor.tasks.dockerfile import parse
from proctor.tasks.recipe import Command, Copy, Folder, Install, Recipe, Unsupported, read_recipe
from proctor.tasks.shellrun import Package
from proctor.tasks.tree import read_tree


def recipe(body: str, head: str = "FROM debian:12\n") -> Recipe:
    return read_recipe(head + body, "environment/Dockerfile")


def unsupported(read: Recipe) -> list[tuple[int, str]]:
    return [(step.line, step.why) for step in read.steps if isinstance(step, Unsupported)]


def test_lines_continuations_comments_and_directives() -> None:
    text = (
        "# syntax=docker/dockerfile:1\r\n# escape=`\r\n# a comment\r\n\r\n"
        "from   debian:12 AS base\r\nENV A=1 `\r\n  # inside\r\n\r\n  B=2   `  \r\n  C=c:\\d\r\n  CMD x\r\n"
    )
    found = parse(text, "Dockerfile")
    assert [(item.line, item.keyword) for item in found] == [(5, "FROM"), (6, "ENV"), (11, "CMD")]
    read = read_recipe(text, "Dockerfile")
    assert dict(read.env) == {"A": "1", "B": "2", "C": "c:\\d"}
    assert (read.base_image, read.from_line, unsupported(read)) == ("debian:12", 5, [])
    assert read.ignored == ("line 11: CMD x",)


@pytest.mark.parametrize(
    ("line", "env"),
    [
        ("ENV A=1 B='x y' C=\"p q\" D=e\\ f", {"A": "1", "B": "x y", "C": "p q", "D": "e f"}),
        ("ENV A hello  world", {"A": "hello  world"}),
        ('ENV A="a\\nb\\"c\\\\d" B=a\\nb', {"A": 'a\\nb"c\\d', "B": "anb"}),
        ("ENV A=1\nENV B=$A-${A}x C='$A' D=\\$A E=\"$A\"", {"A": "1", "B": "1-1x", "C": "$A", "D": "$A", "E": "1"}),
        ("ENV A=1\nENV A=2 B=$A", {"A": "2", "B": "1"}),
        ("ARG V=3\nENV B=$V C=${V:-9} D=${V:+set}", {"B": "3", "C": "3", "D": "set"}),
        ("ARG V\nENV C=${V:-9} D=${V:+set} E=${V-x}", {"C": "9", "D": "", "E": ""}),
        ("ENV PATH=/opt/bin:$PATH", {"PATH": "/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}),
        ("ENV A=", {"A": ""}),
    ],
)
def test_env(line: str, env: dict[str, str]) -> None:
    read = recipe(line + "\n")
    assert unsupported(read) == []
    assert dict(read.env) == env


def test_arguments_before_from_name_the_base() -> None:
    read = recipe("ARG TAG\nENV T=$TAG\n", head="ARG TAG=12\nFROM debian:${TAG}-slim\n")
    assert (read.base_image, dict(read.env)) == ("debian:12-slim", {"T": "12"})


def test_paths_resolve_and_folders_are_made() -> None:
    read = recipe('WORKDIR /a\nWORKDIR b/../c\nRUN mkdir -p x /y\nVOLUME ["/v"]\nWORKDIR $UNSET_LATER_NO\n')
    assert [step for step in read.steps if isinstance(step, Folder)] == [
        Folder(2, "/a"),
        Folder(3, "/a/c"),
        Folder(4, "/a/c/x"),
        Folder(4, "/y"),
        Folder(5, "/v"),
    ]
    assert read.workdir == "/a/c"
    assert [line for line, _ in unsupported(read)] == [6]


def test_plain_run_lines() -> None:
    read = recipe(
        "WORKDIR /w\n"
        "RUN mkdir -p /logs/verifier && chmod 777 '/logs/a b' && chown -R me:us x \\\n && touch f && ln -s /bin/x y\n"
        'RUN ["mkdir", "/plain"]\n'
        'RUN ["/bin/sh", "-c", "mkdir -p e && pip cache purge"]\n'
        "USER me\n"
        "RUN chmod -x f && mkdir -m 700 g\n"
        'SHELL ["/bin/bash", "-o", "pipefail", "-c"]\n'
    )
    assert unsupported(read) == []
    assert read.steps == (
        Folder(2, "/w"),
        Folder(3, "/logs/verifier"),
        Command(3, ("chmod", "777", "/logs/a b"), "/w"),
        Command(3, ("chown", "-R", "me:us", "x"), "/w", owner="me:us"),
        Command(3, ("touch", "f"), "/w"),
        Command(3, ("ln", "-s", "/bin/x", "y"), "/w"),
        Command(5, ("mkdir", "--", "/plain"), "/w"),
        Folder(6, "/w/e"),
        Command(8, ("chmod", "-x", "f"), "/w", user="me"),
        Command(8, ("mkdir", "-m", "700", "g"), "/w", user="me"),
    )
    assert read.user == "me"


@pytest.mark.parametrize(
    ("line", "manager", "packages"),
    [
        (
            "RUN apt-get update -qq && apt-get install -y --no-install-recommends curl git=1:2.39 libc6:amd64"
            " && rm -rf /var/lib/apt/lists/*",
            "apt",
            [Package("curl", None), Package("git", "1:2.39"), Package("libc6", None)],
        ),
        ("RUN DEBIAN_FRONTEND=noninteractive apt install -y -t stable jq", "apt", [Package("jq", None)]),
        ("RUN apt-get update", "apt", []),
        ("RUN pip install --no-cache-dir pytest==9.1.1", "pip", [Package("pytest", "9.1.1")]),
        (
            "RUN pip3 install -i https://x/simple 'a[b]>=1,<2' C_d",
            "pip",
            [Package("a", ">=1,<2"), Package("C_d", None)],
        ),
        ("RUN python3 -m pip install a", "pip", [Package("a", None)]),
        ("RUN uv pip install --system a[x]==1", "pip", [Package("a", "1")]),
    ],
)
def test_installs_are_recognised(line: str, manager: str, packages: list[Package]) -> None:
    read = recipe(line + "\n")
    assert unsupported(read) == []
    installs = [step for step in read.steps if isinstance(step, Install)]
    assert {step.manager for step in installs} == {manager}
    assert [package for step in installs for package in step.packages] == packages


@pytest.mark.parametrize(
    "line",
    [
        "RUN curl -fsSL https://x | sh",
        "RUN echo hi > /f",
        "RUN mkdir -p a; rm -rf /",
        "RUN mkdir -p $HOME/x",
        'RUN mkdir -p "$HOME"',
        "RUN mkdir -p `pwd`",
        "RUN mkdir -p {a,b}",
        "RUN chmod 755 /bin/*",
        "RUN rm -rf /tmp/x",
        "RUN rm -rf /var/lib/apt/listsX",
        "RUN mkdir -p a && make",
        "RUN mkdir -p a # why",
        "RUN mkdir --mode=755 a",
        "RUN mkdir -x a",
        "RUN touch --date=now a",
        "RUN chmod 755",
        "RUN chown me",
        "RUN ln a b",
        "RUN ln -s a",
        "RUN uv sync",
        "RUN uv install x",
        "RUN python3 -m ensurepip install x",
        'RUN ["bash", "-lc", "mkdir a"]',
        "RUN mkdir -p a &&",
        "RUN mkdir -p 'a",
        "RUN mkdir",
        "RUN A=1 mkdir x",
        "RUN useradd me",
        "RUN apt-get upgrade -y",
        "RUN apt-get install -y ./x.deb",
        "RUN pip install -r requirements.txt",
        "RUN pip install .",
        "RUN pip install git+https://x/y",
        "RUN pip install -e .",
        "RUN pip uninstall x",
        "RUN python3 setup.py",
        "RUN --mount=type=cache,target=/x mkdir -p a",
        "RUN cat <<EOF > /f\nmkdir\nEOF",
        "COPY <<EOF /f\nx\nEOF",
        "COPY --from=other /a /b",
        "COPY --parents a /b",
        "COPY onlyone",
        "ADD https://x/y /y",
        "ADD data.tar.gz /d",
        "FROM other",
        "ONBUILD RUN x",
        "WORKDIR $HOME",
        "ENV A=${B##x}",
        "ENV A=${B:?x}",
        "ENV A=$TARGETARCH",
        'SHELL ["pwsh"]',
        "NONSENSE x",
        "ARG TARGETARCH\nENV A=$TARGETARCH",
    ],
)
def test_what_needs_an_image_builder_is_named_with_its_line(line: str) -> None:
    read = recipe(line + "\nWORKDIR /after\n")
    assert [found for found, _ in unsupported(read)] == [3 if line.startswith("ARG") else 2]
    assert read.workdir == "/after"  # reading went on behind it, heredocs included


@pytest.mark.parametrize(
    "head", ["FROM scratch\n", "FROM $BASE\n", "FROM --platform=windows/amd64 x\n", "FROM --x=linux/ x\n", "FROM a b\n"]
)
def test_bases_that_cannot_be_stood_in_for(head: str) -> None:
    assert [line for line, _ in unsupported(recipe("", head=head))][:1] == [1]


@pytest.mark.parametrize("text", ["", "# only a comment\n", "RUN <<EOF\nx\n", "# escape=x\nFROM a\n", "WORKDIR /a\n"])
def test_what_is_no_dockerfile_is_unreadable(text: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_recipe(text, "environment/Dockerfile")
    assert refused.value.reason is Reason.TASK_UNREADABLE


@given(st.text(alphabet="FROMRUNCPYENV \n\\\"'$#{}[]<=-&;a/:", max_size=120))
def test_any_text_reads_or_refuses(text: str) -> None:
    try:
        read_recipe(text, "Dockerfile")
    except Refusal as refusal:
        assert refusal.reason is Reason.TASK_UNREADABLE


@given(
    st.lists(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00\n\r\\"), min_size=1), min_size=1)
)
def test_json_words_come_back_whole(words: list[str]) -> None:
    import json

    (found,) = parse("CMD " + json.dumps(words) + "\n", "Dockerfile")
    assert found.json_words() == tuple(words)


FILES = {
    "environment/Dockerfile": "FROM debian:12\n",
    "environment/a.txt": "a",
    "environment/b.txt": "b",
    "environment/c.md": "c",
    "environment/top.tmp": "t",
    "environment/data/one.csv": "1",
    "environment/data/deep/two.csv": "2",
    "environment/data/deep/skip.tmp": "t",
}


def copied(root: Path, line: str, ignore: str = "", known: frozenset[str] = frozenset()) -> list[tuple[str, str]]:
    (step,) = [step for step in recipe(line + "\n").steps if isinstance(step, Copy)]
    items = Context(read_tree(root), "environment", Ignore(ignore)).copy(step, set(known), "x")
    return [(str(item.source.relative_to(root / "environment")), item.target) for item in items]


@pytest.mark.parametrize(
    ("line", "known", "expected"),
    [
        ("COPY a.txt /x", (), [("a.txt", "/x")]),
        ("COPY a.txt /x/", (), [("a.txt", "/x/a.txt")]),
        ("COPY a.txt /x", ("/x",), [("a.txt", "/x/a.txt")]),
        ("COPY a.txt /opt", (), [("a.txt", "/opt/a.txt")]),
        ("COPY a.txt .", (), [("a.txt", "/a.txt")]),
        ("COPY *.txt /x/", (), [("a.txt", "/x/a.txt"), ("b.txt", "/x/b.txt")]),
        ('COPY ["a.txt", "c.md", "/x"]', (), [("a.txt", "/x/a.txt"), ("c.md", "/x/c.md")]),
        (
            "COPY [ab].txt ./data/*.csv /x/",
            (),
            [("a.txt", "/x/a.txt"), ("b.txt", "/x/b.txt"), ("data/one.csv", "/x/one.csv")],
        ),
        ("COPY data /x", (), [("data", "/x")]),
        ("COPY data/ /x/y/", (), [("data", "/x/y")]),
        ("COPY . /x", (), [(".", "/x")]),
        ("ADD a.txt /x", (), [("a.txt", "/x")]),
    ],
)
def test_copies(
    folder: Callable[..., Path], line: str, known: tuple[str, ...], expected: list[tuple[str, str]]
) -> None:
    assert copied(folder(FILES), line, known=frozenset(known)) == expected


def test_dockerignore_rules_what_a_folder_brings(folder: Callable[..., Path]) -> None:
    ignore = "# no scratch\n**/*.tmp\n/*.md\ndata/deep\n!data/deep/two.csv\nDockerfile\n"
    assert copied(folder(FILES), "COPY . /x", ignore) == [
        (".", "/x"),
        ("a.txt", "/x/a.txt"),
        ("b.txt", "/x/b.txt"),
        ("data", "/x/data"),
        ("data/deep/two.csv", "/x/data/deep/two.csv"),
        ("data/one.csv", "/x/data/one.csv"),
    ]


def test_modes_and_owners_reach_every_file(folder: Callable[..., Path]) -> None:
    (step,) = [step for step in recipe("COPY --chmod=640 --chown=0:0 data /x\n").steps if isinstance(step, Copy)]
    items = Context(read_tree(folder(FILES)), "environment", Ignore()).copy(step, set(), "x")
    assert [(item.target, item.mode, item.owner, item.whole) for item in items] == [
        ("/x", None, "0:0", False),
        ("/x/deep", 0o640, "0:0", False),
        ("/x/deep/skip.tmp", 0o640, "0:0", True),
        ("/x/deep/two.csv", 0o640, "0:0", True),
        ("/x/one.csv", 0o640, "0:0", True),
    ]


@pytest.mark.parametrize(
    ("line", "ignore", "reason"),
    [
        ("COPY none /x", "", Reason.TASK_UNREADABLE),
        ('COPY ["a.txt", 1]', "", Reason.TASK_UNREADABLE),
        ("COPY a.txt /x", "a.*", Reason.TASK_UNREADABLE),
        ("COPY [z-a] /x", "", Reason.TASK_UNREADABLE),
        ("COPY ../tests /x", "", Reason.TASK_UNSAFE),
        ("COPY leak /x", "", Reason.TASK_UNSAFE),
    ],
)
def test_sources_that_are_not_there_or_lead_out(
    folder: Callable[..., Path], line: str, ignore: str, reason: Reason
) -> None:
    root = folder(FILES)
    (root / "environment/leak").symlink_to("../tests/test.sh")
    with pytest.raises(Refusal) as refused:
        copied(root, line, ignore)
    assert refused.value.reason is reason


def test_a_link_as_a_source_brings_the_file_it_names(folder: Callable[..., Path]) -> None:
    root = folder(FILES)
    (root / "environment/link").symlink_to("data/one.csv")
    (step,) = [step for step in recipe("COPY link /x/\n").steps if isinstance(step, Copy)]
    items = Context(read_tree(root), "environment", Ignore()).copy(step, set(), "x")
    assert items == [CopyIn(root / "environment/data/one.csv", "/x/link")]
