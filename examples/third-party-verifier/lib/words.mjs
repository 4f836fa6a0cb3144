// The reason ids of section 5, and the words that a drain may give beside them.

export const REASONS = new Set(
  `
  scorer_failed scorer_timeout verifier_timeout verifier_killed verifier_crashed reward_missing reward_unreadable
  reward_too_large reward_key_missing verdicts_disagree no_tests_ran duplicate_tests report_unreadable
  report_unknown report_missing not_graded not_run unknown_waiver would_overwrite output_unwritable port_unavailable
  unknown_key missing_key wrong_type invalid_value money_invalid not_in_this_version study_not_found
  study_unreadable unknown_name duplicate_name nothing_selected file_missing file_unreadable task_not_found
  task_unreadable task_format_later task_not_gradable task_no_solution task_solution_fails task_nop_passes
  task_check_ungraded task_needs_docker task_needs_compose task_needs_gpu task_os_unsupported task_env_missing
  task_needs_packages task_needs_root task_unsafe task_duplicate sandbox_unavailable user_namespaces_forbidden
  bwrap_missing rootfs_invalid limit_unenforceable network_unavailable sandbox_start_failed sandbox_lost world_gone
  capture_failed path_unsafe docker_unavailable image_missing image_moved image_build_failed unknown_agent
  agent_options_invalid agent_invalid agent_start_failed bundle_missing bundle_changed bundle_unusable
  install_failed runtime_version_absent runtime_skew budget_absent budget_incomplete budget_inconsistent
  prior_spend_uncounted price_unknown output_unbounded spend_not_confirmed ceiling_reached cap_reached overrun
  lease_stale model_needed model_unused provider_unknown key_missing key_rejected quota_exhausted model_not_found
  provider_unreachable provider_timeout rate_limited provider_failed request_rejected context_exceeded
  reply_unreadable reply_too_large model_unsuitable gateway_needed route_unknown token_unknown model_not_listed
  request_unreadable request_too_large feature_unpriced output_above_bound questions_unreadable question_invalid
  tool_invalid agent_unsuitable extra_missing build_unsupported git_dirty git_broken version_unsupported run_exists
  run_not_found run_locked run_not_live run_complete out_unusable design_changed task_changed prepared_only
  stage_deadline disk_full evidence_unreadable evidence_damaged json_invalid entry_too_large format_unknown
  write_failed key_unreadable evidence_withheld trial_unfinished anchor_unreachable anchor_rejected anchor_differs
  timestamp_failed agent_timeout agent_error agent_killed agent_output_capped interrupted lost internal_error
  step_limit token_limit idle_timeout below_threshold wrong_answer no_answer tests_failed
  `.trim().split(/\s+/),
);

export const CAUSES = new Set([...REASONS, "SIGINT", "SIGTERM", "SIGHUP", "deadline", "prepare-only"]);

export const SIGNAL_STATUS = new Map([["SIGHUP", 129], ["SIGINT", 130], ["SIGTERM", 143]]);

// Grades for which an attempt may have stopped short, and what only an exchange can say of an attempt's end.
export const STOPPED_SHORT = new Set([
  "ceiling_reached", "overrun", "budget_absent", "price_unknown", "request_rejected", "reply_too_large",
  "model_not_listed", "feature_unpriced", "output_above_bound",
]);
export const SAID_BY_EXCHANGE = new Set([
  ...STOPPED_SHORT, "key_rejected", "quota_exhausted", "model_not_found", "provider_unreachable", "provider_timeout",
  "rate_limited", "provider_failed", "reply_unreadable",
]);
export const SAID_BY_AGENT = new Set([
  "agent_timeout", "agent_killed", "agent_error", "agent_output_capped", "step_limit", "token_limit",
]);
