// Grades from an attempt's own reward files and the end of its verifier (section 10, Grades).

import { bare, ruleHolds } from "../design.mjs";
import { FolderFault } from "../folder.mjs";
import { canonical, decodeText, JsonFault, readStrict } from "../json.mjs";
import { numberOf } from "../numbers.mjs";
import { STOPPED_SHORT } from "../words.mjs";

const MAX_FILE = 64 << 10;
const MAX_REWARDS = 32768;
const TEXT = "verifier/reward.txt";
const JSON_ = "verifier/reward.json";
const REPORTS = ["verifier/ctrf.json", "verifier/junit.xml"];
const ONE_OR_MORE = { key: "reward", op: ">=", threshold: 1 };
const ROW_FAILS = ["wrong_answer", "no_answer", "below_threshold"];

/** The number of a reward file in text, or null. */
export function textReward(bytes) {
  let text;
  try {
    text = decodeText(bytes);
  } catch {
    return null;
  }
  return numberOf(bare(text));
}

/** The rewards of a reward file in JSON, or null. */
export function jsonRewards(bytes) {
  let value;
  try {
    value = readStrict(bytes);
  } catch (error) {
    if (error instanceof JsonFault) return null;
    throw error;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const numbers = Object.values(value);
  return numbers.length > 0 && numbers.every((one) => typeof one === "number") ? value : null;
}

const EXITS = new Map([
  [124, "verifier_timeout"], [137, "verifier_killed"], [143, "verifier_killed"], [126, "verifier_crashed"],
  [127, "verifier_crashed"],
]);
const exitSays = (code) => EXITS.get(code) ?? null;

/** [rewards, null] of the two files' bytes, each null where it does not stand; or [null, why there are none]. */
export function readRewards(text, json) {
  if (text === null && json === null) return [null, "reward_missing"];
  if ([text, json].some((bytes) => bytes !== null && bytes.length > MAX_FILE)) return [null, "reward_too_large"];
  const number = text === null ? null : textReward(text);
  if (text !== null && number === null) return [null, "reward_unreadable"];
  const named = json === null ? {} : jsonRewards(json);
  if (named === null) return [null, "reward_unreadable"];
  const rewards = Object.assign(Object.create(null), named);
  if (number !== null) {
    if (Object.hasOwn(rewards, "reward") && rewards.reward !== number) return [null, "verdicts_disagree"];
    rewards.reward = number;
  }
  return Buffer.byteLength(canonical(rewards)) > MAX_REWARDS ? [null, "reward_too_large"] : [rewards, null];
}

/** The number of the rule's key, or null. */
export const decisive = (rule, rewards) =>
  rule !== "tests" && rewards !== null && Object.hasOwn(rewards, rule.key) ? rewards[rule.key] : null;

/** [grade, reason] that may come of how a verifier ended, of its rewards or why there are none, and of a report. */
export function outcomes(rule, ended, [rewards, why], report) {
  const ungraded = (...reasons) => reasons.map((reason) => ["ungraded", reason]);
  const said = exitSays(ended.exit_code);
  if (ended.start_error !== null) return ungraded("verifier_crashed");
  if (ended.timed_out) return ungraded("verifier_timeout");
  if (ended.signal !== null) return ungraded("verifier_killed");
  if (rule === "tests") {
    if (!report) return ungraded(said ?? "report_missing");
    const reasons = ["report_unreadable", "report_unknown", "no_tests_ran", "duplicate_tests", "verdicts_disagree"];
    return [["pass", null], ["fail", "tests_failed"], ...ungraded(...reasons)];
  }
  if (rewards === null) return ungraded(why === "reward_missing" ? (said ?? why) : why);
  const reward = decisive(rule, rewards);
  if (reward === null) return ungraded("reward_key_missing");
  if (ruleHolds(rule, reward)) return [["pass", null], ...(report ? ungraded("no_tests_ran") : [])];
  return [["fail", "below_threshold"], ...(report ? ungraded("no_tests_ran", "report_unreadable") : [])];
}

/** Whether the counts of a report go with a grade that may stand, where so many reports do. */
export function countsFit(rule, { grade, reason, tests }, reports) {
  const idle = tests !== null && tests.identities === tests.all_skip;
  if (reason === "no_tests_ran") return idle;
  if (rule !== "tests") {
    if (reason === "report_unreadable") return tests === null;
    return grade === "ungraded" || !(idle && reports === 1);
  }
  const two = reports === 2;
  switch (reason) {
    case "report_unreadable":
      return tests === null || two;
    case "report_unknown":
      return tests === null || two || (!idle && tests.all_pass === 0 && tests.last_row_fails === 0);
    case "duplicate_tests":
      return tests !== null && (two || tests.duplicates > 0);
    case "verdicts_disagree":
      return tests !== null && two;
    case "tests_failed":
      return tests !== null && tests.last_row_fails > 0;
    case null:
      return tests !== null && tests.last_row_fails === 0 && tests.all_pass + tests.mixed > 0;
    default:
      return true;
  }
}

export class Grades {
  constructor(report, design, folder, withheld) {
    this.report = report;
    this.design = design;
    this.folder = folder;
    this.withheld = withheld;
  }

  /** An attempt has ended, or the journal has. */
  check(attempt) {
    const { report } = this;
    const { graded } = attempt;
    if (graded === null || attempt.trial === null) return;
    if ((graded.grade === "pass") !== (graded.reason === null)) return; // attempts.graded says so
    report.look("grades.recomputed");
    const fault = attempt.row ? this.#row(graded, attempt) : this.#tests(graded, attempt);
    if (fault !== null) {
      report.fail("grades.recomputed", `${attempt.id} was graded ${graded.grade} (${graded.reason}): ${fault}`);
    }
  }

  #empty(graded) {
    const empty = Object.keys(graded.rewards).length === 0 && graded.reward === null && graded.tests === null;
    return empty ? null : "it stopped short, and has rewards or tests";
  }

  #row(graded, attempt) {
    if (graded.grade === "ungraded" && STOPPED_SHORT.has(graded.reason) && attempt.verifierEnded === null) {
      return this.#empty(graded);
    }
    const rule = this.design.rule === "tests" ? ONE_OR_MORE : this.design.rule;
    const reward = decisive(rule, graded.rewards);
    if (graded.reward !== reward || graded.tests !== null) return `the reward is ${reward}`;
    let may;
    if (Object.keys(graded.rewards).length === 0) may = [["ungraded", "scorer_failed"], ["ungraded", "scorer_timeout"]];
    else if (reward === null) may = [["ungraded", "reward_key_missing"]];
    else if (ruleHolds(rule, reward)) may = [["pass", null]];
    else may = ROW_FAILS.map((reason) => ["fail", reason]);
    return this.#oneOf(graded, may);
  }

  #oneOf({ grade, reason }, may) {
    if (may.some((one) => one[0] === grade && one[1] === reason)) return null;
    return `it comes to ${may.map((one) => `${one[0]} (${one[1]})`).join(" or ")}`;
  }

  /** [rewards, reason]: null and why there are none. */
  #rewards(attempt) {
    const below = (path) => [...attempt.files.keys()].some((name) => name.startsWith(`${path}/`));
    const both = [TEXT, JSON_];
    if (both.some(below)) return [null, "reward_unreadable"];
    const files = both.map((path) => attempt.files.get(path) ?? null);
    if (files.some((file) => file !== null && file.size > MAX_FILE)) return [null, "reward_too_large"];
    if (files.every((file) => file === null)) return [null, "reward_missing"];
    return readRewards(...files.map((file) => file && this.folder.read(`${attempt.admitted.folder}/${file.path}`, MAX_FILE)));
  }

  #tests(graded, attempt) {
    const short = graded.grade === "ungraded" && STOPPED_SHORT.has(graded.reason);
    if (attempt.verifierEnded === null) {
      return short ? this.#empty(graded) : "no verifier ended before";
    }
    let rewards;
    let why;
    try {
      [rewards, why] = this.#rewards(attempt);
    } catch (error) {
      if (!(error instanceof FolderFault)) throw error;
      const { folder } = attempt.admitted;
      if (this.withheld.unknown || [TEXT, JSON_].some((path) => this.withheld.files.has(`${folder}/${path}`))) {
        this.report.cannot("grades.recomputed", "a reward file is withheld");
        return null;
      }
      return `a reward file ${error.message}`;
    }
    if (canonical(graded.rewards) !== canonical(rewards ?? {})) return "its files have other rewards";
    const { rule } = this.design;
    const reward = decisive(rule, rewards);
    if (graded.reward !== reward) return `its reward is ${reward}`;
    const names = [...attempt.files.keys()];
    const reports = REPORTS.filter((path) => names.some((name) => name === path || name.startsWith(`${path}/`)));
    const odd = this.#oneOf(graded, outcomes(rule, attempt.verifierEnded.ended, [rewards, why], reports.length > 0));
    if (odd !== null) return odd;
    if (graded.tests !== null && !REPORTS.some((path) => attempt.files.has(path))) return "it counts tests, and has no report";
    return countsFit(rule, graded, reports.length) ? null : "what it counts of its tests says otherwise";
  }
}
