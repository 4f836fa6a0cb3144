// Blocks, the drawn order of work, and finals (sections 5 and 11).

import { canonical } from "../json.mjs";

export class Blocks {
  constructor(report, design) {
    this.report = report;
    this.design = design;
    this.admittedIn = new Map(); // block index -> opening
    this.ended = new Set();
    this.places = new Map(); // model -> {opening, place}: the latest beginning in that opening
    this.tried = new Map(design.modelNames.map((name) => [name, { place: 0 }])); // all before have begun
    this.order = new Map();
    for (const block of design.blocks) {
      if (!this.order.has(block.model)) this.order.set(block.model, []);
      this.order.get(block.model).push(...block.trials);
    }
  }

  entry({ kind, body, where }, state) {
    if (kind === "block.admitted") this.#admitted(body, where, state);
    else if (kind === "block.ended") this.#ended(body, where, state);
    else if (kind === "run.ended" && state.complete) {
      for (const index of this.admittedIn.keys()) {
        if (!this.ended.has(index)) {
          this.report.fail("blocks.ended", `${where}: block ${index} of a complete run has no end`);
        }
      }
    }
  }

  #admitted(body, where, state) {
    const { report } = this;
    report.look("blocks.admitted");
    const block = this.design.blockOf.get(canonical([body.task, body.model, body.epoch]));
    if (block === undefined) {
      report.fail("blocks.admitted", `${where}: admits a block that is not the design's`);
      return;
    }
    report.hold(
      "blocks.drawn", block.index === body.block,
      `${where}: gives index ${body.block} to what is drawn as ${block.index}`,
    );
    if (this.admittedIn.get(block.index) === state.opening) report.fail("blocks.admitted", `${where}: admits a block twice`);
    else if (this.ended.has(block.index)) report.fail("blocks.admitted", `${where}: admits a block that has ended`);
    this.admittedIn.set(block.index, state.opening);
  }

  #ended(body, where, state) {
    const { report } = this;
    report.look("blocks.ended");
    const block = this.design.blocks[body.block];
    if (block === undefined) report.fail("blocks.ended", `${where}: ends block ${body.block}, and there is none`);
    else if (this.ended.has(body.block)) report.fail("blocks.ended", `${where}: ends block ${body.block} again`);
    else if (!block.trials.every(({ id }) => state.trial(id).final !== null)) {
      report.fail("blocks.ended", `${where}: ends block ${body.block} before all its finals`);
    }
    this.ended.add(body.block);
  }

  /** An attempt at a planned trial begins. */
  attempt(attempt, where, state) {
    const { report } = this;
    const { trial, admitted } = attempt;
    report.look("blocks.admitted");
    if (this.ended.has(trial.block.index) || this.admittedIn.get(trial.block.index) !== state.opening) {
      report.fail("blocks.admitted", `${where}: admits ${attempt.id} outside of its block`);
    }
    const seen = state.trial(trial.id);
    if (seen.openingSeen === state.opening) return;
    report.look("trials.ordered");
    const latest = this.places.get(trial.model);
    const fresh = latest === undefined || latest.opening !== state.opening;
    if (!fresh && trial.place < latest.place) report.fail("trials.ordered", `${where}: begins ${trial.id} too late`);
    else if (admitted.number === 0 && this.#firstUntried(trial.model, state) < trial.place) {
      report.fail("trials.ordered", `${where}: begins ${trial.id} before one that is drawn earlier`);
    }
    this.places.set(trial.model, { opening: state.opening, place: fresh ? trial.place : Math.max(latest.place, trial.place) });
  }

  #firstUntried(model, state) {
    const order = this.order.get(model);
    const tried = this.tried.get(model);
    while (tried.place < order.length) {
      const seen = state.trials.get(order[tried.place].id);
      if (seen === undefined || seen.attempts === 0) break;
      tried.place += 1;
    }
    return tried.place;
  }
}

export class Finals {
  constructor(report, design) {
    this.report = report;
    this.design = design;
  }

  entry({ kind, body, where }, state) {
    if (kind === "trial.final") this.#final(body, where, state);
    else if (kind === "run.ended") this.#ended(body, where, state);
  }

  #final(body, where, state) {
    const { report } = this;
    report.look("attempts.joined");
    if (!this.design.trials.has(body.trial)) {
      report.fail("attempts.joined", `${where}: is of trial ${body.trial}, which is not planned`);
      return;
    }
    const trial = state.trial(body.trial);
    report.look("finals.one");
    if (trial.final !== null) {
      report.fail("finals.one", `${where}: is a second final of ${body.trial}`);
      return;
    }
    const last = trial.last;
    trial.final = body;
    state.finals.finals += 1;
    state.finals[body.grade] += 1;
    if (last?.id !== body.attempt) {
      report.fail("finals.one", `${where}: ${body.attempt} is not the last attempt of ${body.trial}`);
      return;
    }
    if (last.ended === null) {
      report.fail("finals.one", `${where}: ${last.id} has not ended`);
      return;
    }
    const grade = last.graded;
    report.look("finals.agree");
    if (["interrupted", "lost"].includes(last.ended.outcome)) {
      report.fail("finals.agree", `${where}: ${last.id} ended as ${last.ended.outcome}`);
      return;
    }
    const same =
      grade !== null
        ? body.grade === grade.grade && body.reason === grade.reason && body.reward === grade.reward
        : body.grade === "ungraded" && body.reward === null && ["not_graded", last.ended.exception].includes(body.reason);
    if (!same) report.fail("finals.agree", `${where}: says ${body.grade} (${body.reason}) of ${body.attempt}`);
  }

  #ended(body, where, state) {
    const { report, design } = this;
    const totals = { trials: design.trialCount, ...state.finals };
    const right = Object.keys(totals).every((name) => totals[name] === body.totals[name]) && body.complete === state.complete;
    report.hold("totals.agree", right, `${where}: counts other finals than the journal holds`);

    const { exit_status: status, reason } = body;
    const say = (why) => report.fail("status.agrees", `${where}: exit status ${status} (${reason}) ${why}`);
    report.look("status.agrees");
    const prepared = reason === "prepared_only";
    if (prepared) {
      if (status !== 0 || state.complete || state.admittedInOpening > 0) say("of an opening that did more than prepare");
    } else if (status === 0 || status === 1) {
      const ungraded = state.finals.ungraded > 0;
      if (!state.complete || ungraded !== (status === 1) || reason !== null) say("does not fit the finals");
    } else if (reason === null) {
      say("is without a reason");
    } else {
      const { drain } = state;
      if (status >= 129) {
        const asked = new Map([["SIGHUP", 129], ["SIGINT", 130], ["SIGTERM", 143]]).get(drain);
        if (reason !== "interrupted" || (asked !== undefined && asked !== status)) say(`follows a drain for ${drain}`);
      } else if (status === 4) {
        const cause = drain === "deadline" ? "stage_deadline" : drain;
        if (reason !== "interrupted" && reason !== cause) say(`follows a drain for ${drain}`);
      }
    }
  }
}
