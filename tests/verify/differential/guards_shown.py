"""Which rules of the runner's a frozen design shows: for each guard the check that says the same, or why none can."""

from __future__ import annotations

# Guards whose every refusal has its check: the two must agree on any design.
CHECK_OF = {
    "budget-there": "budget.there",
    "budget-whole": "budget.whole",
    "expected-positive": "budget.expected-positive",
    "caps-proportional": "budget.caps-proportional",
    "reserves-proportional": "budget.reserves-proportional",
    "allocation-in-cap": "budget.allocation-in-cap",
    "reserves-in-caps": "budget.reserves-in-caps",
    "prior-spend-counted": "budget.prior-spend-counted",
    "ceiling-free": "budget.ceiling-free",
}
# What the runner sees more of, even there.
ONLY_ADMISSION = {
    "budget-there": "prices of models that a selection leaves out: they are in no part of the design",
    "budget-whole": "an amount that is not given: it would be frozen as zero; under a selection, any model without one",
    "ceiling-free": "what earlier openings of the run were charged: budget.blocks and budget.ceiling see that",
}
# Guards on how a study is written, of which a design keeps a part: `design.plan` sees that (`test_no_such_design`).
IN_THE_PLAN = {
    "study-sound": "names that stand twice, amounts of another form, no arms; not: unknown keys, missing files",
    "tasks-readable": "two tasks of one name; not: what is in a task",
    "tasks-selected": "no task",
    "functions-found": "an arm's tools that the design does not have; not: that the function is there",
    "questions-sound": "a scorer that there is not, a row of no question set; not: what the rows say",
    "models-callable": "a bound on the output, prices of a known form; not: that the provider charges that",
}
# Guards on the machine, the invocation or the person: no part of it is frozen.
NOT_FROZEN = {
    "waivers-known": "the invocation; manifests.verdict sees what was waived",
    "study-in-this-version": "keys that no design has",
    "tasks-runnable": "the machine",
    "agent-sound": "what is installed",
    "agent-version": "what is installed",
    "sandbox-available": "the machine",
    "sandbox-network": "the machine; worlds.planned sees the networks that were",
    "git-readable": "the machine",
    "git-clean": "the machine; the manifest's probes have it",
    "components-supported": "the machine",
    "folder-free": "other processes",
    "run-new": "the folder",
    "run-there": "the folder",
    "evidence-sound": "the folder; what it looks at is most of the other checks",
    "run-incomplete": "the folder",
    "design-same": "the study now, against the design then",
    "tasks-same": "the tasks now, against the design then",
    "keys-there": "the environment",
    "model-named": "what the installed agent can do",
    "model-used": "what the installed agent can do",
    "model-suitable": "what the installed agent can do",
    "prices-whole": "what the installed agent can do",
    "gateway-reachable": "what the installed agent and the sandbox can do",
    "agent-answers": "what the installed agent can do",
    "spend-confirmed": "the person",
    "anchor-reachable": "other machines; anchors.required sees what was pushed there",
}
# Checks of a design whose rule the runner has no guard for: what it freezes holds it by how it is made.
BY_MAKING = {
    "synthetic.marked": "admission.models marks what the provider `practice` has, and refuses it any other wire format",
}
