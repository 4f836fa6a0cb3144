"""Dockerfiles that reach further than their image are refused, line by line; all others are left alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from planning import obstacles

from proctor.core.reasons import Reason
from proctor.tasks.offer import Offer
from proctor.tasks.reading import read_task

Make = Callable[..., Path]
Offers = Callable[..., Offer]


@pytest.fixture
def images(offer: Offers) -> Offer:
    return offer(sandbox="docker", builds_images=True, many_users=True)


@pytest.mark.parametrize(
    "line",
    [
        "ADD http://127.0.0.1:80/x /x",
        "ADD http://169.254.169.254/latest /x",
        "add HTTP://LOCALHOST/x /x",
        "ADD http://2130706433/x /x",
        "ADD http://0x7f.1/x /x",
        "ADD http://0x7f.0.0.0x1/x /x",
        "ADD http://[::1]:80/x /x",
        "ADD http://a@127.0.0.1/x /x",
        "ADD http://metadata.google.internal/x /x",
        "ADD http://printer.local./x /x",
        "ADD http://registry:5000/x /x",
        "ADD http:///x /x",
        "ADD https://example.org/a https://10.0.0.1/b /x/",
        'ADD ["http://127.0.0.1/x", "/x"]',
        "ADD --chown=1:1 http://127.0.0.1/x /x",
        "ADD 'http'://127.0.0.1/x /x",
        "ADD http:\\\n//127.0.0.1/x /x",
        "ADD ${FROM_THE_BASE} /x",
        "ADD http:/$FROM_THE_BASE /x",
        "ADD http://127.0.0.1$FROM_THE_BASE/x /x",
        "ADD http://127.0.0.1/$FROM_THE_BASE /x",
        "ADD 'http:'//$FROM_THE_BASE/ /x",
        "ONBUILD ADD http://127.0.0.1/x /x",
        "LABEL proctor.run=x",
        "LABEL a=b 'proctor.owner'={}",
        "LABEL proctor.building x",
        "LABEL $FROM_THE_BASE=x",
        "ONBUILD LABEL proctor.run=x",
    ],
)
def test_what_reaches_too_far_is_named_with_its_line(folder: Make, images: Offer, line: str) -> None:
    root = folder({"environment/Dockerfile": f"FROM debian:12\nRUN make\n{line}\n"})
    (refusal,) = obstacles(read_task(root), images)
    assert (refusal.reason, refusal.path) == (Reason.TASK_UNSAFE, f"{root}/environment/Dockerfile:3")


@pytest.mark.parametrize(
    "before",
    [
        "ARG P=http://127.0.0.1/x",
        "ENV P=http://127.0.0.1/x",
        "ENV P http://127.0.0.1/x",
        "ARG Q=127.0.0.1/x\nENV P=http://$Q",
    ],
)
def test_variables_hide_nothing(folder: Make, images: Offer, before: str) -> None:
    root = folder(
        {"environment/Dockerfile": f"FROM debian:12\n{before}\nADD ${{P}} /x\nENV L=proctor\nLABEL $L.run=x\n"}
    )
    assert [refusal.reason for refusal in obstacles(read_task(root), images)] == [Reason.TASK_UNSAFE] * 2


@pytest.mark.parametrize(
    "line",
    [
        "ADD https://example.org/a.tar.gz /x",
        "ARG V=1\nADD https://github.com/o/r/releases/download/v${V}/a.tgz /x",
        "ADD --chown=1 Dockerfile /x",
        'ADD ["Dockerfile", "/x"]',
        "ARG V\nADD https://example.org/$V/a.tgz files/$V /x",
        "RUN curl http://127.0.0.1/",
        "LABEL org.opencontainers.image.title=proctor.x version=1",
        "LABEL maintainer proctor.x",
        "ONBUILD RUN true",
    ],
)
def test_what_stays_where_it_is_passes(folder: Make, images: Offer, line: str) -> None:
    root = folder({"environment/Dockerfile": f"FROM debian:12\n{line}\n"})
    assert obstacles(read_task(root), images) == []
