// What is derived from the journal, byte for byte (section 10): attempt.json, summary.json and grade_summary.json.

import { byCodePoint } from "../design.mjs";
import { FolderFault } from "../folder.mjs";
import { canonical } from "../json.mjs";
import { sha256hex } from "../merkle.mjs";
import { DecimalSum, moneyText, sixPlaces } from "../numbers.mjs";

const NO_MODEL = { available: false, reason: "no model is called through proctor in this run" };
const NO_SNAPSHOT = { available: false, reason: "no snapshot is part of the evidence in this version" };
const MAX_WORLDS = 256;

const without = (body, ...names) =>
  body === null ? null : Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)));
const counts = (map) => Object.fromEntries(map);
const bump = (map, key) => map.set(key, (map.get(key) ?? 0) + 1);

/** Token counts as numbers; a sum beyond 2^53 - 1 has no exact canonical form, and the nearest double stands for it. */
const tokens = (map) => Object.fromEntries([...map].map(([bucket, sum]) => [bucket, Number(sum)]));

function attemptFile(attempt) {
  const model = attempt.admitted.model !== null;
  return {
    format: 1,
    identity: attempt.admitted,
    agent: without(attempt.agentStarted, "attempt", "instruction"),
    agent_ended: without(attempt.agentEnded, "attempt"),
    verifier_ended: without(attempt.verifierEnded, "attempt"),
    grade: without(attempt.graded, "attempt"),
    boundaries: attempt.boundaries,
    sandboxes: attempt.sandboxes.map((body) => without(body, "attempt")),
    ended: without(attempt.ended, "attempt"),
    tokens: model ? tokens(attempt.tokens) : NO_MODEL,
    cost: model ? { charged: moneyText(attempt.charged), exchanges: attempt.settled, estimated: attempt.estimated } : NO_MODEL,
    snapshots: NO_SNAPSHOT,
  };
}

/** An attempt has ended: its attempt.json, where it names one as derived. */
export function checkAttemptFile(report, attempt) {
  const named = attempt.files.get("attempt.json");
  if (named === undefined || attempt.trial === null || attempt.row) return;
  report.look("attempts.derived");
  const cut = ["interrupted", "lost"].includes(attempt.ended.outcome);
  if (named.role !== "derived") {
    if (!cut) report.fail("attempts.derived", `${attempt.id} names attempt.json as ${named.role}`);
    return;
  }
  if (attempt.sandboxes.length + attempt.boundaries.length > MAX_WORLDS) return;
  const bytes = Buffer.from(canonical(attemptFile(attempt)));
  if (named.sha256 !== sha256hex(bytes)) {
    report.fail("attempts.derived", `the attempt.json of ${attempt.id} is not what its entries come to`);
  }
}

const rate = (num, den) => ({ num, den, decimal: sixPlaces(BigInt(num), BigInt(den)) });

class Grading {
  constructor(planned) {
    this.planned = planned;
    this.grades = { pass: 0, fail: 0, ungraded: 0 };
    this.reasons = new Map();
    this.ungraded = new Map();
    this.rewards = new DecimalSum();
  }

  final({ grade, reason, reward }) {
    this.grades[grade] += 1;
    if (reason !== null) bump(this.reasons, reason);
    if (grade === "ungraded") bump(this.ungraded, reason);
    else if (reward !== null) this.rewards.add(reward);
  }

  summary() {
    const { planned, rewards } = this;
    const { pass, fail } = this.grades;
    const notRun = planned - pass - fail - this.grades.ungraded;
    const ungraded = this.grades.ungraded + notRun;
    const reasons = new Map(this.ungraded);
    if (notRun > 0) reasons.set("not_run", (reasons.get("not_run") ?? 0) + notRun);
    const mean = rewards.mean();
    return {
      planned, pass, fail, ungraded,
      ungraded_by_reason: counts(reasons),
      headline: rate(pass, planned),
      graded_only: { ...rate(pass, pass + fail), comparable: pass + fail === planned },
      bounds: { low: rate(pass, planned), high: rate(pass + ungraded, planned) },
      mean_reward: {
        trials: rewards.count, num: mean?.[0].toString() ?? null, den: mean?.[1].toString() ?? null,
        decimal: mean === null ? null : sixPlaces(mean[0], mean[1]), comparable: rewards.count === planned,
      },
    };
  }
}

/** Sums over the journal, and the two files that they come to. */
export class Summaries {
  constructor(report, design, folder) {
    this.report = report;
    this.design = design;
    this.folder = folder;
    this.charged = 0n;
    this.latest = new Map(); // path -> bytes that the latest run.ended that names it has to have
    const perGroup = design.trialCount / (design.modelNames.length * design.value.arms.length);
    this.all = new Grading(design.trialCount);
    this.groups = new Map();
    for (const model of design.modelNames) {
      for (const { name } of design.value.arms) {
        this.groups.set(canonical([model, name]), {
          model, arm: name, grading: new Grading(perGroup), exceptions: new Map(), superseded: 0, replaced: 0, charged: 0n,
          exchanges: 0, estimated: 0, overruns: 0, tokens: new Map(),
        });
      }
    }
    const order = (a, b) =>
      (a.model === null ? -(b.model !== null) : b.model === null ? 1 : byCodePoint(a.model, b.model)) ||
      byCodePoint(a.arm, b.arm);
    this.sorted = [...this.groups.values()].sort(order);
  }

  #group(trial) {
    return this.groups.get(canonical([trial.model, trial.arm]));
  }

  /** After the state has taken the entry in; `attempt` is that of the entry or null. */
  entry({ kind, body }, attempt, state) {
    if (kind === "trial.final") {
      const trial = this.design.trials.get(body.trial);
      if (trial === undefined || state.trial(trial.id).final !== body) return;
      this.all.final(body);
      this.#group(trial).grading.final(body);
    } else if (kind === "run.ended") this.#ended(body, state);
    if (attempt === null || attempt.trial === null) return;
    const group = this.#group(attempt.trial);
    if (kind === "attempt.admitted" && body.replaces !== null) group.replaced += 1;
    else if (kind === "attempt.ended") {
      if (body.exception !== null) bump(group.exceptions, body.exception);
      if (["interrupted", "lost"].includes(body.outcome)) group.superseded += 1;
    } else if (kind === "exchange.ended" && attempt.lastEnd === body) this.#exchange(body, group);
  }

  #exchange(body, group) {
    const charged = BigInt(body.charged.replace(".", ""));
    this.charged += charged;
    group.charged += charged;
    group.exchanges += 1;
    group.estimated += body.estimated ? 1 : 0;
    group.overruns += body.overrun ? 1 : 0;
    for (const [bucket, sum] of Object.entries(body.usage ?? {})) {
      group.tokens.set(bucket, (group.tokens.get(bucket) ?? 0n) + BigInt(sum));
    }
  }

  #ended(body, state) {
    for (const { path } of body.files) {
      if (path === "summary.json") this.latest.set(path, this.#summary(state));
      else if (path === "grade_summary.json") this.latest.set(path, this.#grades());
    }
    const both = ["summary.json", "grade_summary.json"].every((path) => body.files.some((file) => file.path === path));
    if ([0, 1].includes(body.exit_status) && state.complete && !both) {
      this.report.look("summary.recomputed");
      this.report.fail("summary.recomputed", "a complete run does not name its summaries");
    }
  }

  #summary(state) {
    const { value, budget } = this.design;
    return canonical({
      format: 1, run_id: state.first?.run_id ?? null, design_sha256: state.first?.design_sha256 ?? null, study: value.study.name,
      stage: value.stage.name, complete: state.complete, totals: { trials: this.design.trialCount, ...state.finals },
      openings: state.opening, synthetic: value.models.filter((one) => one.synthetic === true).map(({ name }) => name),
      spent: { before: budget === null ? null : budget.spent_before, charged: moneyText(this.charged) },
      groups: this.sorted.map((group) => ({
        model: group.model, arm: group.arm, planned: group.grading.planned, grades: { ...group.grading.grades },
        reasons: counts(group.grading.reasons), exceptions: counts(group.exceptions), superseded: group.superseded,
        replaced: group.replaced,
        cost: group.model === null ? null : {
          charged: moneyText(group.charged), exchanges: group.exchanges, estimated: group.estimated,
          overruns: group.overruns, tokens: tokens(group.tokens),
        },
      })),
    });
  }

  #grades() {
    return canonical({
      format: 1, all: this.all.summary(),
      groups: this.sorted.map(({ model, arm, grading }) => ({ model, arm, ...grading.summary() })),
    });
  }

  end() {
    for (const [path, text] of this.latest) {
      let seen;
      try {
        seen = this.folder.read(path).equals(Buffer.from(text)) ? null : "is not what the journal adds up to";
      } catch (error) {
        if (!(error instanceof FolderFault)) throw error; // files.digests says so
        continue;
      }
      this.report.hold("summary.recomputed", seen === null, `${path} ${seen}`);
    }
  }
}
