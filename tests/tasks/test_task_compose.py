"""Compose files: nothing but a main service in other words is read; everything beyond is named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.compose import read_compose


def main(lines: str) -> str:
    return "services:\n  main:\n" + "".join(f"    {line}\n" for line in lines.split("\n"))


def test_a_main_service_is_read() -> None:
    read = read_compose(
        "version: '3'\nx-note: 1\n"
        + main(
            "image: debian:12\nworking_dir: /app/\nuser: 1000\nbuild: {context: ., dockerfile: Dockerfile}\n"
            "command: [sh, -c, 'sleep infinity']\ninit: true\n"
            "environment:\n  A: 1\n  B: '${B:-x}'\n  C: $${D}\n  E: ${F}"
        ),
        "environment/docker-compose.yaml",
    )
    assert (read.image, read.workdir, read.user, read.builds, read.beyond) == ("debian:12", "/app", "1000", True, ())
    assert read.env == {"A": "1", "B": "${B:-x}", "C": "${D}", "E": "${F:-}"}


def test_lines_that_say_what_is_done_anyway_say_nothing() -> None:
    read = read_compose(
        main(
            "build: {context: '${CONTEXT_DIR}'}\nimage: ${MAIN_IMAGE_NAME}\ncommand: [sh, -c, sleep infinity]\n"
            "environment: ['TEST_DIR=${TEST_DIR}', 'OUT=${ENV_ARTIFACTS_PATH}']\n"
            "volumes: ['${HOST_VERIFIER_LOGS_PATH}:${ENV_VERIFIER_LOGS_PATH}',"
            " '${HOST_ARTIFACTS_PATH}:${ENV_ARTIFACTS_PATH}']\n"
            "deploy: {resources: {limits: {cpus: '${CPUS}', memory: '${MEMORY}'}}}"
        ),
        "c",
    )
    assert (read.image, read.builds, read.beyond) == (None, True, ())
    assert read.env == {"TEST_DIR": "/tests", "OUT": "/logs/artifacts"}


def test_the_list_form_of_environment() -> None:
    assert read_compose(main("environment: [A=1, B=x=y]"), "c").env == {"A": "1", "B": "x=y"}


@pytest.mark.parametrize(
    ("text", "beyond"),
    [
        (main("image: a") + "  db:\n    image: postgres\n", "services.db"),
        ("services:\n  web: {image: a}\n", "no service main"),
        ("networks: {n: {}}\n" + main("image: a"), "networks"),
        (main("ports: ['80:80']"), "services.main.ports"),
        (main("volumes: ['/:/host']"), "services.main.volumes"),
        (main("volumes: ['${HOST_AGENT_LOGS_PATH}:${ENV_VERIFIER_LOGS_PATH}']"), "services.main.volumes"),
        (main("volumes: ['${HOST_AGENT_LOGS_PATH}:${ENV_AGENT_LOGS_PATH}', '/:/h']"), "services.main.volumes"),
        (main("volumes: [{type: bind}]"), "services.main.volumes"),
        (main("deploy: {resources: {limits: {cpus: '2'}}}"), "services.main.deploy"),
        (main("deploy: {resources: {limits: {cpus: '${CPUS}'}, reservations: {}}}"), "services.main.deploy"),
        (main("deploy: {replicas: 2}"), "services.main.deploy"),
        (main("build: {context: '${OTHER}'}"), "services.main.build"),
        (main("privileged: true"), "services.main.privileged"),
        (main("command: python server.py"), "services.main.command"),
        (main("build: ../other"), "services.main.build"),
        (main("build: {context: ., target: x}"), "services.main.build"),
        (main("image: ${IMAGE}"), "services.main.image"),
        (main("environment: [A]"), "services.main.environment.A"),
        (main("environment: {A: true}"), "services.main.environment.A"),
        (main("environment: {A: 'x-${B}'}"), "services.main.environment.A"),
        (main("working_dir: app"), "services.main.working_dir is relative"),
    ],
)
def test_what_only_compose_can_do_is_named(text: str, beyond: str) -> None:
    assert beyond in read_compose(text, "c").beyond


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "services: []",
        "services: {main: {image: a, image: b}}",
        "a: &x 1\nservices: {main: {image: *x}}",
        "a: &a [1]\nb: &b [*a,*a]\nservices: {main: *b}",
        "services: {main: {image: !!python/name:os.system }}",
        "services: " + "{main: " * 5000 + "}" * 5000,
        "services: {main: {? [1]: 2}}",
        "a: 1\n\ta: 2",
        "services: {main: {image: 2026-99-99}}",
    ],
)
def test_what_is_not_plain_yaml_is_unreadable(text: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_compose(text, "c")
    assert refused.value.reason is Reason.TASK_UNREADABLE


@given(st.text(alphabet="services:main\n {}[]&*!-'\"?,ab1", max_size=80))
def test_any_text_reads_or_refuses(text: str) -> None:
    try:
        read_compose("services:\n main:\n  " + text, "c")
    except Refusal as refusal:
        assert refusal.reason is Reason.TASK_UNREADABLE
