"""What is mutated, and which tests judge a mutant that no story tells apart."""

from __future__ import annotations

from collections.abc import Mapping

# Modules that checks lean on, with the tests of the module alone. Modules of checks are found by the registry.
RULES: Mapping[str, tuple[str, ...]] = {
    "proctor_verify.canonical": ("verify/test_no_canonical_form.py", "verify/test_json_vectors.py"),
    "proctor_verify.journal": ("verify/test_lines.py",),
    "proctor_verify.merkle": ("verify/test_merkle_vectors.py",),
    "proctor_verify.money": (),
    "proctor_verify.notes": ("verify/test_note_keys.py", "verify/test_notes_vectors.py"),
    "proctor_verify.order": ("verify/test_order.py",),
    "proctor_verify.prices": ("verify/test_prices_edges.py",),
    "proctor_verify.schema": ("verify/test_schema.py", "verify/test_bodies.py"),
    "proctor_verify.shapes": ("verify/test_shapes.py",),
    "proctor_verify.strictbase64": ("verify/test_notes_vectors.py", "verify/test_proof_files.py"),
    "proctor_verify.strictjson": ("verify/test_quick_json.py", "verify/test_json_vectors.py"),
    "proctor_verify.verdicts": ("verify/test_standing.py",),
}
# Checks of which more than stories are asked.
CHECKS: Mapping[str, tuple[str, ...]] = {
    "proctor_verify.checks.anchors": ("verify/test_anchor_edges.py", "verify/test_anchor_stories.py"),
    "proctor_verify.checks.attempts": ("verify/test_findings.py",),
    "proctor_verify.checks.checkpoints": ("verify/test_anchor_stories.py",),
    "proctor_verify.checks.chunks": ("verify/test_frames.py",),
    "proctor_verify.checks.files": ("verify/test_kept_from_us.py", "verify/test_findings.py"),
    "proctor_verify.checks.finals": ("verify/test_findings.py",),
    "proctor_verify.checks.heads": ("verify/test_heads.py", "verify/test_witnesses.py"),
    "proctor_verify.checks.journal": ("verify/test_findings.py", "verify/test_stretches.py"),
    "proctor_verify.checks.keys": ("verify/test_witnesses.py",),
    "proctor_verify.checks.manifests": ("verify/test_manifest_places.py",),
    "proctor_verify.checks.packs": ("verify/test_frames.py",),
}
# Guards and what they lean on. Modules of guards are found by their registries, and judged by the first of these.
GUARDS: Mapping[str, tuple[str, ...]] = {
    "proctor.admission.anchors": ("admission/test_guards.py", "admission/test_anchor_places.py"),
    "proctor.admission.guards": ("admission/test_guards.py",),
    "proctor.admission.model_guards": ("admission/test_guards.py",),
    "proctor.admission.money_guards": ("admission/test_guards.py", "admission/test_money_rules.py"),
    "proctor.admission.standalone": ("admission/test_gateway_guards.py", "admission/test_standalone_admission.py"),
    "proctor.budget.ceiling": ("budget/test_ceiling_bounds.py", "budget/test_ceiling_machine.py"),
    "proctor.budget.rules": ("admission/test_money_rules.py",),
}

ANY_GUARDS = ("admission/test_guards.py",)
# The kinds of changes that are in the run: nothing that says no may be dropped without a test that sees it, and no
# condition forced or turned, no operand or negation of it dropped, no boundary moved by one.
IN_THE_RUN = frozenset(
    {
        *("check disabled", "guard disabled"),
        *("finding dropped", "refusal dropped", "error dropped", "fault dropped"),
        *("condition negated", "condition always", "condition never", "condition dropped", "guard dropped"),
        *("comparison turned", "boundary moved", "operand dropped", "negation dropped"),
    }
)
