"""Rules that hold over the whole repository, read from its sources."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from static_effects import Sources, reachable_effects

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src"
PYTHON = sorted(SRC.rglob("*.py"))

# What runs before admission. All that it reaches is looked at, however far away, up to where a token is needed.
BEFORE_ADMISSION = [
    "proctor.core",
    "proctor.study",
    "proctor.tasks",
    "proctor.grading",
    "proctor.agents",
    "proctor.admission",
    "proctor.report",
    "proctor.cli",
    "proctor.api",
]
FAR = 50
# Worlds are made with a token only.
TOKENS = frozenset({"proctor.sandbox.base.Sandbox"})
# Functions that may act without a token, and why; what they call is theirs.
LOOKS = {
    "proctor.admission.provenance._git": "git is asked, read-only and with a deadline",
    "proctor.evidence.anchors.git.look": "takes a Probe: git asks a repository what it has, read-only",
    "proctor.sandbox.docker.kind.DockerKind.images": "takes a Probe: the engine is asked what it has, read-only",
    "proctor.sandbox.docker.kind.DockerKind.probe": "takes a Probe: the engine is asked what it is, read-only",
    "proctor.sandbox.namespace.kind.NamespaceKind.probe": "takes a Probe: what can be had is tried, and removed again",
}
DOORS = LOOKS | {
    "proctor.admission.doctor_worlds._may_make_namespaces": "an ordinary user's namespace is tried, and ends at once",
    "proctor.admission.admit._create": "the verdict is on disk: the design and entry 0 follow",
    "proctor.runner.installing.install.install": "the program of an agent, where a person asked for it",
    "proctor.api.verifying.verify": "the second program, in a process of its own",
    "proctor.api.writing._place": "a task folder, where a person asked for one",
    "proctor.cli.streams.open_missing": "/dev/null takes the place of a standard stream that the process lacks",
    "proctor.cli.streams._flushed": "/dev/null takes the place of a stream that takes no more",
    "proctor.cli.new._write": "a study for a beginner, into a folder that was asked for",
    "proctor.cli.plan._replace": "the study file, where --write asks for it",
    "proctor.cli.verify._wait_for": "the second program, in a process of its own",
    "proctor.evidence.calls.CallRecord.open": "all guards agree: a gateway's record begins",
    "proctor.evidence.journal.Journal.reopen": "the verdict is on disk: a resume opens its journal",
    "proctor.evidence.keys.load_or_create": "the operator's key is made on first use, and that is said",
    "proctor.evidence.lock.Lock.acquire": "one writer, from before the manifest on",
    "proctor.evidence.proof_index.forget": "an index in the user's cache, which is made anew",
    "proctor.evidence.proof_index.open_database": "an index in the user's cache, kept where a proof is asked for",
    "proctor.evidence.public.publish.publish": "a public copy, where a person asked for one",
    "proctor.evidence.runfolder.ManifestHandle.rewrite": "the manifest, at the verdict",
    "proctor.evidence.runfolder.RunFolder.create": "a folder for the manifest",
    "proctor.evidence.runfolder.RunFolder.new_manifest": "the manifest, before any gate",
    "proctor.report.output.replaced": "a file of results, where -o asks for it",
    "proctor.runner.attest.attest": "the second program, and a timestamp authority, where a person asked for them",
    "proctor.runner.control.ask": "a live run is asked on its own socket",
    "proctor.runner.control.socket_path": "a private folder for that socket",
    "proctor.runner.gateway._listening": "a port for a gateway, which takes nothing before its record is open",
    "proctor.runner.launch.free_folder": "an empty run folder, so that two starts at once do not share one",
    "proctor.runner.rebuild.rebuild": "derived files, made anew from a run that was admitted",
    "proctor.runner.verifying.table_of_checks": "the second program says what it checks, in a process of its own",
    "proctor.runner.shell.open_shell": "a person's own shell in a world of a run that was admitted",
}
# Boundaries that record whatever they catch, and why they are ones.
MAY_CATCH_ALL = {
    "proctor.admission.finish._outcome": "the boundary of the process: the run ends on the record",
    "proctor.agents.handed.__call__": "the boundary of a person's own agent: why it cannot be made is a refusal",
    "proctor.agents.handed._contained": "the boundary of a person's own agent: its fault is how its attempt ended",
    "proctor.evidence.commits._outcome": "the boundary of the journal's thread: its fault is told in the loop",
    "proctor.rollout.ends.to_its_end": "the boundary of an attempt: it ends on the record, the run goes on",
    "proctor.rollout.worker._reply": "the boundary of a study's own function: what it raises is its answer",
    "proctor.sandbox.namespace.launcher.wire._answer": "the boundary of a request: the fault is its answer",
}

_ALL = ("Exception", "BaseException")


def modules(folder: Path) -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(folder.rglob("*.py")):
        name = ".".join(file.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
        yield name, ast.parse(file.read_text(encoding="utf-8"), str(file))


def kept_files() -> list[Path]:
    """Files of the repository: those that git knows, or all of a tree without git but for what is ignored."""
    try:
        listed = subprocess.run(
            ["git", "-c", "safe.directory=*", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, timeout=60
        )
    except (OSError, subprocess.CalledProcessError):
        hidden = {".git", ".venv", "runs", "__pycache__"}
        return [path for path in ROOT.rglob("*") if path.is_file() and not hidden & set(path.relative_to(ROOT).parts)]
    paths = (ROOT / name.decode() for name in listed.stdout.split(b"\0") if name)
    return [path for path in paths if path.is_file()]


@pytest.fixture(scope="module")
def sources() -> Sources:
    return Sources(SRC, "proctor", TOKENS)


def test_nothing_acts_before_admission(sources: Sources) -> None:
    reached = reachable_effects(sources, BEFORE_ADMISSION, FAR, frozenset(DOORS))
    assert [str(finding) for finding in reached.findings] == []
    assert reached.doors == DOORS.keys(), "a door that nothing comes to is none"


def test_check_only_looks(sources: Sources) -> None:
    reached = reachable_effects(sources, ["proctor.cli.check", "proctor.admission.admit.check"], FAR, frozenset(LOOKS))
    assert [str(finding) for finding in reached.findings] == []
    assert reached.doors == LOOKS.keys()


@pytest.mark.parametrize("door", DOORS)
def test_each_door_acts(sources: Sources, door: str) -> None:
    assert reachable_effects(sources, [door], FAR).findings


def test_tokens_are_sealed_by_admission_only() -> None:
    seals = {"seal_admitted", "seal_probe"}
    users = {
        name
        for name, tree in modules(SRC)
        for node in ast.walk(tree)
        if (isinstance(node, ast.Name) and node.id in seals)
        or (isinstance(node, ast.Attribute) and node.attr in seals)
        or (isinstance(node, ast.ImportFrom) and any(alias.name in seals for alias in node.names))
    }
    assert {name for name in users if not name.startswith("proctor.admission")} == set()


def test_only_boundaries_catch_everything() -> None:
    found = set()
    for name, tree in modules(SRC):
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.ExceptHandler) and _swallows_all(node):
                    found.add(f"{name}.{function.name}")
    assert found == MAY_CATCH_ALL.keys()


def _swallows_all(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    if isinstance(last, ast.Raise) and last.exc is None:
        return False
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(name is None or (isinstance(name, ast.Name) and name.id in _ALL) for name in caught)


def test_the_second_program_stands_alone() -> None:
    allowed = sys.stdlib_module_names | {"cryptography", "proctor_verify"}
    for name, tree in modules(SRC / "proctor_verify"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                assert {alias.name.split(".")[0] for alias in node.names} <= allowed, name
            elif isinstance(node, ast.ImportFrom) and not node.level:
                assert (node.module or "").split(".")[0] in allowed, name


@pytest.mark.parametrize("folder", ["src", "bench", "docs", "examples"])
def test_files_fit_in_the_head(folder: str) -> None:
    files = (ROOT / folder).rglob("*.py")
    lengths = {str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    assert {name: length for name, length in lengths.items() if length > 500} == {}


def test_modules_of_the_tests_have_names_of_their_own() -> None:
    # pytest, and helpers that tests import, know modules by their bare name
    files = [file for file in (ROOT / "tests").rglob("*.py") if file.name != "conftest.py"]
    names = Counter(file.name for file in files)
    assert [str(file.relative_to(ROOT)) for file in files if names[file.name] > 1] == []


def test_sources_silence_no_tool_and_leave_no_notes() -> None:
    silencer = re.compile(r"#\s*(type:\s*ignore|noqa|mypy:|pyright:)|\b(TODO|FIXME|XXX)\b")
    found = [
        f"{f.relative_to(ROOT)}: {line}" for f in PYTHON for line in f.read_text().splitlines() if silencer.search(line)
    ]
    assert found == []


def test_no_file_names_a_machine_or_a_registry() -> None:
    # put together here, so that this file does not name them
    hosts = r"py{0}pi\.org|python{0}hosted|registry\.npm{0}js".format("")
    folders = "|".join(
        [
            "wo" + "rk/(main|shared)",
            "ro" + r"ot/\.(pyenv|config|ssh|local)",
            "ho" + r"me/\w+",
            "op" + "t/(wheels|py" + "pi)",
        ]
    )
    named = re.compile(rf"{hosts}|(?<![\w}})*.])/({folders})/")
    assert (
        named.search("see /" + "work/main/x") and named.search("py" + "pi.org") and not named.search("/proc/1/root/x")
    )
    found = []
    for file in kept_files():
        text = file.read_text(encoding="utf-8", errors="replace")
        found += [f"{file.relative_to(ROOT)}: {match[0]}" for match in named.finditer(text)]
    assert found == []


@pytest.mark.parametrize("lock", ["run", "dev"])
def test_locks_pin_what_the_project_declares(lock: str) -> None:
    text = (ROOT / f"requirements/{lock}.lock").read_text()
    pins = {canonicalize_name(name): Version(version) for name, version in re.findall(r"^([\w.-]+)==(\S+)", text, re.M)}
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = declared["project"]["dependencies"] + declared["build-system"]["requires"]
    if lock == "dev":
        wanted = wanted + declared["dependency-groups"]["dev"]
    for requirement in map(Requirement, wanted):
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), requirement
    assert "--index" not in text and "--find" not in text
    assert len(re.findall(r"^[\w.-]+==", text, re.M)) <= text.count("--hash=sha256:")


def test_both_locks_pin_the_same_versions() -> None:
    run, dev = (
        set(re.findall(r"^[\w.-]+==\S+", (ROOT / f"requirements/{n}.lock").read_text(), re.M)) for n in ("run", "dev")
    )
    assert run <= dev


def test_tasks_of_the_quickstart_share_one_harness() -> None:
    tasks = sorted((ROOT / "examples/quickstart/tasks").iterdir())
    for shared in ("checks.py", "test.sh"):
        assert len({(task / "tests" / shared).read_bytes() for task in tasks}) == 1, shared
