"""Images of a task's worlds: what is taken, what a build starts from, what only BuildKit can, what is pinned."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planning import environment_plan, obstacles

from proctor.core.reasons import Reason
from proctor.tasks.context import CopyIn
from proctor.tasks.dockerfile import NotPlain
from proctor.tasks.images import ImagePlan, build_key, external_images, images_of, pinned
from proctor.tasks.offer import Offer
from proctor.tasks.plan import ImageKnows
from proctor.tasks.reading import read_task
from proctor.tasks.recipe import Folder, read_recipe
from proctor.tasks.tree import read_tree

Make = Callable[..., Path]
Offers = Callable[..., Offer]


@pytest.fixture
def images(offer: Offers) -> Offers:
    """A sandbox with images and users, of the classic builder."""

    def make(**given: object) -> Offer:
        return offer(**{"sandbox": "docker", "builds_images": True, "many_users": True, **given})

    return make


STAGES = """ARG TAG=12
ARG BASE=debian:${TAG}
FROM --platform=linux/amd64 ${BASE} AS Build
RUN make
FROM build AS again
FROM python:3.13-slim \\
    AS last
COPY --from=build /a /a
COPY --from=0 /a /b
COPY --from=ghcr.io/org/tools:1 /bin/x \\
    /bin/x
FROM scratch
COPY --from=last /a /a
"""


def test_every_image_that_a_build_starts_from_is_named_once() -> None:
    recipe = read_recipe(STAGES, "environment/Dockerfile")
    assert external_images(recipe.instructions) == ("debian:12", "python:3.13-slim", "ghcr.io/org/tools:1")


def test_a_pinned_build_starts_from_ids_and_keeps_its_lines() -> None:
    recipe = read_recipe(STAGES, "environment/Dockerfile")
    ids = {name: f"sha256:{n}" for n, name in enumerate(external_images(recipe.instructions))}
    lines = pinned(STAGES, recipe, ids).split("\n")
    assert len(lines) == len(STAGES.split("\n"))
    assert lines[2] == "FROM --platform=linux/amd64 sha256:0 AS Build"
    assert (lines[4], lines[6]) == ("FROM build AS again", "")
    assert lines[5].split() == ["FROM", "sha256:1", "AS", "last"]
    assert lines[9].split() == ["COPY", "--from=sha256:2", "/bin/x", "/bin/x"]
    assert external_images(read_recipe("\n".join(lines), "x").instructions) == tuple(ids.values())


_LATER = "FROM debian:12 AS a\nONBUILD COPY --chown=1 --from=tools:1 /x /x\nFROM a\n"


@pytest.mark.parametrize("line", ["ARG X\nFROM $X\n", "FROM $X\n", "FROM ${X%y}\n", _LATER])
def test_a_base_without_a_value_is_no_build(folder: Make, images: Offers, line: str) -> None:
    with pytest.raises(NotPlain):
        external_images(read_recipe(line, "x").instructions)
    root = folder({"environment/Dockerfile": line})
    (refusal,) = obstacles(read_task(root), images())
    assert (refusal.reason, refusal.path) == (Reason.TASK_UNREADABLE, str(root / "environment/Dockerfile"))


@given(st.lists(st.sampled_from(["a:1", "b", "c@sha256:0", "scratch", "s0", "s1"]), min_size=1, max_size=5))
def test_pinning_changes_no_stage(bases: list[str]) -> None:
    text = "".join(f"FROM {base} AS s{number}\nRUN true\n" for number, base in enumerate(bases))
    recipe = read_recipe(text, "x")
    outside = external_images(recipe.instructions)
    assert pinned(text, recipe, {name: name for name in outside}) == text
    there = pinned(text, recipe, {name: f"id-{number}" for number, name in enumerate(outside)})
    assert external_images(read_recipe(there, "x").instructions) == tuple(f"id-{n}" for n in range(len(outside)))


@pytest.mark.parametrize(
    "line",
    [
        "RUN <<EOF\nmake\nEOF",
        "COPY <<EOF /f\nx\nEOF",
        "RUN --mount=type=cache,target=/x make",
        "RUN --network=none make",
        "RUN --security=insecure make",
        "COPY --chmod=755 Dockerfile /f",
        "COPY --parents a /b",
        "COPY --link Dockerfile /f",
        "COPY --exclude=x . /f",
        "RUN \\\n# words\n\n --security=insecure echo",
        "run cat <<'EOF' > /x\nEOF",
        "ADD --checksum=sha256:0 https://example.org/y /y",
        "FROM --platform=$BUILDPLATFORM debian:12",
    ],
)
def test_what_only_buildkit_can_is_named_with_its_line(folder: Make, images: Offers, line: str) -> None:
    root = folder({"environment/Dockerfile": f"FROM debian:12\nRUN make\n{line}\n"})
    (refusal,) = obstacles(read_task(root), images())
    assert (refusal.reason, refusal.path) == (Reason.BUILD_UNSUPPORTED, f"{root}/environment/Dockerfile:3")


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
        "LABEL a='--mount'",
    ],
)
def test_lines_that_the_classic_builder_knows_pass(folder: Make, images: Offers, line: str) -> None:
    root = folder({"environment/Dockerfile": f"FROM debian:12\n{line}\n"})
    assert obstacles(read_task(root), images()) == []


def test_a_platform_that_the_file_sets_is_the_classic_builder_s_too(folder: Make, images: Offers) -> None:
    root = folder({"environment/Dockerfile": "ARG P=linux/amd64\nFROM --platform=$P debian:12\n"})
    assert obstacles(read_task(root), images()) == []


def test_a_build_is_left_to_the_builder(folder: Make, images: Offers) -> None:
    files = {
        "environment/Dockerfile": "FROM debian:12\nWORKDIR /d\nENV A=1\nRUN curl x | sh\nUSER me\n",
        "environment/data": "x",
        "task.toml": "[environment]\nbuild_timeout_sec = 9\nenv = {B = '2', C = '${C:-3}'}\n",
    }
    root = folder(files)
    main = environment_plan(read_task(root), images(host_env={"C": "4"})).main
    assert (main.workdir, main.user, main.build, main.root) == (None, None, (), None)
    assert main.env == {"B": "2", "C": "4"}
    assert main.image_plan == ImagePlan(
        named="debian:12",
        folder="environment",
        context_sha256=read_tree(root / "environment").digest,
        bases={"debian:12": "debian:12"},
        timeout_sec=9,
    )
    settled = main.of_image("/d", "me")
    assert (settled.starts_in, settled.user) == ("/d", "me")
    assert main.of_image("", None).starts_in == "/"


def test_loose_files_are_put_where_only_the_image_knows(folder: Make, images: Offers) -> None:
    toml = "[environment]\ndocker_image = 'org/app:1'\n"
    root = folder({"task.toml": toml, "environment/a": "x"})
    main = environment_plan(read_task(root), images()).main
    assert main.image_plan == ImagePlan("org/app:1", reference="org/app:1")
    assert main.build == (CopyIn(root / "environment", "."),)
    named = folder({"task.toml": toml + "workdir = '/w'\n"})
    assert environment_plan(read_task(named), images()).main.build == (CopyIn(root / "environment", "/w"),)


@pytest.mark.parametrize(
    ("toml", "compose", "reference", "folder_"),
    [
        ("docker_image = 'a:1'", None, "a:1", None),
        ("docker_image = 'a:1'", "{working_dir: /x}", "a:1", None),
        ("docker_image = 'a:1'", "{build: .}", None, "environment"),
        ("docker_image = 'a:1'", "{build: ., image: b}", None, "environment"),
        ("", "{image: b}", "b", None),
        ("", "{working_dir: /x}", None, "environment"),
        ("", None, None, "environment"),
    ],
)
def test_the_named_image_stands_above_a_build_that_is_not_asked_for(
    folder: Make, images: Offers, toml: str, compose: str | None, reference: str | None, folder_: str | None
) -> None:
    files: dict[str, str | None] = {
        "environment/Dockerfile": "FROM debian:12\n",
        "task.toml": f"[environment]\n{toml}\n",
        "environment/compose.yaml": None if compose is None else f"services: {{main: {compose}}}",
    }
    plan = environment_plan(read_task(folder(files)), images()).main.image_plan
    assert plan is not None
    assert (plan.reference, plan.folder) == (reference, folder_)


def test_a_compose_file_of_main_says_how_it_runs(folder: Make, images: Offers) -> None:
    compose = "services: {main: {image: b, working_dir: /c, user: root, environment: {A: $$1}}}"
    main = environment_plan(read_task(folder({"environment/compose.yaml": compose})), images()).main
    assert (main.workdir, main.user, main.env) == ("/c", "0", {"A": "$1"})
    more = folder({"environment/compose.yaml": "services: {main: {image: b}, db: {image: c}}"})
    assert [refusal.reason for refusal in obstacles(read_task(more), images())] == [Reason.TASK_NEEDS_COMPOSE]


def test_a_task_without_any_image_cannot_run_there(folder: Make, images: Offers) -> None:
    (refusal,) = obstacles(read_task(folder({"environment/a": "x"})), images())
    assert (refusal.reason, refusal.path is not None) == (Reason.IMAGE_MISSING, True)


@pytest.mark.parametrize(
    ("said", "user"),
    [(None, None), ("'root'", "0"), ("0", "0"), ("'root:root'", "0:0"), ("'me'", "me"), ("1000", "1000")],
)
def test_root_that_is_said_is_not_what_the_image_says(
    folder: Make, images: Offers, offer: Offers, said: str | None, user: str | None
) -> None:
    toml = "" if said is None else f"[agent]\nuser = {said}\n[verifier]\nuser = {said}\n"
    root = folder({"task.toml": toml, "environment/Dockerfile": "FROM debian:12\nUSER other\n"})
    plan = environment_plan(read_task(root), images())
    assert (plan.agent_user, plan.verifier_user) == (user, user)
    settled = plan.of_images(ImageKnows("/w", "other"), None)
    assert settled.agent_user == settled.verifier_user == (user or "other")
    without = environment_plan(read_task(root), offer(many_users=True))
    assert without.agent_user == ("other" if said is None else None if user in ("0", "0:0") else user)


SEPARATE = 'artifacts = ["out"]\n[verifier]\nenvironment_mode = "separate"\n'


@pytest.mark.parametrize(
    ("files", "brought", "folder_"),
    [
        ({"tests/Dockerfile": "FROM debian:12\nCOPY . /tests/\n"}, False, "tests"),
        ({"tests/Dockerfile": "FROM debian:12\nRUN git clone x /tests\n"}, False, "tests"),
        ({"tests/Dockerfile": "FROM debian:12\nCOPY . /elsewhere/\n"}, True, "tests"),
        ({"tests/compose.yaml": "services: {main: {image: v}}"}, False, None),
        ({"environment/Dockerfile": "FROM debian:12\nRUN make\n"}, True, "environment"),
        ({"task.toml": SEPARATE + "[verifier.environment]\ndocker_image = 'v'\n", "tests/test.sh": None}, False, None),
    ],
)
def test_who_brings_the_tests_of_a_separate_verifier(
    folder: Make, images: Offers, files: dict[str, str | None], brought: bool, folder_: str | None
) -> None:
    main = {"environment/Dockerfile": "FROM debian:12\n", "task.toml": SEPARATE}
    task = read_task(folder({**main, **files}))
    plan = environment_plan(task, images())
    assert plan.verifier is not None and plan.verifier.image_plan is not None
    assert (plan.bring_tests, plan.verifier.image_plan.folder) == (brought, folder_)
    assert len(plan.images) == 2
    settled = plan.of_images(ImageKnows("/a", None), ImageKnows("/v", "judge"))
    assert settled.verifier is not None
    assert (settled.main.starts_in, settled.verifier.starts_in) == ("/a", "/v")
    assert (settled.agent_user, settled.verifier_user) == (None, "judge")


def test_the_study_s_substitutes_are_images_here(folder: Make, images: Offers) -> None:
    offered = images(image_substitutes={"debian:12": "mirror/debian:12", "org/app": "local:1"})
    build = "FROM debian:12 AS a\nFROM docker.io/library/debian:12\nFROM alpine:3\n"
    main = environment_plan(read_task(folder({"environment/Dockerfile": build})), offered).main
    assert main.image_plan is not None and main.base_substituted is not None
    assert main.image_plan.bases == {
        "debian:12": "mirror/debian:12",
        "docker.io/library/debian:12": "mirror/debian:12",
        "alpine:3": "alpine:3",
    }
    record = main.base_substituted
    assert (record["image"], record["root"], record["explicit"]) == ("debian:12", "mirror/debian:12", True)
    assert images_of([main.image_plan, None]) == ("alpine:3", "mirror/debian:12")
    named = folder({"task.toml": "[environment]\ndocker_image = 'org/app:latest'\n"}, name="other")
    plan = environment_plan(read_task(named), offered).main.image_plan
    assert plan == ImagePlan("org/app:latest", reference="local:1")


def test_a_build_is_named_by_all_that_goes_in(folder: Make, images: Offers) -> None:
    def plan(**files: str) -> ImagePlan:
        more = {f"environment/{name}": text for name, text in files.items()}
        root = folder({"environment/Dockerfile": "FROM debian:12\n", "environment/data": "x", **more})
        found = environment_plan(read_task(root), images()).main.image_plan
        assert found is not None
        return found

    ids, platform = {"debian:12": "sha256:1"}, "linux/amd64"
    first = plan()
    keys = [
        build_key(first, ids, platform),
        build_key(first, {"debian:12": "sha256:2"}, platform),
        build_key(first, ids, "linux/arm64"),
        build_key(plan(data="y"), ids, platform),
        build_key(plan(data="x", **{".dockerignore": "data\n"}), ids, platform),
    ]
    assert len(set(keys)) == len(keys)
    (Path(folder(name="small")) / "environment/.dockerignore").unlink()
    assert build_key(plan(data="x"), ids, platform) == keys[0]


@pytest.mark.parametrize("name", ["Dockerfile", ".dockerignore"])
def test_what_says_how_to_build_lies_in_what_is_built(folder: Make, images: Offers, name: str) -> None:
    text = "FROM debian:12\n"
    root = folder({"environment/Dockerfile": text, "environment/other": text, "shared": text})
    (root / "environment" / name).unlink(missing_ok=True)
    (root / "environment" / name).symlink_to("other")
    inside = environment_plan(read_task(root), images()).main.image_plan
    (root / "environment/other").write_text(text + "RUN true\n")
    changed = environment_plan(read_task(root), images()).main.image_plan
    assert inside is not None and changed is not None and inside.context_sha256 != changed.context_sha256
    (root / "environment" / name).unlink()
    (root / "environment" / name).symlink_to("../shared")
    (refusal,) = obstacles(read_task(root), images())
    assert (refusal.reason, refusal.path) == (Reason.TASK_UNSAFE, str(root / "environment" / name))


def test_a_folder_s_digest_is_its_own_tree_s(folder: Make) -> None:
    root = folder({"environment/a/b": "x", "environment/a/empty": "", "environmentx/c": "y"})
    (root / "environment/link").symlink_to("a/b")
    tree = read_tree(root)
    assert tree.digest_below("environment") == read_tree(root / "environment").digest
    assert tree.digest_below("tests") == read_tree(root / "tests").digest


def test_a_folder_of_the_namespace_kind_keeps_its_steps(folder: Make, offer: Offers) -> None:
    main = environment_plan(read_task(folder({"environment/a": "x"})), offer()).main
    assert main.image_plan is None
    assert main.build[0] == Folder(0, "/app")
