"""The words that entries may use, as the evidence format lists them: an own copy, held to the page by a test."""

from __future__ import annotations

# strictest first
NETWORKS = ("none", "gateway-only", "allowlist", "public")
SIGNALS = {129: "SIGHUP", 130: "SIGINT", 143: "SIGTERM"}
EXITS = frozenset({0, 1, 4, 5, *SIGNALS})
CAUSES = frozenset({*SIGNALS.values(), "deadline", "prepare-only"})

# what goes in, then what comes out: tiers of prices go by the sum of the first
INPUTS = frozenset({"input", "cache_read", "cache_write", "cache_write_1h", "audio_in", "tool_input"})
BUCKETS = INPUTS | frozenset({"output", "reasoning", "audio_out"})
SCOPES = frozenset({"ceiling", "overrun", "cap", "model_cap"})
SCORERS = frozenset({"exact", "choice", "regex", "number", "json", "python"})
# how the paths end by which tokens are counted, for nothing, in the formats that know it
COUNTS_OF = {"anthropic": "/count_tokens", "gemini": ":countTokens"}
COUNTS = tuple(COUNTS_OF.values())
ANCHORS = frozenset({"git", "drop"})
GRADES = ("pass", "fail", "ungraded")
MUTATIONS = frozenset({"include_usage", "clamp_max_output"})

# why an exchange may not be paid for
REFUSED_FOR = frozenset({"ceiling_reached", "overrun", "budget_absent", "price_unknown"})
# why the gateway does not pass on a request
NOT_PASSED = frozenset(
    {
        "route_unknown",
        "model_not_listed",
        "request_unreadable",
        "request_too_large",
        "feature_unpriced",
        "output_above_bound",
    }
)
# and what its exchanges say of an attempt that stays ungraded without having come to its end
UNPAID = REFUSED_FOR | frozenset(
    {"request_rejected", "reply_too_large", "model_not_listed", "feature_unpriced", "output_above_bound"}
)

# what an attempt can have as its exception only where an exchange of it says so
OF_EXCHANGES = UNPAID | frozenset(
    {
        "key_rejected",
        "quota_exhausted",
        "model_not_found",
        "provider_unreachable",
        "provider_timeout",
        "rate_limited",
        "provider_failed",
        "reply_unreadable",
    }
)
# the journal took no more: what was still to be said could not be
CUT_SHORT = frozenset({"disk_full", "write_failed"})
# what ends the run that an attempt is of, and so interrupts the attempt
ENDS_RUN = CUT_SHORT | frozenset(
    {
        *("sandbox_unavailable", "user_namespaces_forbidden", "bwrap_missing", "rootfs_invalid"),
        *("limit_unenforceable", "network_unavailable", "docker_unavailable", "bundle_missing", "bundle_changed"),
        *("runtime_version_absent", "runtime_skew"),
        *("ceiling_reached", "cap_reached", "overrun", "key_rejected", "quota_exhausted", "model_not_found"),
    }
)
# in their order
BOUNDARIES = ("env-ready", "pre-verify", "post-verify")

# of a grade that could not be given
UNGRADED = frozenset(
    {
        "scorer_failed",
        "scorer_timeout",
        "verifier_timeout",
        "verifier_killed",
        "verifier_crashed",
        "reward_missing",
        "reward_unreadable",
        "reward_too_large",
        "reward_key_missing",
        "verdicts_disagree",
        "no_tests_ran",
        "duplicate_tests",
        "report_unreadable",
        "report_unknown",
        "report_missing",
        "not_graded",
        "not_run",
    }
)
REASONS = UNGRADED | frozenset(
    {
        "unknown_waiver",
        "would_overwrite",
        "output_unwritable",
        "unknown_key",
        "missing_key",
        "wrong_type",
        "invalid_value",
        "money_invalid",
        "not_in_this_version",
        "study_not_found",
        "study_unreadable",
        "unknown_name",
        "duplicate_name",
        "nothing_selected",
        "file_missing",
        "file_unreadable",
        "task_not_found",
        "task_unreadable",
        "task_format_later",
        "task_not_gradable",
        "task_no_solution",
        "task_solution_fails",
        "task_nop_passes",
        "task_check_ungraded",
        "task_needs_docker",
        "task_needs_compose",
        "task_needs_gpu",
        "task_os_unsupported",
        "task_env_missing",
        "task_needs_packages",
        "task_needs_root",
        "task_unsafe",
        "task_duplicate",
        "sandbox_unavailable",
        "user_namespaces_forbidden",
        "bwrap_missing",
        "rootfs_invalid",
        "limit_unenforceable",
        "network_unavailable",
        "sandbox_start_failed",
        "sandbox_lost",
        "world_gone",
        "capture_failed",
        "path_unsafe",
        "unknown_agent",
        "agent_options_invalid",
        "agent_invalid",
        "agent_start_failed",
        "docker_unavailable",
        "image_missing",
        "image_moved",
        "image_build_failed",
        "bundle_missing",
        "bundle_changed",
        "bundle_unusable",
        "install_failed",
        "runtime_version_absent",
        "runtime_skew",
        "budget_absent",
        "budget_incomplete",
        "budget_inconsistent",
        "prior_spend_uncounted",
        "price_unknown",
        "output_unbounded",
        "spend_not_confirmed",
        "ceiling_reached",
        "cap_reached",
        "overrun",
        "lease_stale",
        "model_needed",
        "model_unused",
        "provider_unknown",
        "key_missing",
        "key_rejected",
        "quota_exhausted",
        "model_not_found",
        "provider_unreachable",
        "provider_timeout",
        "rate_limited",
        "provider_failed",
        "request_rejected",
        "context_exceeded",
        "reply_unreadable",
        "reply_too_large",
        *NOT_PASSED,
        "model_unsuitable",
        "gateway_needed",
        "token_unknown",
        "port_unavailable",
        "questions_unreadable",
        "question_invalid",
        "tool_invalid",
        "agent_unsuitable",
        "extra_missing",
        "build_unsupported",
        "git_dirty",
        "git_broken",
        "version_unsupported",
        "run_exists",
        "run_not_found",
        "run_locked",
        "run_not_live",
        "run_complete",
        "out_unusable",
        "design_changed",
        "task_changed",
        "prepared_only",
        "stage_deadline",
        "disk_full",
        "evidence_unreadable",
        "evidence_damaged",
        "json_invalid",
        "entry_too_large",
        "format_unknown",
        "write_failed",
        "key_unreadable",
        "evidence_withheld",
        "trial_unfinished",
        "anchor_unreachable",
        "anchor_rejected",
        "anchor_differs",
        "timestamp_failed",
        "agent_timeout",
        "agent_error",
        "agent_killed",
        "agent_output_capped",
        "interrupted",
        "lost",
        "internal_error",
        "step_limit",
        "token_limit",
        "idle_timeout",
        "below_threshold",
        "wrong_answer",
        "no_answer",
        "tests_failed",
    }
)
