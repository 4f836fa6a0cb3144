"""BenchFlow's task.md: its two halves, its own keys, and what of it is refused by type."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning import environment_plan, obstacles

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.benchflow_schema import ROOT_KEYS
from proctor.tasks.front_matter import read_document
from proctor.tasks.offer import Offer
from proctor.tasks.reading import read_task
from proctor.tasks.recipe import Command

Make = Callable[..., Path]
Offers = Callable[..., Offer]

KEYS = (
    *("type", "service", "sandbox", "sandbox_mode", "env", "user", "image", "docker_image", "network_mode", "verifier"),
    *("setup_commands", "command", "environment", "manifest", "path", "prompt_prefix", "timeout_sec", "healthcheck"),
    *("reward_range", "name", "source", "mcp_servers", "workdir", "cpus", "memory", "allow_internet", "artifacts"),
)
PACKAGE = {
    "environment/Dockerfile": "FROM debian:12\nWORKDIR /w\n",
    "verifier/test.sh": "echo 1 > /logs/verifier/reward.txt\n",
    "oracle/solve.sh": "true\n",
}


def document(front: str, body: str = "Do it.\n", fence: str = "---") -> str:
    return f"{fence}\n{front}{fence}\n{body}"


def package(folder: Make, front: str = "", body: str = "Do it.\n", **more: str | None) -> Path:
    files = {**PACKAGE, "task.md": document(front, body), **{key.replace("__", "/"): v for key, v in more.items()}}
    return folder({name: content for name, content in files.items() if content is not None}, minimal=False)


def test_a_package_in_the_format_s_own_folders(folder: Make, offer: Offers) -> None:
    task = read_task(package(folder, "agent:\n  timeout_sec: 5\nverifier:\n  timeout_sec: 7\n  env: {A: x}\n"))
    assert (task.layout.test_script, task.layout.solve_script) == ("verifier/test.sh", "oracle/solve.sh")
    assert task.has_tests and task.has_solution
    layout = task.layout
    assert (layout.tests_target, layout.tests_cwd, layout.solution_target) == ("/verifier", "/verifier", "/oracle")
    plan = environment_plan(task, offer())
    assert (plan.main.workdir, plan.bring_tests, plan.verifier_env) == ("/w", True, {"A": "x"})
    assert (task.agent.timeout_sec, task.verifier.timeout_sec, task.instruction) == (5, 7, "Do it.")


def test_front_matter_in_toml_says_the_same(folder: Make) -> None:
    toml = "schema_version = '1.3'\n[sandbox]\ncpus = 2\n[oracle.env]\nX = '1'\n"
    task = read_task(folder({**PACKAGE, "task.md": document(toml, fence="+++")}, minimal=False))
    assert (task.environment.table.cpus, task.solution_env) == (2, {"X": "1"})


@pytest.mark.parametrize(
    ("front", "said"),
    [
        ("sandbx: {}\n", "sandbx"),
        ("environment: {}\n", "environment"),
        ("oracle: {}\nsolution: {}\n", "alias"),
        ("sandbox: {cpus: many}\n", "sandbox.cpus"),
        ("sandbox: {workdir: here}\n", "sandbox.workdir"),
        ("verifier: {sandbox: {memory_mb: 0}}\n", "verifier.sandbox.memory_mb"),
        ("verifier: {sandbox_mode: other}\n", "verifier.sandbox_mode"),
        ("verifier: {type: vibes}\n", "verifier.type"),
        ("verifier: {reward_range: [1]}\n", "verifier.reward_range"),
        ("oracle: {env: {A: 1}}\n", "oracle.env.A"),
        ("agent: {prompt_prefix: 3}\n", "agent.prompt_prefix"),
        ("sandbox: {setup_commands: [{command: ''}]}\n", "sandbox.setup_commands.0.command"),
        ("benchflow: [1]\n", "benchflow"),
        ("scenes: {}x\n", "YAML"),
        ("agents: [solver]\n", "agents"),
        ("a: 1\na: 2\n", "twice"),
        ("metadata: &x {}\ntask: *x\n", "alias"),
        ("metadata: {1: x}\n", "names"),
        ("- x\n", "mapping"),
        ("metadata: !!python/name:os.system\n", "a tag"),
        ("metadata: {x: !!binary aGVsbG8=}\n", "a tag"),
        ("metadata: !!set {a}\n", "a tag"),
        pytest.param(f"version: 1:{'59:' * 4_000}1\n", "64 bits", id="parts of sixty"),
        pytest.param(f"metadata: {{x: 0x{'f' * 8_000}}}\n", "64 bits", id="hexadecimal"),
        ('metadata: {x: "\\ud800"}\n', "surrogates"),
    ],
)
def test_what_its_front_matter_cannot_say_is_unreadable(folder: Make, front: str, said: str) -> None:
    root = package(folder, front)
    with pytest.raises(Refusal) as refused:
        read_task(root)
    assert refused.value.reason is Reason.TASK_UNREADABLE
    assert said in str(refused.value.message) and refused.value.path == str(root / "task.md")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Do it.", "does not begin"),
        ("---\ntask: {}\n", "no end"),
        ("---\n---\n", "no prompt"),
        ("---\n---\n## role:a\nx\n", "no prompt"),
        ("---\n---\n## prompt\na\n## Prompt\nb\n", "twice"),
        ("+++\na = \n+++\nx", "not TOML"),
        ("+++\n" + "a." * 70 + "a = 1\n+++\nx", "64 parts"),
        ("---\n" + "[" * 4000 + "\n---\nx", "YAML"),
        (b"---\n---\n\xff", "UTF-8"),
    ],
)
def test_a_file_that_is_no_document_is_unreadable(folder: Make, text: str | bytes, said: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_task(folder({**PACKAGE, "task.md": text}, minimal=False))
    assert refused.value.reason is Reason.TASK_UNREADABLE
    assert said in refused.value.message


def test_a_schema_of_another_major_comes_later(folder: Make) -> None:
    assert read_task(package(folder, "schema_version: 1.3\n")).toml.schema_version == "1.3"
    with pytest.raises(Refusal) as refused:
        read_task(package(folder, 'schema_version: "2.0"\n'))
    assert refused.value.reason is Reason.TASK_FORMAT_LATER


def test_the_prompt_is_its_section_and_a_prefix_stands_before_it(folder: Make) -> None:
    body = "# Title\n\n## Prompt\n\nDo it.\n\n\\## prompt\n\n## role:a\n\nBe strict.\n"
    task = read_task(package(folder, "agent: {prompt_prefix: ' Rules. '}\n", body))
    assert task.instruction == "Rules.\n\nDo it.\n\n## prompt"
    assert read_task(package(folder, body="One.\n\n## Other\n\nTwo.\n")).instruction == "One.\n\n## Other\n\nTwo."
    canary = "<!-- benchmark canary 1 -->\n\nDo it.\n"
    assert read_task(package(folder, body=canary)).instruction == "Do it.\n".strip()


@pytest.mark.parametrize(
    ("front", "files", "said"),
    [
        ("verifier: {type: llm-judge}\n", {}, "llm-judge"),
        ("steps: [{name: a}]\n", {}, "steps (1)"),
        ("sandbox: {network_mode: denylist, blocked_hosts: [x.org]}\n", {}, "denylist"),
        ("sandbox: {setup_commands: [{command: c, capture_dir: /x, env: {A: b}}]}\n", {}, "capture_dir, env"),
        ("profile: code-change\n", {}, "code-change"),
        ("benchflow: {environment: {manifest: env.toml}}\n", {}, "manifest"),
        ("benchflow: {oracle: {path: elsewhere/}}\n", {}, "benchflow.oracle.path"),
        (
            "",
            {"verifier/verifier.md": "---\nverifier: {strategies: {j: {type: agent-judge}}}\n---\n"},
            "verifier.md",
        ),
        (
            "",
            {"verifier/verifier.md": "---\nverifier: {strategies: {s: {type: script, command: ./other}}}\n---\n"},
            "verifier.md",
        ),
    ],
)
def test_what_no_agent_can_be_run_on_yet_is_named(
    folder: Make, offer: Offers, front: str, files: dict[str, str], said: str
) -> None:
    root = folder({**PACKAGE, **files, "task.md": document(front)}, minimal=False)
    (refusal,) = obstacles(read_task(root), offer())
    assert refusal.reason is Reason.NOT_IN_THIS_VERSION
    assert said in refusal.message and refusal.path == str(root / "task.md")


@pytest.mark.parametrize(
    "front",
    [
        "agents: {roles: {a: {agent: x}}}\n",
        "scenes: [{name: a}]\n",
        "user: {model: scripted}\n",
        "benchflow: {nudges: {branchable: true, branch_execution: forked-snapshot}}\n",
        "benchflow: {teams: {a: {}}}\n",
    ],
)
def test_several_roles_matter_to_agents_that_take_a_prompt(folder: Make, offer: Offers, front: str) -> None:
    task = read_task(package(folder, front))
    assert [refusal.reason for refusal in obstacles(task, offer(takes_prompt=True))] == [Reason.NOT_IN_THIS_VERSION]
    assert obstacles(task, offer(takes_prompt=False)) == []


def test_a_verifier_s_own_document_may_name_the_script(folder: Make, offer: Offers) -> None:
    text = "---\nverifier:\n  default_strategy: s\n  strategies: {s: {type: script, command: ./test.sh}}\n---\n"
    assert obstacles(read_task(package(folder, verifier__verifier_md=None)), offer()) == []
    root = folder({**PACKAGE, "verifier/verifier.md": text, "task.md": document("")}, minimal=False)
    assert obstacles(read_task(root), offer()) == []
    for broken in ("---\n{}\n---\n", text.replace("default_strategy: s", "default_strategy: t")):
        with pytest.raises(Refusal) as refused:
            read_task(folder({"verifier/verifier.md": broken}, minimal=False))
        assert refused.value.reason is Reason.TASK_UNREADABLE


def test_set_up_commands_are_run_after_the_build(folder: Make, offer: Offers) -> None:
    front = "sandbox:\n  setup_commands:\n  - {command: 'echo $X'}\n"
    front += "  - {command: make, cwd: /src, user: 5, timeout_sec: 9}\n"
    main = environment_plan(read_task(package(folder, front)), offer(many_users=True)).main
    first, second = (step for step in main.build if isinstance(step, Command))
    assert (first.argv[-1], first.cwd, first.user, first.timeout_sec) == ("echo $X", ".", None, 600)
    assert (second.argv[-1], second.cwd, second.user, second.timeout_sec) == ("make", "/src", "5", 9)


def test_a_service_beside_main_needs_compose(folder: Make, offer: Offers) -> None:
    (refusal,) = obstacles(read_task(package(folder, "verifier: {service: db}\n")), offer())
    assert (refusal.reason, refusal.observed) == (Reason.TASK_NEEDS_COMPOSE, ["db"])


def test_a_separate_verifier_with_its_own_build(folder: Make, offer: Offers) -> None:
    front = "artifacts: [/w/out]\nverifier: {sandbox_mode: separate}\n"
    files = {"verifier/Dockerfile": "FROM debian:12\nCOPY . /verifier/\n", "task.md": document(front)}
    task = read_task(folder({**PACKAGE, **files}, minimal=False))
    for images in (False, True):
        plan = environment_plan(task, offer(builds_images=images))
        assert plan.verifier is not None and plan.bring_tests is False


def test_short_forms_and_unknown_keys(folder: Make) -> None:
    front = "name: hello\nimage: debian:12\nverifier: {tmeout_sec: 3, hardening: {a: b}}\nreward: {x: 1}\n"
    task = read_task(package(folder, front + "benchflow: {document_version: '0.3'}\n"))
    assert (task.name, task.environment.image) == ("benchflow/hello", "debian:12")
    assert [(key.name, key.closest) for key in task.unknown_keys] == [("verifier.tmeout_sec", "verifier.timeout_sec")]
    (note,) = [note for note in task.notes if "nothing is done" in note]
    assert note.endswith("verifier.hardening, reward, benchflow.document_version")


def test_a_missing_part_is_named_by_the_format_s_own_path(folder: Make, offer: Offers) -> None:
    root = folder({"task.md": document(""), "verifier/x": "", "oracle/x": ""}, minimal=False)
    assert {refusal.path for refusal in obstacles(read_task(root), offer())} == {
        str(root / "verifier/test.sh"),
        str(root / "oracle/solve.sh"),
    }


@given(st.text(), st.sampled_from(["---", "+++"]))
def test_any_text_is_a_document_or_unreadable(text: str, fence: str) -> None:
    for whole in (text, f"{fence}\n{text}", f"{fence}\n{text}\n{fence}\n{text}"):
        try:
            read = read_document(whole, "task.md")
        except Refusal as refusal:
            assert refusal.reason is Reason.TASK_UNREADABLE
        else:
            assert all(isinstance(key, str) for key in read.values)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=200))
def test_a_prompt_without_headings_comes_back(body: str) -> None:
    prompt: Any = read_document(f"---\n---\n{body.replace('#', '')}", "task.md").prompt
    assert prompt == body.replace("#", "").strip()


_scalars = st.none() | st.booleans() | st.integers(-2, 70_000) | st.floats(allow_nan=False) | st.sampled_from(["", "a"])
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner), max_leaves=6
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(ROOT_KEYS)), _values, max_size=4))
def test_any_values_are_a_task_or_refused_by_type(values: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "task.md").write_text(f"---\n{json.dumps(values)}\n---\nDo it.\n")
        try:
            task = read_task(Path(folder))
        except Refusal as refusal:
            assert refusal.reason in (Reason.TASK_UNREADABLE, Reason.TASK_FORMAT_LATER)
        else:
            assert task.instruction.endswith("Do it.")
