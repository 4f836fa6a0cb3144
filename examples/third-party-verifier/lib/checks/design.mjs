// Rules of the design alone: its digest, its plan, what is made up, and the amounts of its budget (section 4).

import { Design, designFault } from "../design.mjs";
import { FolderFault } from "../folder.mjs";
import { JsonFault, readCanonical } from "../json.mjs";
import { sha256hex } from "../merkle.mjs";
import { decimalOf, fraction, picodollars } from "../numbers.mjs";
import { Prices } from "../prices.mjs";

/** {design, sha256}: the design where it can be read, and the digest of what stands there; both may be null. */
export function readDesign(report, folder) {
  let bytes;
  try {
    bytes = folder.read("design.json");
  } catch (error) {
    if (!(error instanceof FolderFault)) throw error;
    report.withoutDesign(`design.json ${error.message}`);
    return { design: null, sha256: null, why: error.message };
  }
  const sha256 = sha256hex(bytes);
  let fault;
  try {
    const parts = bytes.reduce((count, byte) => count + (byte === 0x7b || byte === 0x5b || byte === 0x2c), 0);
    if (bytes.length > 67_108_864 || parts > 1_000_000) throw new JsonFault("larger than a design may be");
    const value = readCanonical(bytes);
    fault = designFault(value);
    if (fault === null) {
      const design = new Design(value);
      if (design.tooLarge) {
        report.withoutDesign(`a plan of ${design.trialCount} trials is more than this program looks at`);
        return { design: null, sha256, why: null };
      }
      return { design: design.plan(), sha256, why: null };
    }
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    fault = error.message;
  }
  report.fail("design.plan", `design.json: ${fault}`);
  report.withoutDesign(`design.json: ${fault}`);
  return { design: null, sha256, why: null };
}

/** What entry 0 says of the design. */
export function checkPlan(report, { design, sha256, why }, admitted) {
  if (admitted === null) {
    report.cannot("design.digest", "there is no entry 0 that could name it");
    report.cannot("design.plan", "there is no entry 0 that could count it");
    return;
  }
  report.hold(
    "design.digest", sha256 === admitted.design_sha256,
    `design.json ${why ?? "has another digest than entry 0 names"}`,
  );
  if (design === null) return;
  const { trials, blocks } = admitted.planned;
  report.look("design.plan", design.trialCount);
  if (trials !== design.trialCount || blocks !== design.blockCount) {
    report.fail("design.plan", `entry 0 counts ${trials} trials in ${blocks} blocks, not ${design.trialCount} in ${design.blockCount}`);
  }
  if (admitted.study !== design.value.study.name || admitted.stage !== design.value.stage.name) {
    report.fail("design.plan", "entry 0 names another study or stage");
  }
}

export function checkMarks(report, design) {
  for (const { name, provider, api, synthetic } of design.value.models) {
    const made = provider === "practice";
    report.hold(
      "synthetic.marked", made === (api === "practice") && made === (synthetic === true),
      `model ${name} of ${provider}`,
    );
  }
}

const size = (value) => (value < 0n ? -value : value);

export function checkBudgetRules(report, design) {
  const { budget, models, tasks, stage } = design.value;
  if (models.length > 0 || budget !== undefined) {
    const free = models.every(({ price }) => new Prices(price).free);
    report.hold("budget.there", budget !== undefined || free, "a model costs something, and there is no budget");
  }
  if (budget === undefined) return;
  const money = (text) => picodollars(text);
  const [allocation, cap, margin] = [budget.allocation, budget.cap, budget.margin].map(money);
  const [capQuantum, reserveQuantum] = [budget.cap_quantum, budget.reserve_quantum].map(money);
  const before = money(budget.spent_before);
  const wide = Object.hasOwn(design.value, "selection");
  const planned = tasks.length * stage.epochs;
  const own = new Set(models.map(({ name }) => name));
  const listed = new Set(budget.models.map(({ name }) => name));
  const fits = (blocks) => (wide ? blocks >= planned : blocks === planned);
  const whole =
    [...own].every((name) => listed.has(name)) && (wide || own.size === listed.size) &&
    budget.models.every(({ blocks }) => fits(blocks));
  report.hold("budget.whole", whole, "the budget is of other models, or counts other blocks, than are planned");

  const total = budget.models.reduce((sum, { expected }) => sum + money(expected), 0n);
  if (whole) {
    if (models.length > 0) report.hold("budget.expected-positive", total > 0n, "the models are expected to cost nothing");
    const [k, ten] = fraction(decimalOf(budget.reserve_factor));
    for (const one of budget.models) {
      const [expected, ownCap, reserve] = [one.expected, one.cap, one.reserve].map(money);
      const blocks = BigInt(one.blocks);
      if (total > 0n) {
        const off = size(ownCap * total - allocation * expected);
        report.hold("budget.caps-proportional", 2n * off <= capQuantum * total, `the cap of ${one.name}`);
      }
      const off = size(reserve * blocks * ten - k * expected);
      report.hold("budget.reserves-proportional", 2n * off <= reserveQuantum * blocks * ten, `the reserve of ${one.name}`);
      report.hold("budget.reserves-in-caps", reserve <= ownCap, `the reserve of ${one.name} is above its cap`);
    }
  }
  report.hold("budget.allocation-in-cap", allocation <= cap, "the allocation is above the cap");
  const prior = budget.prior_spend === undefined ? 0n : money(budget.prior_spend.amount);
  report.hold("budget.prior-spend-counted", before >= prior, "spent_before is less than the prior spend");
  if (models.length > 0) report.hold("budget.ceiling-free", before < cap + margin, "nothing is left below the ceiling");
}
