// The frozen design: its shape, and the plan that follows from it (section 4).

import { canonical } from "./json.mjs";
import { sha256hex } from "./merkle.mjs";
import { numberOf, picodollars } from "./numbers.mjs";
import { drawnBlocks } from "./order.mjs";
import { BUCKETS, NETWORKS } from "./kinds.mjs";
import {
  closed, isBool, isCount, isInteger, isNumber, isObject, isOne, isSha, isText, listOf, maybe, oneOf, open, shape,
} from "./types.mjs";

const MAX_TRIALS = 5000000;
const MOST = 10n ** 27n; // 10^15 dollars in picodollars

const isMoney = (v) => isText(v) && (picodollars(v) ?? MOST + 1n) <= MOST;
const agent = open({ name: isText, settings: isObject, timeout_sec: maybe(isNumber) });
const sandbox = open({ kind: isText, network: oneOf(...NETWORKS) });
const pinned = shape({ name: isText, sha256: isSha });

const priceShape = closed(
  { source: isText, rows: listOf(shape({ bucket: oneOf(...BUCKETS), above_inputs: isCount, usd_per_million: isMoney })) },
  { per_request: isMoney },
);
function price(value) {
  if (!priceShape(value) || value.rows.length > 256) return false;
  const places = new Set(value.rows.map((row) => `${row.bucket}/${row.above_inputs}`));
  return places.size === value.rows.length && value.rows.every((row) => places.has(`${row.bucket}/0`));
}

const model = closed(
  {
    name: isText, provider: isText, model: isText, api: oneOf("chat", "responses", "anthropic", "gemini", "practice"),
    base_url: maybe(isText), effort: maybe(isText), max_output_tokens: isOne, request_timeout_sec: isOne,
    api_key_env: maybe(isText), rpm: maybe(isOne), tpm: maybe(isOne), price,
  },
  { synthetic: oneOf(true), context_window: isOne, mutations: listOf(oneOf("include_usage", "clamp_max_output")) },
);

const arm = open(
  { name: isText },
  {
    agent, sandbox, skills: listOf(open({ name: isText, sha256: isSha })), tools: listOf(isText),
    model: shape({ effort: maybe(isText), max_output_tokens: maybe(isOne) }),
  },
);

const budget = closed(
  {
    spent_before: isMoney, allocation: isMoney, cap: isMoney, margin: isMoney, cap_quantum: isMoney,
    reserve_quantum: isMoney, reserve_factor: (v) => isNumber(v) && v > 0,
    models: listOf(shape({ name: isText, expected: isMoney, cap: isMoney, reserve: isMoney, blocks: isCount })),
  },
  { prior_spend: shape({ amount: isMoney, source: isText, sha256: isSha }) },
);

const anchor = (v) =>
  closed({ every_sec: isOne, required: isBool }, { git: isText, drop: isText })(v) &&
  (Object.hasOwn(v, "git") || Object.hasOwn(v, "drop"));

const designShape = open(
  {
    format: oneOf(1), study: open({ name: isText }),
    stage: open({ name: isText, epochs: isOne, replacements: isCount }),
    tasks: listOf(open({ name: isText, sha256: isSha, format: isText, path: isText })),
    models: listOf(model), arms: listOf(arm), draw: open({ seed: isInteger }),
    grading: open({ solved: isText }, { assurance: oneOf("shared", "live") }),
  },
  {
    agent, sandbox, tools: listOf(shape({ name: isText, python: pinned, pool: isOne })),
    questions: closed(
      {
        path: isText, sha256: isSha, scorer: oneOf("exact", "choice", "regex", "number", "json", "python"),
        scorer_timeout_sec: isOne,
      },
      { scorer_function: pinned },
    ),
    budget, anchor, selection: closed({}, { limit: isOne, arms: listOf(isText), models: listOf(isText) }),
  },
);

/** Less than 0, 0 or more by code points (JavaScript's own order is by UTF-16 units). */
export function byCodePoint(a, b) {
  const [left, right] = [Array.from(a), Array.from(b)];
  for (let i = 0; i < Math.min(left.length, right.length); i += 1) {
    if (left[i] !== right[i]) return left[i].codePointAt(0) - right[i].codePointAt(0);
  }
  return left.length - right.length;
}

// Neither control characters nor white space beyond ASCII stand in a rule.
const UNSEEN = /[\0-\x08\x0e-\x1f\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]/;
/** A text without the ASCII white space around it. */
export const bare = (text) => text.replace(/^[ \t\n\v\f\r]+/, "").replace(/[ \t\n\v\f\r]+$/, "");

/** {key, op, threshold} of a rule, "tests", or null where the text is neither. */
export function readRule(text) {
  if (Array.from(text).length > 1000 || UNSEEN.test(text)) return null;
  if (bare(text) === "tests") return "tests";
  const match = /^([^<>=]*)(>=|>|==)([^<>=]*)$/su.exec(text);
  if (match === null) return null;
  const [key, threshold] = [bare(match[1]), numberOf(bare(match[3]))];
  return key === "" || threshold === null ? null : { key, op: match[2], threshold };
}

/** Whether the rule holds of a reward as it stands in the journal. */
export function ruleHolds({ op, threshold }, reward) {
  return op === "==" ? reward === threshold : op === ">" ? reward > threshold : reward >= threshold;
}

export const trialId = (task, model_, arm_, epoch) => sha256hex(canonical([task, model_, arm_, epoch])).slice(0, 16);

const unique = (names) => new Set(names).size === names.length;

/** What is wrong with a design as one sentence, or null. */
export function designFault(value) {
  if (!designShape(value)) return "the design has not the fields of section 4";
  const names = (list) => list.map(({ name }) => name);
  if (value.tasks.length === 0 || value.arms.length === 0) return "a design has a task and an arm";
  for (const list of [value.tasks, value.models, value.arms, value.tools ?? [], value.budget?.models ?? []]) {
    if (!unique(names(list))) return "a name stands twice";
  }
  for (let i = 1; i < value.tasks.length; i += 1) {
    if (byCodePoint(value.tasks[i - 1].name, value.tasks[i].name) >= 0) return "tasks are not sorted by name";
  }
  if (readRule(value.grading.solved) === null) return "grading.solved is no rule";
  const tools = new Set(names(value.tools ?? []));
  for (const one of value.arms) {
    if (one.agent === undefined && value.agent === undefined) return "an arm has no agent";
    if (one.sandbox === undefined && value.sandbox === undefined) return "an arm has no sandbox";
    if (one.tools !== undefined && !(unique(one.tools) && one.tools.every((name) => tools.has(name)))) {
      return "an arm names a tool that is none";
    }
  }
  for (const task of value.tasks) {
    if (task.format === "question" && task.path !== value.questions?.path) return "a question row is of no questions";
  }
  return null;
}

/** What the checks ask of a design that has no fault. */
export class Design {
  constructor(value) {
    this.value = value;
    this.rule = readRule(value.grading.solved);
    this.models = new Map(value.models.map((one) => [one.name, one]));
    this.arms = new Map(value.arms.map((one) => [one.name, one]));
    this.rows = new Set(value.tasks.filter((one) => one.format === "question").map((one) => one.name));
    this.budget = value.budget ?? null;
    this.modelNames = value.models.length > 0 ? value.models.map((one) => one.name) : [null];
    this.blockCount = value.tasks.length * value.stage.epochs * this.modelNames.length;
    this.trialCount = this.blockCount * value.arms.length;
  }

  get tooLarge() {
    return this.trialCount > MAX_TRIALS;
  }

  /** Fill in blocks in drawn order and trials by id; `place` counts a model's trials in its order. */
  plan() {
    this.blocks = [];
    this.trials = new Map();
    for (const name of this.modelNames) {
      let place = 0;
      for (const [task, epoch, arms] of drawnBlocks(this.value, name)) {
        const block = { index: this.blocks.length, task, model: name, epoch, trials: [] };
        for (const one of arms) {
          const trial = { id: trialId(task, name, one, epoch), task, model: name, arm: one, epoch, block, place };
          this.trials.set(trial.id, trial);
          block.trials.push(trial);
          place += 1;
        }
        this.blocks.push(block);
      }
    }
    this.blockOf = new Map(this.blocks.map((block) => [canonical([block.task, block.model, block.epoch]), block]));
    return this;
  }

  agentOf(name) {
    return this.arms.get(name).agent ?? this.value.agent;
  }

  sandboxOf(name) {
    return this.arms.get(name).sandbox ?? this.value.sandbox;
  }

  maxOutput(modelName, armName) {
    return this.arms.get(armName).model?.max_output_tokens ?? this.models.get(modelName).max_output_tokens;
  }
}
