// One pass over a run: each line goes to the checks of bytes, and each entry that can be read to those of its meaning.

import fs from "node:fs";
import { Agents } from "./checks/agents.mjs";
import { Anchors } from "./checks/anchors.mjs";
import { Attempts, Flight } from "./checks/attempts.mjs";
import { Blocks, Finals } from "./checks/blocks.mjs";
import { Checkpoints } from "./checks/checkpoints.mjs";
import { checkAttemptFile, Summaries } from "./checks/derived.mjs";
import { checkBudgetRules, checkMarks, checkPlan, readDesign } from "./checks/design.mjs";
import { Exchanges } from "./checks/exchanges.mjs";
import { Files, Withheld } from "./checks/files.mjs";
import { Grades } from "./checks/grades.mjs";
import { Manifests } from "./checks/manifests.mjs";
import { Money } from "./checks/money.mjs";
import { Openings } from "./checks/openings.mjs";
import { Packs } from "./checks/packs.mjs";
import { Clock } from "./clocks.mjs";
import { Folder, FolderFault } from "./folder.mjs";
import { JsonFault, readCanonical } from "./json.mjs";
import { journalLines } from "./journal.mjs";
import { classify } from "./kinds.mjs";
import { sha256hex, Tree } from "./merkle.mjs";
import { Report } from "./report.mjs";
import { State } from "./state.mjs";

const MAX_LINE = 65535;

/** Verify the run at a path; throws FolderFault where there is no journal to read. `trust` is a fingerprint or null. */
export function verifyRun(root, trust) {
  const folder = new Folder(root);
  const report = new Report();
  const kind = folder.kind("journal.jsonl");
  if (kind !== "file") {
    if (!wasAdmitted(folder)) throw new FolderFault("there is no run that was admitted");
    report.withoutJournal(kind === "nothing" ? "journal.jsonl is not there" : "journal.jsonl is no plain file");
    return { report, entries: 0, runId: null, marks: [] };
  }
  const fd = folder.open("journal.jsonl");
  try {
    const before = fs.fstatSync(fd);
    report.look("journal.there");
    const result = new Run(report, folder, trust).verify(fd, before.size);
    if (before.size > 0) report.hold("journal.still", isStill(folder, before), "journal.jsonl changed while it was read");
    return result;
  } finally {
    fs.closeSync(fd);
  }
}

/** Whether a folder holds more than the records of invocations that were refused. */
function wasAdmitted(folder) {
  if (["design.json", "summary.json", "grade_summary.json"].some((path) => folder.kind(path) !== "nothing")) return true;
  if (["checkpoints", "packs", "blobs", "trials", "quarantine"].some((path) => folder.list(path).length > 0)) return true;
  return folder.list("manifests").some(([name]) => {
    try {
      return readCanonical(folder.read(`manifests/${name}`))?.verdict === "admitted";
    } catch (error) {
      if (!(error instanceof FolderFault || error instanceof JsonFault)) throw error;
      return false;
    }
  });
}

const grouped = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, ",");

function isStill(folder, before) {
  const now = folder.stat("journal.jsonl");
  return now !== null && ["dev", "ino", "size", "mtimeMs", "ctimeMs"].every((name) => now[name] === before[name]);
}

class Run {
  constructor(report, folder, trust) {
    this.report = report;
    this.read = readDesign(report, folder);
    const { design } = this.read;
    this.design = design;
    this.state = new State(design);
    this.tree = new Tree();
    this.withheld = new Withheld(report, folder);
    this.checkpoints = new Checkpoints(report, folder, trust);
    this.openings = new Openings(report);
    this.anchors = new Anchors(report, folder, design);
    this.manifests = new Manifests(report, folder, design);
    this.packs = new Packs(report, folder, this.withheld);
    this.files = new Files(report, folder, this.withheld);
    this.flight = new Flight(report);
    this.money = design && new Money(report, design);
    this.blocks = design && new Blocks(report, design);
    this.attempts = new Attempts(report, design, this.blocks);
    this.agents = design && new Agents(report, design);
    this.exchanges = design && new Exchanges(report, design, this.packs, this.money);
    this.finals = design && new Finals(report, design);
    this.grades = design && new Grades(report, design, folder, this.withheld);
    this.summaries = design && new Summaries(report, design, folder);
    this.blind = false; // after a line that nobody can read
    this.clock = new Clock(report.notes);
    this.lines = 0;
    this.prev = "0".repeat(64);
    this.mono = 0;
    this.seq = 0;
    this.time = null;
  }

  verify(fd, size) {
    const { report } = this;
    for (const line of journalLines(fd, size)) {
      this.#line(line);
      this.anchors.line(this.lines, this.time);
    }
    if (this.lines === 0) report.fail("journal.lines", "there is no entry");
    if (this.blind) report.withoutEntries("a line before cannot be read");
    const { state, blind, lines } = this;
    this.checkpoints.end(state, { blind, lines });
    if (!blind || state.first !== null) checkPlan(report, this.read, state.first);
    else {
      report.cannot("design.digest", "entry 0 cannot be read");
      report.cannot("design.plan", "entry 0 cannot be read");
    }
    if (this.design !== null) {
      checkMarks(report, this.design);
      checkBudgetRules(report, this.design);
    }
    this.packs.close();
    if (!blind) {
      this.packs.end();
      this.openings.end(state);
      this.manifests.end();
      this.anchors.end(state, lines);
      this.flight.end(state);
      if (this.design !== null) {
        for (const id of state.openAttempts) this.grades.check(state.attempts.get(id));
        this.summaries.end();
      }
      this.files.end(state, this.packs.places());
    }
    return { report, entries: lines, runId: state.first?.run_id ?? null, marks: this.#marks() };
  }

  /** What stands beside a verdict: of what a part, how much of the plan, and whether a model is made up. */
  #marks() {
    if (this.design === null) return [];
    const { value, trialCount } = this.design;
    const { finals } = this.state.finals;
    const marks = Object.hasOwn(value, "selection") ? ["PART"] : [];
    if (!this.blind && finals < trialCount) marks.push(`NOT COMPLETE (${grouped(finals)} of ${grouped(trialCount)})`);
    if (value.models.some((model) => model.synthetic === true)) marks.push("SYNTHETIC");
    return marks;
  }

  #line({ bytes, ended }) {
    const { report } = this;
    const where = `journal.jsonl:${this.lines + 1}`;
    report.look("journal.lines");
    if (!ended) {
      report.fail("journal.lines", `${where}: no newline ends it`);
      this.blind = true;
      return;
    }
    const index = this.lines;
    this.lines += 1;
    this.tree.append(bytes);
    this.checkpoints.line(this.tree);
    const before = this.prev;
    this.prev = sha256hex(bytes);
    let value;
    try {
      if (bytes.length > MAX_LINE) throw new JsonFault(`${bytes.length} bytes`);
      value = readCanonical(bytes);
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error;
      report.fail("journal.lines", `${where}: ${error.message}`);
      this.#unread();
      return;
    }
    this.#value(value, { where, index, before });
  }

  /** A line that nobody can read: what it opened, and what follows from it, is not known. */
  #unread() {
    this.blind = true;
    this.seq += 1;
    this.mono = 0;
  }

  #value(value, { where, index, before }) {
    const { report } = this;
    report.look("journal.kinds");
    const found = classify(value);
    if (found === "no entry") {
      report.fail("journal.kinds", `${where}: is no entry of a known shape`);
      this.#unread();
      return;
    }
    report.hold("journal.sequence", value.seq === this.seq, `${where}: seq is ${value.seq}, where ${this.seq} is next`);
    this.seq = value.seq + 1;
    report.hold("journal.chain", value.prev === before, `${where}: prev is not the line before`);
    if (found === "unknown kind") report.cannot("journal.kinds", `${where}: kind ${value.kind} is not known`);
    const opens = value.kind === "run.resumed" || (value.kind === "run.admitted" && index === 0);
    report.hold("journal.mono", opens || value.mono >= this.mono, `${where}: mono falls`);
    this.mono = value.mono;
    this.clock.entry(value, opens, where);
    this.time = value.time;
    if (found === "entry" && !this.blind) this.#entry({ ...value, where, index, opens });
  }

  #entry(entry) {
    const { state } = this;
    const { kind, body } = entry;
    this.openings.entry(entry, state);
    if (entry.opens) state.open(kind, body);
    this.checkpoints.entry(entry);
    this.anchors.entry(entry);
    this.manifests.entry(entry, state);
    this.packs.entry(entry);
    this.files.entry(entry);
    this.flight.entry(entry, state);
    if (kind === "run.draining") state.drain ??= body.cause;
    this.blocks?.entry(entry, state);
    this.money?.entry(entry, state);
    this.finals?.entry(entry, state);
    let attempt = null;
    if (kind === "attempt.admitted") {
      this.attempts.admitted(body, entry.where, state);
      attempt = state.attempts.get(body.attempt) ?? null;
    } else if (kind !== "trial.final" && Object.hasOwn(body, "attempt")) {
      attempt = this.attempts.resolve(entry, state);
      if (attempt !== null) this.#within(entry, attempt);
    }
    this.summaries?.entry(entry, attempt, state);
    state.last = entry;
  }

  #within(entry, attempt) {
    this.exchanges?.entry(entry, attempt, this.state);
    if (!this.attempts.entry(entry, attempt, this.state)) return;
    this.agents?.entry(entry, attempt);
    if (entry.kind !== "attempt.ended" || this.design === null) return;
    this.grades.check(attempt);
    checkAttemptFile(this.report, attempt);
    attempt.forget();
  }
}
