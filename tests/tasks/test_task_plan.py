"""What a task needs of a sandbox: each obstacle by name, and the plan where there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planning import environment_plan, obstacles

from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.context import CopyIn
from proctor.tasks.offer import Offer, agent_network, canonical_image, verifier_network
from proctor.tasks.reading import read_task
from proctor.tasks.recipe import Command, Folder
from proctor.tasks.roots import RootFacts
from proctor.tasks.variables import resolve

Make = Callable[..., Path]
Offers = Callable[..., Offer]

PREPARED = RootFacts(
    path=Path("/roots/python"),
    dpkg={"curl": "7.88.1-10"},
    provided=frozenset({"mail-transport-agent"}),
    python={"pytest": "7.2.1", "scikit-learn": "1.2.1"},
    pythons=frozenset({"3.13"}),
)


def reasons(root: Path, offer: Offer) -> list[Reason]:
    return [refusal.reason for refusal in obstacles(read_task(root), offer)]


@pytest.mark.parametrize(
    ("files", "given", "reason"),
    [
        ({"tests/test.sh": None}, {}, Reason.TASK_NOT_GRADABLE),
        ({"solution/solve.sh": None}, {}, Reason.TASK_NO_SOLUTION),
        ({"task.toml": "[environment]\ngpus = 1"}, {}, Reason.TASK_NEEDS_GPU),
        ({"task.toml": "[environment]\ntpu = {type = 'v6e'}"}, {}, Reason.TASK_NEEDS_GPU),
        ({"task.toml": "[environment]\nos = 'windows'"}, {}, Reason.TASK_OS_UNSUPPORTED),
        ({"task.toml": "[environment.env]\nA = '${NOT_SET}'"}, {}, Reason.TASK_ENV_MISSING),
        ({"task.toml": "[verifier.env]\nA = '${NOT_SET}'"}, {}, Reason.TASK_ENV_MISSING),
        ({"task.toml": "[solution.env]\nA = '${NOT_SET}'"}, {}, Reason.TASK_ENV_MISSING),
        ({"task.toml": "[agent]\nuser = 'someone'"}, {}, Reason.TASK_NEEDS_ROOT),
        ({"task.toml": "[verifier]\nuser = 1000"}, {}, Reason.TASK_NEEDS_ROOT),
        ({"environment/Dockerfile": "FROM debian\nUSER someone\n"}, {}, Reason.TASK_NEEDS_ROOT),
        ({"environment/Dockerfile": "FROM debian\nRUN chown 1000 /opt\n"}, {}, Reason.TASK_NEEDS_ROOT),
        ({"environment/Dockerfile": "FROM debian\nCOPY --chown=me Dockerfile /x\n"}, {}, Reason.TASK_NEEDS_ROOT),
        ({"environment/Dockerfile": "FROM debian\nUSER me\nRUN touch x\nUSER root\n"}, {}, Reason.TASK_NEEDS_ROOT),
        ({"environment/Dockerfile": "FROM debian\nRUN make\n"}, {}, Reason.TASK_NEEDS_DOCKER),
        ({"environment/Dockerfile": "FROM ghcr.io/org/app:1\n"}, {}, Reason.TASK_NEEDS_DOCKER),
        ({"environment/Dockerfile": "FROM postgres:16\n"}, {}, Reason.TASK_NEEDS_DOCKER),
        ({"task.toml": "[environment]\ndocker_image = 'ghcr.io/org/app:1'"}, {}, Reason.TASK_NEEDS_DOCKER),
        (
            {"environment/Dockerfile": "FROM python:3.13\n"},
            {"default_root": RootFacts(path=None)},
            Reason.TASK_NEEDS_DOCKER,
        ),
        ({"environment/Dockerfile": "FROM debian\nCOPY none /x\n"}, {}, Reason.TASK_UNREADABLE),
        ({"environment/docker-compose.yaml": "services: {main: {}, db: {}}"}, {}, Reason.TASK_NEEDS_COMPOSE),
        ({"task.toml": "artifacts = [{source = '/a', service = 'db'}]"}, {}, Reason.TASK_NEEDS_COMPOSE),
        ({"task.toml": "[[verifier.collect]]\ncommand = 'x'\nservice = 'db'"}, {}, Reason.TASK_NEEDS_COMPOSE),
        ({"task.toml": "[[steps]]\nname = 'one'"}, {}, Reason.NOT_IN_THIS_VERSION),
        ({"trajectory.json": "{}"}, {"takes_prompt": True}, Reason.NOT_IN_THIS_VERSION),
        ({"task.toml": "[agent]\nnetwork_mode = 'allowlist'"}, {"network": "public"}, Reason.NETWORK_UNAVAILABLE),
        ({}, {"networks": frozenset({"none"})}, Reason.NETWORK_UNAVAILABLE),
        (
            {"tests/test.sh": None, "task.toml": "[verifier.environment]\ndocker_image = 'debian:12'"},
            {},
            Reason.TASK_NEEDS_DOCKER,
        ),
    ],
)
def test_each_obstacle_alone_by_its_reason(
    folder: Make, offer: Offers, files: dict[str, str | None], given: dict[str, Any], reason: Reason
) -> None:
    task = read_task(folder(files))
    found = obstacles(task, offer(**given))
    assert [refusal.reason for refusal in found] == [reason]
    assert found[0].path


def test_obstacles_are_all_said_at_once(folder: Make, offer: Offers) -> None:
    root = folder(
        {
            "task.toml": "[environment]\ngpus = 2\nos = 'windows'\n[agent]\nuser = 'x'\n",
            "tests/test.sh": None,
            "environment/Dockerfile": "FROM debian\nRUN make\nRUN make install\n",
        }
    )
    assert set(reasons(root, offer())) == {
        Reason.TASK_NEEDS_GPU,
        Reason.TASK_OS_UNSUPPORTED,
        Reason.TASK_NEEDS_ROOT,
        Reason.TASK_NOT_GRADABLE,
        Reason.TASK_NEEDS_DOCKER,
    }


def test_a_sandbox_with_images_users_and_all_has_none_of_these_obstacles(folder: Make, offer: Offers) -> None:
    files = {
        "environment/Dockerfile": "FROM postgres:16\nRUN make\nRUN chown 5 /x\nUSER me\n",
        "task.toml": "[agent]\nuser = 'x'\n",
        "solution/solve.sh": None,
    }
    assert reasons(folder(files), offer(builds_images=True, many_users=True, needs_solution=False)) == []


def test_users_are_fine_where_the_sandbox_has_many(folder: Make, offer: Offers) -> None:
    files = {
        "task.toml": "[agent]\nuser = 'someone'\n[verifier]\nuser = 0\n",
        "environment/Dockerfile": "FROM debian\nRUN chown daemon /opt\nUSER daemon\nRUN touch /tmp/x\n",
    }
    plan = environment_plan(read_task(folder(files)), offer(many_users=True))
    assert (plan.agent_user, plan.verifier_user, plan.main.user) == ("someone", None, "daemon")
    assert Command(4, ("touch", "/tmp/x"), "/", user="daemon") in plan.main.build


@pytest.mark.parametrize(("user", "known"), [("agent", True), ("stranger", False), ("1234", True), ("root", True)])
def test_a_user_that_the_named_root_lacks_refuses(folder: Make, offer: Offers, user: str, known: bool) -> None:
    root = RootFacts(Path("/roots/x"), users=frozenset({"root", "agent"}))
    files = {"task.toml": f"[agent]\nuser = '{user}'\n[environment]\ndocker_image = 'org/app'\n"}
    found = reasons(folder(files), offer(many_users=True, substitutes={"org/app": root}))
    assert found == ([] if known else [Reason.TASK_NEEDS_DOCKER])


DOCKERFILE = """FROM python:3.13-slim
ENV A=1
ENV B=$A
WORKDIR /app
COPY data /app/data
RUN mkdir -p out && chmod 777 out
CMD ["python"]
"""


def test_a_dockerfile_becomes_ordered_steps(folder: Make, offer: Offers) -> None:
    root = folder(
        {
            "environment/Dockerfile": DOCKERFILE,
            "environment/data/x": "1",
            "task.toml": "[environment]\ncpus = 2\nmemory_mb = 1\nstorage_mb = 2\nenv = {B = '3', C = '${C:-4}'}\n",
        }
    )
    main = environment_plan(read_task(root), offer(host_env={"C": "5", "OTHER": "x"})).main
    assert main.build == (
        Folder(4, "/app"),
        CopyIn(root / "environment/data", "/app/data"),
        Folder(6, "/app/out"),
        Command(6, ("chmod", "777", "out"), "/app"),
    )
    assert (main.workdir, main.env) == ("/app", {"A": "1", "B": "3", "C": "5"})
    assert (main.cpus, main.memory_bytes, main.storage_bytes) == (2.0, 2**20, 2**21)
    assert main.host_variables == ("C",)
    assert main.base_substituted == {
        "image": "python:3.13-slim",
        "root": "host /usr",
        "explicit": False,
        "skipped_installs": [],
        "version_notes": ["python:3.13-slim: python 3.13 is asked for, the root has 3.11"],
        "ignored_lines": ['line 7: CMD ["python"]'],
    }


@pytest.mark.parametrize(
    ("files", "workdir"),
    [
        ({}, "/app"),
        ({"environment/Dockerfile": "FROM debian\n"}, "/"),
        ({"environment/Dockerfile": "FROM debian\nWORKDIR /d\n"}, "/d"),
        (
            {
                "environment/Dockerfile": "FROM debian\nWORKDIR /d\n",
                "environment/compose.yaml": "services: {main: {working_dir: /c}}",
            },
            "/c",
        ),
        (
            {
                "task.toml": "[environment]\nworkdir = '/t'",
                "environment/compose.yaml": "services: {main: {working_dir: /c}}",
            },
            "/t",
        ),
        ({"task.toml": "[environment]\ndocker_image = 'debian:12'"}, "/"),
    ],
)
def test_the_working_directory(folder: Make, offer: Offers, files: dict[str, str], workdir: str) -> None:
    main = environment_plan(read_task(folder(files)), offer()).main
    assert main.workdir == workdir
    made = [step.path for step in main.build if isinstance(step, Folder)]
    assert made == ([] if workdir == "/" else list(dict.fromkeys([*made, workdir])))


def test_loose_files_go_into_the_working_directory(folder: Make, offer: Offers) -> None:
    root = folder({"environment/a.txt": "a", "task.toml": "[environment]\nworkdir = '/w'\n"})
    main = environment_plan(read_task(root), offer()).main
    assert main.build == (Folder(0, "/w"), CopyIn(root / "environment", "/w"))
    assert main.base_substituted is None


def test_loose_files_go_into_the_world_of_a_named_image(folder: Make, offer: Offers) -> None:
    toml = "[environment]\ndocker_image = 'debian:12'\nworkdir = '/w'\n"
    root = folder({"environment/a.txt": "a", "task.toml": toml})
    main = environment_plan(read_task(root), offer()).main
    assert main.build == (Folder(0, "/w"), CopyIn(root / "environment", "/w"))


def test_an_image_is_used_and_the_build_is_not(folder: Make, offer: Offers) -> None:
    root = folder(
        {"task.toml": "[environment]\ndocker_image = 'ubuntu:24.04'", "environment/Dockerfile": "FROM x\nRUN make\n"}
    )
    task = read_task(root)
    main = environment_plan(task, offer()).main
    assert (main.image, main.build) == ("ubuntu:24.04", ())
    assert any("is not built" in note for note in task.notes)


@pytest.mark.parametrize(
    "name", ["python:3.13-slim", "docker.io/library/python:3.13-slim", "docker.io/python:3.13-slim"]
)
def test_a_named_root_serves_installs_that_it_holds(folder: Make, offer: Offers, name: str) -> None:
    files = {
        "environment/Dockerfile": "FROM python:3.13-slim@sha256:ab\n"
        "RUN apt-get update && apt-get install -y curl=7 mail-transport-agent\n"
        "RUN pip install Scikit_Learn PyTest==9.1.1\n"
    }
    main = environment_plan(read_task(folder(files)), offer(substitutes={name: PREPARED})).main
    assert main.root == Path("/roots/python")
    assert main.base_substituted is not None
    assert main.base_substituted["explicit"] is True
    assert len(main.base_substituted["skipped_installs"]) == 2
    assert main.base_substituted["version_notes"] == [
        "curl (apt): 7 is asked for, the root has 7.88.1-10",
        "PyTest (pip): 9.1.1 is asked for, the root has 7.2.1",
    ]


def test_packages_that_a_named_root_lacks_refuse(folder: Make, offer: Offers) -> None:
    files = {"environment/Dockerfile": "FROM debian:12\nRUN pip install pandas pytest && apt install jq\n"}
    (refusal,) = obstacles(read_task(folder(files)), offer(substitutes={"debian:12": PREPARED}))
    assert refusal.reason is Reason.TASK_NEEDS_PACKAGES
    assert refusal.observed == ["pandas (pip)", "jq (apt)"]


def test_installs_without_a_named_root_refuse_even_if_the_host_has_them(folder: Make, offer: Offers) -> None:
    files = {"environment/Dockerfile": "FROM debian:12\nWORKDIR /a\nRUN pip install pytest\n"}
    root = folder(files)
    (refusal,) = obstacles(read_task(root), offer(substitutes={"ubuntu:24.04": PREPARED}))
    assert refusal.reason is Reason.TASK_NEEDS_DOCKER
    assert refusal.path == f"{root}/environment/Dockerfile:3"
    assert "line 3" in refusal.message and "pip install pytest" in refusal.message


def test_all_lines_in_the_way_are_on_the_record(folder: Make, offer: Offers) -> None:
    files = {"environment/Dockerfile": "FROM org/app:1\nRUN make\nRUN pip install x\n"}
    (refusal,) = obstacles(read_task(folder(files)), offer())
    assert [(each["line"], each["text"]) for each in refusal.observed] == [
        (1, "FROM org/app:1"),
        (2, "RUN make"),
        (3, "RUN pip install x"),
    ]
    assert "(2 more line(s) too)" in refusal.message


SEPARATE = 'artifacts = ["/app/out"]\n[verifier]\nenvironment_mode = "separate"\n[environment]\nmemory_mb = 64\n'


def test_a_separate_verifier_with_its_own_build(folder: Make, offer: Offers) -> None:
    root = folder({"task.toml": SEPARATE, "tests/Dockerfile": "FROM debian\nCOPY . /tests/\nWORKDIR /v\n"})
    plan = environment_plan(read_task(root), offer())
    assert plan.verifier is not None
    assert plan.verifier.build == (CopyIn(root / "tests", "/tests"), Folder(3, "/v"))
    assert plan.verifier.memory_bytes == 64 * 2**20
    assert (plan.bring_tests, plan.verifier.workdir, plan.main.workdir) == (False, "/v", "/app")


def test_a_separate_verifier_without_one_gets_the_environment_anew(folder: Make, offer: Offers) -> None:
    root = folder({"task.toml": SEPARATE, "environment/Dockerfile": "FROM debian\nWORKDIR /d\n"})
    plan = environment_plan(read_task(root), offer())
    assert plan.verifier is not None
    assert (plan.verifier.workdir, plan.verifier.build, plan.bring_tests) == ("/d", plan.main.build, True)


def test_a_shared_verifier_has_no_world_of_its_own(folder: Make, offer: Offers) -> None:
    plan = environment_plan(read_task(folder({"tests/Dockerfile": "FROM x\nRUN make\n"})), offer())
    assert (plan.verifier, plan.bring_tests) == (None, True)


@pytest.mark.parametrize("name", ["environment", "tests", "solution"])
def test_a_part_that_is_a_link_is_unsafe(folder: Make, name: str) -> None:
    root = folder({"tests/test.sh": None, "solution/solve.sh": None, "secret/x": "1"})
    (root / name).symlink_to("secret")
    with pytest.raises(Refusal) as refused:
        read_task(root)
    assert refused.value.reason is Reason.TASK_UNSAFE


def test_the_modes_of_networks_are_the_sandbox_s_own() -> None:
    assert [agent_network(mode.value, None) for mode in Network] == [mode.value for mode in Network]


@pytest.mark.parametrize(
    ("study", "task", "agent", "verifier"),
    [
        ("public", None, "public", "public"),
        ("public", "no-network", "gateway-only", "none"),
        ("public", "allowlist", "allowlist", "allowlist"),
        ("gateway-only", "public", "gateway-only", "none"),
        ("gateway-only", "no-network", "gateway-only", "none"),
        ("none", "public", "none", "none"),
        ("allowlist", None, "allowlist", "allowlist"),
    ],
)
def test_the_stricter_network_wins(study: str, task: str | None, agent: str, verifier: str) -> None:
    assert (agent_network(study, task), verifier_network(study, task)) == (agent, verifier)


def test_a_task_s_wider_network_is_noted(folder: Make, offer: Offers) -> None:
    root = folder({"task.toml": "[environment]\nnetwork_mode = 'public'\n[verifier]\nnetwork_mode = 'no-network'\n"})
    (note,) = environment_plan(read_task(root), offer()).notes
    assert "agent" in note and "public" in note and "gateway-only" in note


def test_credentials_of_the_host_stay_out_where_a_default_serves(folder: Make, offer: Offers) -> None:
    root = folder(
        {
            "task.toml": "[environment.env]\n"
            "A = '${AWS_REGION:-none}'\nB = '${my_Api_Key:-none}'\nC = '${LANG:-none}'\n"
            "D = '${HF_TOKEN}'\n[verifier.env]\nJ = '${JUDGE_API_KEY:-none}'\n"
        }
    )
    host = {"AWS_REGION": "r", "my_Api_Key": "k", "LANG": "C", "HF_TOKEN": "t", "JUDGE_API_KEY": "j", "SECRET": "s"}
    plan = environment_plan(read_task(root), offer(host_env=host))
    assert plan.main.env == {"A": "none", "B": "none", "C": "C", "D": "t"}
    assert plan.verifier_env == {"J": "j"}
    assert plan.host_variables == ("LANG", "HF_TOKEN", "JUDGE_API_KEY")
    assert plan.main.notes == ("host variables kept out, their defaults used: AWS_REGION, my_Api_Key",)


def test_a_template_within_a_longer_value_is_taken_as_written_and_said(folder: Make, offer: Offers) -> None:
    task = read_task(folder({"task.toml": "[environment.env]\nA = 'x-${HOME}'\nB = '${HOME}'\n"}))
    assert environment_plan(task, offer(host_env={"HOME": "/h"})).main.env == {"A": "x-${HOME}", "B": "/h"}
    assert [note for note in task.notes if note.endswith("taken as written: A")]


def test_keys_of_the_study_s_models_go_nowhere(folder: Make, offer: Offers) -> None:
    root = folder({"task.toml": "[verifier.env]\nK = '${MODEL_KEY}'\nL = '${MODEL_KEY:-d}'\n"})
    (refusal,) = obstacles(
        read_task(root), offer(host_env={"MODEL_KEY": "s3cret"}, withheld_env=frozenset({"MODEL_KEY"}))
    )
    assert refusal.reason is Reason.TASK_ENV_MISSING
    assert "s3cret" not in str(refusal.as_record())


@given(
    st.dictionaries(st.text(min_size=1), st.text()),
    st.dictionaries(st.text(min_size=1), st.text(min_size=1)),
)
def test_only_named_variables_are_looked_up(templates: dict[str, str], host: dict[str, str]) -> None:
    resolved = resolve(templates, host, frozenset(), seen=True)
    for name, value in resolved.env.items():
        wanted = templates[name].removeprefix("${").partition(":-")[0].removesuffix("}")
        assert value == templates[name] or value == host.get(wanted) or templates[name].startswith("${")
    assert set(resolved.from_host) <= set(host)
    assert resolved.env.keys() <= templates.keys()


@pytest.mark.parametrize(
    ("image", "canonical"),
    [
        ("ubuntu", "ubuntu:latest"),
        ("docker.io/library/ubuntu:24.04", "ubuntu:24.04"),
        ("localhost:5000/ubuntu", "localhost:5000/ubuntu:latest"),
        ("ghcr.io/a/b@sha256:12", "ghcr.io/a/b:latest@sha256:12"),
    ],
)
def test_names_of_images(image: str, canonical: str) -> None:
    assert canonical_image(image) == canonical
