// A report: for each check of section 14 how often its rule was looked at, and what was found.

const MAX_SEEN = 5;

// Checks that need the design, and those that say something of lines that nobody can read.
const DESIGN_RULES = [
  "design.plan", "synthetic.marked", "budget.there", "budget.whole", "budget.expected-positive",
  "budget.caps-proportional", "budget.reserves-proportional", "budget.allocation-in-cap", "budget.reserves-in-caps",
  "budget.prior-spend-counted", "budget.ceiling-free",
];
const NEED_DESIGN = [
  ...DESIGN_RULES, "anchors.identity", "anchors.required", "anchors.covered", "blocks.admitted", "blocks.drawn",
  "blocks.ended", "trials.ordered", "attempts.admitted",
  "attempts.joined", "attempts.numbered", "attempts.ended", "agents.planned", "agents.ended", "worlds.planned",
  "rows.bare", "answers.scored", "exchanges.admitted", "exchanges.ended", "costs.recomputed", "budget.blocks",
  "budget.ceiling", "ceiling.disclosed", "finals.one", "finals.agree", "totals.agree", "status.agrees", "files.unlisted",
  "grades.recomputed", "attempts.derived", "summary.recomputed",
];
// since.extends, key.witnessed and anchors.remote are of what this program is not given: never applicable.
const NEED_NO_ENTRIES = new Set([
  "journal.there", "journal.still", "since.extends", "key.trust", "key.witnessed", "anchors.remote",
  "journal.lines", "journal.kinds", "journal.sequence", "journal.chain", "journal.mono", "checkpoints.signature",
  "checkpoints.head", "checkpoints.last", "design.digest", ...DESIGN_RULES,
]);

export const CHECKS = [
  "journal.there", "journal.still", "journal.lines", "journal.kinds", "journal.sequence", "journal.chain", "journal.mono",
  "journal.openings",
  "journal.recovered", "run.ended", "checkpoints.files", "checkpoints.signature", "checkpoints.head", "checkpoints.last",
  "since.extends", "key.stated", "key.same", "key.trust", "key.witnessed", "anchors.receipts", "anchors.identity",
  "anchors.pushed", "anchors.chronology", "anchors.snapshot", "anchors.required", "anchors.covered", "anchors.remote",
  "manifests.bound", "manifests.unbound", "manifests.verdict", "design.digest",
  ...DESIGN_RULES, "blocks.admitted", "blocks.drawn", "blocks.ended", "trials.ordered", "attempts.admitted",
  "attempts.joined", "attempts.numbered", "attempts.phases", "attempts.outcomes", "attempts.graded", "attempts.ended",
  "agents.planned",
  "agents.ended", "worlds.planned", "attempts.assured", "rows.bare", "answers.scored", "exchanges.admitted",
  "exchanges.ended", "costs.recomputed", "exchanges.chunks", "budget.blocks", "budget.ceiling", "ceiling.disclosed",
  "flight.empty", "finals.one", "finals.agree", "totals.agree", "status.agrees", "packs.frames", "blobs.files",
  "files.digests", "files.unlisted", "withheld.named", "grades.recomputed", "attempts.derived", "summary.recomputed",
];

// receipt.anchored, receipt.witnessed and proof.anchored, too, are of what this program is not given.
export const RECEIPT_CHECKS = [
  "receipt.form", "receipt.signed", "receipt.included", "receipt.record", "receipt.anchored", "receipt.witnessed",
];
export const PROOF_CHECKS = ["proof.form", "proof.signed", "proof.consistent", "proof.anchored"];

// What may be without an answer where nobody said whose key it should be.
const WHOSE_KEY = new Set(["key.trust", "receipt.signed", "proof.signed"]);

export class Report {
  constructor(checks = CHECKS) {
    this.lines = new Map(checks.map((check) => [check, { looked: 0, count: 0, faults: [], unknown: null }]));
    this.notes = [];
  }

  /** The rule was looked at so many times. */
  look(check, times = 1) {
    this.lines.get(check).looked += times;
  }

  fail(check, seen) {
    const line = this.lines.get(check);
    line.count += 1;
    if (line.faults.length < MAX_SEEN) line.faults.push(seen);
  }

  /** Look once, and say what was seen unless the rule holds; returns whether it does. */
  hold(check, holds, seen) {
    this.look(check);
    if (!holds) this.fail(check, seen);
    return holds;
  }

  cannot(check, why) {
    this.lines.get(check).unknown ??= why;
  }

  withoutDesign(why) {
    for (const check of NEED_DESIGN) this.cannot(check, why);
  }

  /** There is no journal where one has to be. */
  withoutJournal(why) {
    this.look("journal.there");
    this.fail("journal.there", why);
    for (const check of this.lines.keys()) this.cannot(check, why);
  }

  withoutEntries(why) {
    for (const check of CHECKS) if (!NEED_NO_ENTRIES.has(check)) this.cannot(check, why);
  }

  status(check) {
    const line = this.lines.get(check);
    if (line.count > 0) return "fail";
    if (line.unknown !== null) return "cannot tell";
    return line.looked > 0 ? "pass" : "not applicable";
  }

  /** [{check, status, count, seen}], in the order of section 14. */
  checks() {
    return [...this.lines.keys()].map((check) => {
      const line = this.lines.get(check);
      const status = this.status(check);
      const seen = status === "fail" ? line.faults.join("; ") : status === "cannot tell" ? line.unknown : `looked at ${line.looked}`;
      return { check, status, count: line.count, seen };
    });
  }

  /** 0 where all holds, but for whose key it is where nobody said whose it should be. */
  exitStatus(keyGiven) {
    const open = (check) => ["fail", "cannot tell"].includes(this.status(check));
    const may = (check) => WHOSE_KEY.has(check) && !keyGiven && this.status(check) === "cannot tell";
    return [...this.lines.keys()].some((check) => open(check) && !may(check)) ? 1 : 0;
  }
}
