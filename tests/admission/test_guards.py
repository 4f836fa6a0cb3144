"""Each guard has one fact that it alone refuses, and a twin that it lets pass."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from money_parts import MONEY, one_block, with_amount, with_budget, worthless

from proctor.admission.facts import AnchorFacts, CallingFacts, Component, Facts, FolderFacts, KeyFacts, Request
from proctor.admission.guards import REGISTRY
from proctor.admission.provenance import GitFacts, GitState
from proctor.agents.base import Abilities
from proctor.core.money import Usd
from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.usage import Bucket
from proctor.sandbox.base import Availability, Capabilities, Tier

CAPABLE = Capabilities(
    networks=frozenset({Network.NONE}),
    many_users=True,
    freeze=True,
    capture=True,
    builds_images=False,
    limits=frozenset({"memory"}),
)
ABLE = Abilities(needs_model=True, takes_model=True, apis=frozenset({"chat", "anthropic"}), answers_rows=True)
AVAILABLE = Availability("namespace", True, Tier.PRIVILEGED, CAPABLE)
GOOD = Facts(
    request=Request("run", Path("runs/x"), study=Path("study.toml")),
    selected=3,
    sandbox=AVAILABLE,
    network="none",
    git=GitFacts(GitState.CLEAN, "a" * 40),
    components=(Component("bubblewrap", "0.11.0", (0, 11), (1,)),),
    keys=(KeyFacts("luna", "LUNA_KEY", True),),
    calling=CallingFacts("toolloop", ABLE, ("luna", "moon"), 5, {"luna": "chat", "moon": "practice"}),
    money=MONEY,
    agreed=True,
    anchors=(AnchorFacts("git", "../a.git", True, None), AnchorFacts("drop", "../out", False, "it is gone")),
)
CALLING = GOOD.calling
assert CALLING is not None
RESUME = replace(GOOD, request=Request("resume", Path("runs/x")), folder=FolderFacts(admitted=True, complete=False))


def said(reason: Reason) -> Refusal:
    return Refusal(reason, "seen while gathering")


FAULTS: dict[str, tuple[Facts, Reason]] = {
    "waivers-known": (
        replace(GOOD, request=replace(GOOD.request, waive=("run_exists",))),
        Reason.UNKNOWN_WAIVER,
    ),
    "study-sound": (replace(GOOD, study=(said(Reason.UNKNOWN_KEY),)), Reason.UNKNOWN_KEY),
    "study-in-this-version": (replace(GOOD, study=(said(Reason.NOT_IN_THIS_VERSION),)), Reason.NOT_IN_THIS_VERSION),
    "tasks-readable": (replace(GOOD, tasks=(said(Reason.TASK_UNREADABLE),)), Reason.TASK_UNREADABLE),
    "tasks-selected": (replace(GOOD, selected=0), Reason.NOTHING_SELECTED),
    "tasks-runnable": (replace(GOOD, obstacles=(said(Reason.TASK_NEEDS_DOCKER),)), Reason.TASK_NEEDS_DOCKER),
    "agent-sound": (replace(GOOD, agents=(said(Reason.UNKNOWN_AGENT),)), Reason.UNKNOWN_AGENT),
    "agent-version": (replace(GOOD, skews=(said(Reason.RUNTIME_SKEW),)), Reason.RUNTIME_SKEW),
    "sandbox-available": (
        replace(GOOD, sandbox=replace(AVAILABLE, available=False, refusals=(said(Reason.USER_NAMESPACES_FORBIDDEN),))),
        Reason.USER_NAMESPACES_FORBIDDEN,
    ),
    "sandbox-network": (replace(GOOD, network="allowlist"), Reason.NETWORK_UNAVAILABLE),
    "git-readable": (replace(GOOD, git=GitFacts(GitState.BROKEN, why="bad object")), Reason.GIT_BROKEN),
    "git-clean": (replace(GOOD, git=GitFacts(GitState.DIRTY, "a" * 40, changes=1)), Reason.GIT_DIRTY),
    "components-supported": (
        replace(GOOD, components=(Component("bubblewrap", "0.10.9", (0, 11), (1,)),)),
        Reason.VERSION_UNSUPPORTED,
    ),
    "folder-free": (replace(GOOD, folder=FolderFacts(locked=said(Reason.RUN_LOCKED))), Reason.RUN_LOCKED),
    "run-new": (replace(GOOD, folder=FolderFacts(admitted=True)), Reason.RUN_EXISTS),
    "run-there": (replace(RESUME, folder=FolderFacts(admitted=False)), Reason.RUN_NOT_FOUND),
    "evidence-sound": (
        replace(RESUME, folder=FolderFacts(admitted=True, evidence=said(Reason.EVIDENCE_DAMAGED))),
        Reason.EVIDENCE_DAMAGED,
    ),
    "run-incomplete": (replace(RESUME, folder=FolderFacts(admitted=True, complete=True)), Reason.RUN_COMPLETE),
    "design-same": (replace(RESUME, changed=(("stage.epochs", 2, 3),)), Reason.DESIGN_CHANGED),
    "tasks-same": (replace(RESUME, changed_tasks=("fix-bug",)), Reason.TASK_CHANGED),
    "models-callable": (replace(GOOD, models=(said(Reason.PRICE_UNKNOWN),)), Reason.PRICE_UNKNOWN),
    "keys-there": (replace(GOOD, keys=(KeyFacts("luna", "LUNA_KEY", False),)), Reason.KEY_MISSING),
    "model-named": (replace(GOOD, calling=replace(CALLING, models=())), Reason.MODEL_NEEDED),
    "model-used": (
        replace(GOOD, calling=replace(CALLING, able=replace(ABLE, needs_model=False, takes_model=False))),
        Reason.MODEL_UNUSED,
    ),
    "prices-whole": (
        replace(
            GOOD,
            calling=replace(
                CALLING,
                able=replace(ABLE, marks=frozenset({Bucket.CACHE_WRITE})),
                priced={"luna": frozenset({"input", "output", "cache_write"}), "moon": frozenset({"input", "output"})},
            ),
        ),
        Reason.PRICE_UNKNOWN,
    ),
    "model-suitable": (
        replace(GOOD, calling=replace(CALLING, apis={"luna": "gemini"})),
        Reason.MODEL_UNSUITABLE,
    ),
    "gateway-reachable": (
        replace(GOOD, calling=replace(CALLING, able=replace(ABLE, inside=True))),
        Reason.GATEWAY_NEEDED,
    ),
    "agent-answers": (
        replace(GOOD, calling=replace(CALLING, able=replace(ABLE, answers_rows=False))),
        Reason.AGENT_UNSUITABLE,
    ),
    "questions-sound": (replace(GOOD, questions=(said(Reason.QUESTION_INVALID),)), Reason.QUESTION_INVALID),
    "functions-found": (replace(GOOD, functions=(said(Reason.TOOL_INVALID),)), Reason.TOOL_INVALID),
    "budget-there": (replace(GOOD, money=replace(MONEY, budget=None)), Reason.BUDGET_ABSENT),
    "budget-whole": (replace(GOOD, money=replace(MONEY, caps={})), Reason.BUDGET_INCOMPLETE),
    "expected-positive": (replace(GOOD, money=worthless(MONEY)), Reason.BUDGET_INCONSISTENT),
    "caps-proportional": (
        replace(GOOD, money=with_amount(MONEY, "caps", "luna", "108.005000000001")),
        Reason.BUDGET_INCONSISTENT,
    ),
    "reserves-proportional": (
        replace(GOOD, money=with_amount(MONEY, "reserves", "luna", "0.300500000001")),
        Reason.BUDGET_INCONSISTENT,
    ),
    "allocation-in-cap": (
        replace(GOOD, money=with_budget(MONEY, cap=Usd.parse("143.999999999999"))),
        Reason.BUDGET_INCONSISTENT,
    ),
    "reserves-in-caps": (replace(GOOD, money=one_block(MONEY)), Reason.BUDGET_INCONSISTENT),
    "prior-spend-counted": (
        replace(GOOD, money=replace(MONEY, prior_spend=Usd.parse("0.000000000001"))),
        Reason.PRIOR_SPEND_UNCOUNTED,
    ),
    "ceiling-free": (
        replace(GOOD, money=with_budget(MONEY, spent_before=Usd.parse("175"))),
        Reason.CEILING_REACHED,
    ),
    "spend-confirmed": (replace(GOOD, agreed=False), Reason.SPEND_NOT_CONFIRMED),
    "anchor-reachable": (
        replace(GOOD, anchors=(AnchorFacts("git", "../a.git", True, "it is gone"),)),
        Reason.ANCHOR_UNREACHABLE,
    ),
}


@pytest.mark.parametrize("facts", [GOOD, RESUME], ids=["run", "resume"])
def test_good_facts_are_not_refused(facts: Facts) -> None:
    assert REGISTRY.run(facts) == []


def test_every_guard_has_its_fault() -> None:
    assert {guard.id for guard in REGISTRY} == set(FAULTS)


@pytest.mark.parametrize("guard_id", FAULTS)
def test_one_fault_is_refused_by_its_guard_alone(guard_id: str) -> None:
    facts, reason = FAULTS[guard_id]
    refusals = REGISTRY.run(facts)
    assert [(refusal.guard, refusal.reason) for refusal in refusals] == [(guard_id, reason)]


@pytest.mark.parametrize("guard_id", FAULTS)
def test_no_guard_is_dead(guard_id: str) -> None:
    facts, _ = FAULTS[guard_id]
    assert REGISTRY.run(facts, disabled=frozenset({guard_id})) == []


def test_an_agent_inside_needs_a_sandbox_in_which_the_gateway_can_listen() -> None:
    inside = replace(GOOD, network="gateway-only", calling=replace(CALLING, able=replace(ABLE, inside=True)))
    networks = replace(CAPABLE, networks=frozenset({Network.NONE, Network.GATEWAY_ONLY}))
    assert REGISTRY.run(replace(inside, sandbox=replace(AVAILABLE, capabilities=networks))) == []
    deaf = replace(AVAILABLE, capabilities=replace(networks, gateway=False))
    (refusal,) = REGISTRY.run(replace(inside, sandbox=deaf))
    assert (refusal.guard, refusal.reason) == ("gateway-reachable", Reason.NETWORK_UNAVAILABLE)
    assert REGISTRY.run(replace(inside, sandbox=deaf, calling=CALLING)) == []


INSIDE = replace(GOOD, calling=replace(CALLING, able=replace(ABLE, inside=True)), network="gateway-only")
DEAF = replace(
    AVAILABLE,
    capabilities=replace(CAPABLE, networks=frozenset({Network.NONE, Network.GATEWAY_ONLY}), gateway=False),
)
NO_MODEL = Abilities(needs_model=False, takes_model=False, inside=True)
SILENT: dict[str, Facts] = {
    "nothing is known of its money": replace(GOOD, money=None),
    "nothing is known of its agent": replace(GOOD, calling=None),
    "nothing is known of a sandbox": replace(INSIDE, sandbox=None),
    "nothing is known of a network": replace(INSIDE, sandbox=DEAF, network=None),
    "no sandbox is asked for a network": replace(GOOD, sandbox=None, network="allowlist"),
    "nobody looked for a repository": replace(GOOD, git=None),
    "an agent that needs no model": replace(GOOD, calling=CallingFacts("shell", NO_MODEL, (), 0), money=None),
    "an agent that could call one": replace(
        GOOD, calling=CallingFacts("either", replace(ABLE, needs_model=False), (), 0), money=None
    ),
    "an agent that speaks whatever is asked": replace(
        GOOD, calling=replace(CALLING, able=replace(ABLE, apis=frozenset()))
    ),
    "a waiver of what may be waived": replace(GOOD, request=replace(GOOD.request, waive=("git_dirty",))),
    "tasks alone": replace(GOOD, calling=replace(CALLING, able=replace(ABLE, answers_rows=False), rows=0)),
}


@pytest.mark.parametrize("what", SILENT)
def test_where_a_fact_is_missing_its_guards_say_nothing(what: str) -> None:
    assert REGISTRY.run(SILENT[what]) == []


def test_a_sandbox_that_is_not_there_is_not_asked_what_it_can_do() -> None:
    gone = replace(DEAF, available=False, refusals=(said(Reason.DOCKER_UNAVAILABLE),))
    for network in ("gateway-only", "allowlist"):
        guards = [refusal.guard for refusal in REGISTRY.run(replace(INSIDE, sandbox=gone, network=network))]
        assert guards == ["sandbox-available"]


@pytest.mark.parametrize(
    ("facts", "guard_id"),
    [
        (replace(GOOD, selected=0, tasks=(said(Reason.TASK_UNREADABLE),)), "tasks-readable"),
        (replace(GOOD, selected=0, questions=(said(Reason.QUESTION_INVALID),)), "questions-sound"),
        (replace(GOOD, folder=FolderFacts(admitted=True, complete=True)), "run-new"),
        (replace(RESUME, folder=FolderFacts(admitted=False, complete=None)), "run-there"),
    ],
    ids=["no task could be read", "no row could be read", "a complete run is run again", "no run is resumed"],
)
def test_what_follows_from_a_fault_is_not_said_too(facts: Facts, guard_id: str) -> None:
    assert [refusal.guard for refusal in REGISTRY.run(facts)] == [guard_id]


@pytest.mark.parametrize(("head", "said"), [(None, "no commit yet"), ("a" * 40, "changes that no commit holds")])
def test_a_repository_without_a_commit_is_told_from_one_with_changes(head: str | None, said: str) -> None:
    (refusal,) = REGISTRY.run(replace(GOOD, git=GitFacts(GitState.DIRTY, head, changes=1)))
    assert refusal.message.endswith(said)


def test_the_model_without_a_price_is_named() -> None:
    (refusal,) = REGISTRY.run(FAULTS["prices-whole"][0])
    assert (refusal.path, refusal.required) == ("models.moon.price", ["cache_write"])


def test_only_an_unclean_work_tree_and_another_version_can_be_waived() -> None:
    assert {reason for guard in REGISTRY for reason in guard.waivable} == {Reason.GIT_DIRTY, Reason.RUNTIME_SKEW}


@pytest.mark.parametrize(
    ("version", "fits"),
    [
        ("0.11.0", True),
        ("0.11", True),
        ("0.99.9", True),
        ("1", False),
        ("1.0", False),
        ("0.9", False),
        ("0.11.0rc1", True),
        ("", False),
        (None, False),
        ("garbage", False),
    ],
)
def test_component_ranges(version: str | None, fits: bool) -> None:
    facts = replace(GOOD, components=(Component("bubblewrap", version, (0, 11), (1,)),))
    assert (REGISTRY.run(facts) == []) is fits
