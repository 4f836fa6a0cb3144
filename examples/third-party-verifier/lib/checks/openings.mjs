// Openings, recoveries and the end of the run.

// What may stand between a recovery and the end of each attempt that it lost.
const MEANWHILE = ["exchange.ended", "attempt.files", "checkpoint.made", "checkpoint.anchored"];

export class Openings {
  constructor(report) {
    this.report = report;
    this.pending = new Set(); // attempts that a recovery lost and that have not ended yet
    this.recoveryDue = false;
  }

  entry({ kind, body, where }, state) {
    const { report } = this;
    const { last } = state;
    if (kind === "run.admitted" || kind === "run.resumed") {
      report.look("journal.openings");
      if ((kind === "run.admitted") !== (last === null)) report.fail("journal.openings", `${where}: ${kind} stands there`);
      if (kind === "run.resumed" && last !== null && body.previous_ended !== (last.kind === "run.ended")) {
        report.fail("journal.openings", `${where}: previous_ended is ${body.previous_ended} after ${last.kind}`);
      }
    } else {
      if (last === null) report.fail("journal.openings", `${where}: entry 0 is ${kind}`);
      if (last?.kind === "run.ended") report.fail("journal.openings", `${where}: ${kind} follows run.ended`);
    }
    this.#recovery(kind, body, where, state);
  }

  #recovery(kind, body, where, state) {
    const { report } = this;
    if (kind === "run.recovered") {
      report.look("journal.recovered");
      if (state.last?.kind !== "run.resumed") report.fail("journal.recovered", `${where}: does not follow run.resumed`);
      const lost = new Set(body.lost);
      const open = state.openAttempts;
      if (lost.size !== body.lost.length || lost.size !== open.size || [...lost].some((id) => !open.has(id))) {
        report.fail("journal.recovered", `${where}: names other attempts than the ${open.size} in flight`);
      }
      this.pending = new Set([...lost].filter((id) => open.has(id)));
    } else if (this.recoveryDue && kind !== "run.resumed") {
      report.look("journal.recovered");
      report.fail("journal.recovered", `${where}: ${kind} stands where run.recovered has to`);
    } else if (kind === "run.resumed") {
      this.pending = new Set();
    } else if (kind === "attempt.ended") {
      const due = this.pending.delete(body.attempt);
      if (due !== (body.outcome === "lost")) {
        report.look("journal.recovered");
        report.fail("journal.recovered", `${where}: ${body.attempt} ended as ${body.outcome}`);
      }
    } else if (this.pending.size > 0 && !MEANWHILE.includes(kind)) {
      report.fail("journal.recovered", `${where}: ${kind} stands before the end of each lost attempt`);
    }
    this.recoveryDue = kind === "run.resumed" && state.last !== null && state.last.kind !== "run.ended";
  }

  end(state) {
    const { report } = this;
    if (this.recoveryDue) report.fail("journal.recovered", "the journal ends before run.recovered");
    report.hold("run.ended", state.last?.kind === "run.ended", `the last entry is ${state.last?.kind ?? "none"}`);
  }
}
