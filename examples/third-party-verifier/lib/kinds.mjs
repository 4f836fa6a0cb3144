// The kinds of entries and the shape of each body (section 5).

import {
  isAttempt, isBool, isCause, isCount, isExchange, isMoney, isNumber, isObject, isOne, isReason, isRunId,
  isSha, isText, isTime, isTrial, listOf, mapOf, maybe, oneOf, open, shape, within,
} from "./types.mjs";

export const INPUT_BUCKETS = ["input", "cache_read", "cache_write", "cache_write_1h", "audio_in", "tool_input"];
export const OUTPUT_BUCKETS = ["output", "reasoning", "audio_out"];
export const BUCKETS = [...INPUT_BUCKETS, ...OUTPUT_BUCKETS];
export const NETWORKS = ["none", "gateway-only", "allowlist", "public"];

const named = shape({ path: isText, sha256: isSha });
const key = shape({ vkey: isText, fingerprint: (v) => isText(v) && /^sha256:[0-9a-f]{64}$/.test(v) });
const opening = shape({ boot_id: maybe(isText), host: isText, pid: isOne, version: isText });
const grade = oneOf("pass", "fail", "ungraded");
const assurance = oneOf("isolated", "shared", "live");

const frameShape = shape({
  blob: isSha, size: isCount, pack: isText, offset: isCount, length: isCount, encoding: oneOf("raw", "gzip"),
  stored_sha256: isSha,
});
const looseShape = shape({ blob: isSha, size: isCount, path: isText });
const isBlob = (v) => frameShape(v) || looseShape(v);

const endedShape = shape({
  exit_code: maybe(within(0, 255)), signal: maybe(within(1, 64)), timed_out: isBool, output_bytes: isCount,
  output_dropped: isCount, leftovers: isCount, limit_hit: maybe(isText), start_error: maybe(isText),
});
const ended = (v) =>
  endedShape(v) &&
  (v.start_error !== null || (v.exit_code === null) !== (v.signal === null));

const versionShape = shape({ available: isBool, value: maybe(isText), reason: maybe(isText) });
const version = (v) => versionShape(v) && (v.value !== null) === v.available && !(v.available && v.reason !== null);

const testsShape = shape(
  Object.fromEntries(
    ["rows", "identities", "all_pass", "all_fail", "all_skip", "all_other", "mixed", "last_row_fails", "duplicates"].map(
      (name) => [name, isCount],
    ),
  ),
);
const tests = (v) =>
  testsShape(v) &&
  v.all_pass + v.all_fail + v.all_skip + v.all_other + v.mixed === v.identities &&
  v.mixed <= v.duplicates && v.duplicates <= v.identities && v.identities + v.duplicates <= v.rows &&
  v.last_row_fails >= v.all_fail && v.last_row_fails <= v.all_fail + v.mixed;

const limit = shape({
  name: isText, wanted: maybe(isNumber), enforced: maybe(isNumber), how: maybe(isText), why_not: maybe(isText),
});
const substituted = shape({
  image: isText, root: isText, explicit: isBool, skipped_installs: listOf(isText), version_notes: listOf(isText),
  ignored_lines: listOf(isText),
});
const usage = mapOf(isOne, (name) => BUCKETS.includes(name));
const timing = mapOf(isCount);

const KINDS = {
  "run.admitted": {
    format: oneOf(1), run_id: isRunId, study: isText, stage: isText, manifest: named, design_sha256: isSha,
    abandoned: listOf(named), opening, key, planned: shape({ trials: isCount, blocks: isCount }),
  },
  "run.resumed": { manifest: named, abandoned: listOf(named), opening, key, previous_ended: isBool },
  "run.recovered": {
    quarantined: listOf(shape({ path: isText, sha256: isSha, size: isCount, source: isText })), lost: listOf(isAttempt),
  },
  "checkpoint.made": { path: isText, sha256: isSha, size: isOne, root: isSha },
  "checkpoint.anchored": { anchor: oneOf("git", "drop"), path: isText, sha256: isSha, size: isOne },
  "anchor.failed": {
    anchor: oneOf("git", "drop"), size: isOne, attempts: isOne, return_code: maybe(within(-255, 255)), reason: isReason,
    message: isText,
  },
  "block.admitted": { block: isCount, task: isText, model: maybe(isText), epoch: isOne, reserve: maybe(isMoney) },
  "attempt.admitted": {
    attempt: isAttempt, trial: isTrial, number: isCount, block: isCount, task: isText, model: maybe(isText), arm: isText,
    epoch: isOne, folder: isText, supersedes: maybe(isAttempt), replaces: maybe(isAttempt),
  },
  "sandbox.started": {
    attempt: isAttempt, role: oneOf("agent", "verifier"), from_snapshot: isBool,
    facts: open({ kind: isText, network: oneOf(...NETWORKS) }), limits: listOf(limit), base_substituted: maybe(substituted),
  },
  "attempt.boundary": { attempt: isAttempt, boundary: oneOf("env-ready", "pre-verify", "post-verify") },
  "agent.started": {
    attempt: isAttempt, agent: isText, version, settings: isObject, instruction: isBlob,
    skills: listOf(shape({ name: isText, sha256: isSha })), timeout_sec: maybe(isNumber),
  },
  "exchange.admitted": {
    attempt: isAttempt, exchange: isExchange, model: isText, route: isText, request: isBlob, request_digest: isSha,
    input_bound: isCount, output_bound: isCount, held: isMoney, retries: maybe(isExchange),
    mutations: listOf(oneOf("include_usage", "clamp_max_output")),
  },
  "exchange.ended": {
    attempt: isAttempt, exchange: isExchange, outcome: oneOf("settled", "released", "unknown"),
    http_status: maybe(within(100, 999)), error: maybe(isReason), resolved_model: maybe(isText),
    finish: maybe(oneOf("stop", "tools", "length", "refused", "other")), response: maybe(isBlob), chunks: maybe(isBlob),
    usage: maybe(usage), charged: isMoney, estimated: isBool, overrun: isBool, flags: listOf(isText), timing,
  },
  "exchange.refused": {
    attempt: isAttempt, model: isText, reason: isReason, held: isMoney, message: isText, route: maybe(isText),
    request: maybe(isBlob),
  },
  "agent.ended": { attempt: isAttempt, exception: maybe(isReason), ended, duration_ns: isCount },
  "verifier.ended": { attempt: isAttempt, assurance, ended, duration_ns: isCount },
  "answer.scored": {
    attempt: isAttempt, answer: isBlob, scorer: oneOf("exact", "choice", "regex", "number", "json", "python"),
    detail: isText,
  },
  "attempt.files": {
    attempt: isAttempt,
    files: listOf(shape({ path: isText, sha256: isSha, size: isCount, role: oneOf("source", "derived", "partial") })),
  },
  "attempt.graded": {
    attempt: isAttempt, grade, reason: maybe(isReason), reward: maybe(isNumber), rewards: mapOf(isNumber),
    assurance: maybe(assurance), tests: maybe(tests), disclosures: listOf(isText),
  },
  "attempt.ended": {
    attempt: isAttempt, outcome: oneOf("completed", "infrastructure", "interrupted", "lost"), exception: maybe(isReason),
    message: maybe(isText), timing,
  },
  "trial.final": {
    trial: isTrial, attempt: isAttempt, grade, reason: maybe(isReason), reward: maybe(isNumber),
  },
  "block.ended": { block: isCount },
  "ceiling.reached": {
    scope: oneOf("ceiling", "overrun", "cap", "model_cap"), model: maybe(isText), spent: isMoney, wanted: isMoney,
    limit: isMoney,
  },
  "run.paused": {},
  "run.unpaused": {},
  "run.draining": { cause: isCause },
  "run.ended": {
    exit_status: oneOf(0, 1, 4, 5, 129, 130, 143), reason: maybe(isReason), complete: isBool,
    totals: shape({ trials: isCount, finals: isCount, pass: isCount, fail: isCount, ungraded: isCount }),
    files: listOf(shape({ path: isText, sha256: isSha, size: isCount })),
  },
};

const BODIES = new Map(Object.entries(KINDS).map(([kind, fields]) => [kind, shape(fields)]));
const entryShape = shape({ seq: isCount, prev: isSha, time: isTime, mono: isCount, kind: isText, body: isObject });

/** "entry", "unknown kind" or "no entry". */
export function classify(value) {
  if (!entryShape(value)) return "no entry";
  const body = BODIES.get(value.kind);
  if (body === undefined) return "unknown kind";
  return body(value.body) ? "entry" : "no entry";
}

/** The blob references of a body, in the order of its fields' names. */
export function blobsOf(body) {
  const found = [];
  for (const name of ["answer", "chunks", "instruction", "request", "response"]) {
    const value = Object.hasOwn(body, name) ? body[name] : null;
    if (isObject(value) && Object.hasOwn(value, "blob")) found.push([name, value]);
  }
  return found;
}
