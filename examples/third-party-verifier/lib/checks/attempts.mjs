// Attempts: their place, numbers, phases and ends (section 5).

import { Attempt } from "../state.mjs";

const SCORED = new Set(["wrong_answer", "below_threshold", "scorer_failed", "scorer_timeout", "reward_key_missing"]);
const BOUNDARIES = ["env-ready", "pre-verify", "post-verify"];
const ENDS_RUN = new Set([
  "interrupted", "disk_full", "write_failed", "sandbox_unavailable", "user_namespaces_forbidden", "bwrap_missing",
  "rootfs_invalid", "limit_unenforceable", "network_unavailable", "docker_unavailable", "bundle_missing",
  "bundle_changed", "runtime_version_absent", "runtime_skew", "ceiling_reached", "cap_reached", "overrun",
  "key_rejected", "quota_exhausted", "model_not_found",
]);

/** The outcome of an attempt that did not complete, by its exception; null where it has none. */
function outcomeOf(exception) {
  if (ENDS_RUN.has(exception)) return "interrupted";
  return exception === null || exception === "lost" ? exception : "infrastructure";
}

export class Attempts {
  constructor(report, design, blocks) {
    this.report = report;
    this.design = design;
    this.blocks = blocks;
  }

  /** The attempt that an entry is of, or null where there is none that it could be. */
  resolve({ kind, body, where }, state) {
    const { report } = this;
    const attempt = state.attempts.get(body.attempt);
    report.look("attempts.admitted");
    report.look("attempts.ended");
    if (attempt === undefined) {
      const [trial, number] = body.attempt.split("/");
      if (Number(number) < (state.trials.get(trial)?.attempts ?? 0)) {
        report.fail("attempts.ended", `${where}: is ${kind} of ${body.attempt}, which is not open`);
      } else if (this.design !== null) report.fail("attempts.admitted", `${where}: is ${kind} of ${body.attempt}, which was not admitted`);
      return null;
    }
    if (attempt.ended !== null) {
      report.fail("attempts.ended", `${where}: is ${kind} of ${attempt.id}, which has ended`);
      return null;
    }
    return attempt;
  }

  admitted(body, where, state) {
    const { report, design } = this;
    if (design === null) {
      if (!state.attempts.has(body.attempt)) this.#keep(new Attempt(body, null, state.opening, null), state);
      return;
    }
    const trial = design.trials.get(body.trial) ?? null;
    report.look("attempts.joined");
    const slug = body.folder.split("/")[1] ?? "";
    if (trial !== null && slug.endsWith(`-${trial.id.slice(0, 8)}`)) state.trial(trial.id).name ??= slug;
    const wrong = trial === null ? "is of no planned trial" : this.#misplaced(body, trial, state);
    if (wrong !== null) report.fail("attempts.joined", `${where}: ${body.attempt} ${wrong}`);
    const attempt = new Attempt(body, trial, state.opening, trial === null ? null : design.rows.has(trial.task));
    if (trial !== null) {
      const seen = state.trial(trial.id);
      report.look("attempts.numbered");
      const fault = seen.final === null ? this.#misnumbered(body, seen, state) : null;
      if (fault !== null) report.fail("attempts.numbered", `${where}: ${body.attempt} ${fault}`);
      if (seen.final !== null) report.fail("finals.one", `${where}: ${body.attempt} comes after its trial's final`);
      this.blocks.attempt(attempt, where, state);
      seen.attempts += 1;
      seen.last = attempt;
      seen.openingSeen = state.opening;
      if (body.replaces !== null) seen.replaced += 1;
      if (attempt.row) report.look("rows.bare");
    }
    state.admittedInOpening += 1;
    this.#keep(attempt, state);
  }

  #keep(attempt, state) {
    state.attempts.set(attempt.id, attempt);
    state.openAttempts.add(attempt.id);
    if (!attempt.row) state.folders.set(attempt.admitted.folder, attempt);
  }

  #misplaced(body, trial, state) {
    if (body.attempt !== `${body.trial}/${body.number}`) return "is not the trial's attempt of its number";
    if (body.task !== trial.task || body.model !== trial.model || body.arm !== trial.arm || body.epoch !== trial.epoch) {
      return "is of another task, model, arm or epoch than its trial";
    }
    if (body.block !== trial.block.index) return `names block ${body.block}`;
    const seen = state.trial(trial.id);
    const folder = /^trials\/([^/]*)\/([0-9]+)$/.exec(body.folder);
    if (folder === null || !folder[1].endsWith(`-${trial.id.slice(0, 8)}`)) return "has a folder of another name";
    if (folder[2] !== String(body.number)) return "has the folder of another number";
    return seen.name === folder[1] ? null : "has another folder than the attempts before";
  }

  #misnumbered(body, seen, state) {
    if (body.number !== seen.attempts) return `has not number ${seen.attempts}`;
    const before = seen.last;
    const { supersedes, replaces } = body;
    if (before === null) return supersedes === null && replaces === null ? null : "names an attempt before it";
    if (before.ended === null) return "begins while the one before is open";
    const { outcome } = before.ended;
    if (outcome === "completed") return "follows one that completed";
    if (outcome === "infrastructure") {
      if (replaces !== before.id || supersedes !== null) return `does not replace ${before.id}`;
      return seen.replaced < this.design.value.stage.replacements ? null : "is one replacement too many";
    }
    if (supersedes !== before.id || replaces !== null) return `does not supersede ${before.id}`;
    return outcome === "interrupted" && before.endedIn === state.opening ? "follows an interruption in the same opening" : null;
  }

  /** Returns false where the entry is one that other checks pass over. */
  entry({ kind, body, where }, attempt, state) {
    const { report } = this;
    if (attempt.row && ["sandbox.started", "attempt.boundary", "verifier.ended", "attempt.files"].includes(kind)) {
      report.fail("rows.bare", `${where}: is ${kind} of a question row`);
      if (kind === "verifier.ended") attempt.verifierEnded = body;
      return false;
    }
    switch (kind) {
      case "sandbox.started":
      case "attempt.boundary":
        if (kind === "sandbox.started") {
          const another = attempt.sandboxes.some((each) => each.role === body.role);
          const ready = attempt.boundaries.length > 0 && attempt.agentStarted === null; // else worlds.planned says so
          const late = body.role === "verifier" ? attempt.verifierEnded !== null : ready;
          report.hold("attempts.phases", !another && !late, `${where}: starts a world for the ${body.role} again or late`);
          attempt.sandboxes.push(body);
          if (body.role === "verifier") attempt.verifierWorld = true;
        } else {
          const at = BOUNDARIES.indexOf(body.boundary);
          const later = attempt.boundaries.some((each) => BOUNDARIES.indexOf(each) >= at);
          const passed = [attempt.agentStarted === null, attempt.agentEnded !== null, attempt.verifierEnded !== null][at];
          const next = [false, attempt.verifierWorld || attempt.verifierEnded !== null, attempt.graded !== null][at];
          report.hold("attempts.phases", passed && !later && !next, `${where}: reaches ${body.boundary} out of its turn`);
          attempt.boundaries.push(body.boundary);
        }
        break;
      case "agent.started":
        report.hold("attempts.phases", attempt.agentStarted === null, `${where}: starts a second agent`);
        attempt.agentStarted = body;
        break;
      case "agent.ended":
        report.look("attempts.phases");
        if (attempt.agentStarted === null || attempt.agentEnded !== null) {
          report.fail("attempts.phases", `${where}: ends an agent that does not run`);
        } else if (attempt.verifierWorld || attempt.verifierEnded !== null || attempt.graded !== null) {
          report.fail("attempts.phases", `${where}: ends an agent that was verified or graded before`);
        } else if (attempt.answers > 0) report.fail("attempts.phases", `${where}: ends an agent whose answer was scored before`);
        attempt.agentEnded = body;
        break;
      case "exchange.refused": {
        const atWork = attempt.agentStarted !== null && attempt.agentEnded === null;
        report.hold("attempts.phases", atWork, `${where}: refuses a request while no agent is at work`);
        break;
      }
      case "verifier.ended":
        report.look("attempts.phases");
        if (attempt.verifierEnded !== null) report.fail("attempts.phases", `${where}: ends a verifier again`);
        else if ([...attempt.files.keys()].some((path) => path.startsWith("verifier/"))) {
          report.fail("attempts.phases", `${where}: ends a verifier whose files were named before`);
        }
        attempt.verifierEnded = body;
        break;
      case "answer.scored":
        if (this.design !== null && attempt.trial !== null) this.#answer(attempt, where);
        attempt.answers += 1;
        break;
      case "attempt.files":
        for (const file of body.files) attempt.files.set(file.path, file);
        break;
      case "attempt.graded":
        this.#graded(body, attempt, where);
        break;
      case "attempt.ended":
        this.#ended(body, attempt, where, state);
        break;
    }
    return true;
  }

  #answer(attempt, where) {
    const { report } = this;
    report.look("answers.scored");
    if (!attempt.row) report.fail("answers.scored", `${where}: is of no question row`);
    else if (attempt.answers > 0) report.fail("answers.scored", `${where}: is a second answer`);
    else if (attempt.graded !== null) report.fail("answers.scored", `${where}: comes after the grade`);
  }

  #graded(body, attempt, where) {
    const { report, design } = this;
    if (attempt.graded !== null) {
      report.fail("attempts.graded", `${where}: grades ${attempt.id} again`);
      return;
    }
    if ((body.reason === null) !== (body.grade === "pass")) {
      report.fail("attempts.graded", `${where}: ${body.grade} for ${body.reason}`);
    }
    attempt.graded = body;
    if (attempt.row && (body.grade === "pass" || SCORED.has(body.reason))) {
      report.hold("answers.scored", attempt.answers > 0, `${where}: grades an answer that was not scored`);
    }
    const assurance = attempt.verifierEnded?.assurance ?? null;
    report.look("attempts.assured");
    // Without a world for the verifier a grade is never isolated, also where the design's word for it is absent.
    const shared = design === null ? ["shared", "live"] : [design.value.grading.assurance ?? null];
    const may = attempt.verifierWorld ? ["isolated"] : shared;
    const fits = assurance === null ? !attempt.verifierWorld : may.includes(body.assurance);
    if (body.assurance !== assurance || !fits) {
      report.fail("attempts.assured", `${where}: ${body.assurance}, where the verifier's is ${assurance}, and not of its world`);
    }
  }

  #ended(body, attempt, where, state) {
    const { report } = this;
    const { outcome, exception } = body;
    const fits = outcome === "completed" || outcome === outcomeOf(exception);
    report.hold("attempts.outcomes", fits, `${where}: ${attempt.id} ended as ${outcome} for ${exception}`);
    if (attempt.graded !== null || outcome === "completed") report.look("attempts.graded");
    const cut = outcome === "lost" || exception === "disk_full" || exception === "write_failed";
    if (outcome === "completed" ? attempt.graded === null : attempt.graded !== null && !cut) {
      report.fail("attempts.graded", `${where}: ${attempt.id} ended as ${outcome}, ${attempt.graded === null ? "not graded" : "graded"}`);
    }
    attempt.ended = body;
    attempt.endedIn = state.opening;
    state.openAttempts.delete(attempt.id);
  }
}

/** Nothing is in flight at the end of an opening, nor of the run. */
export class Flight {
  constructor(report) {
    this.report = report;
  }

  entry({ kind, where }, state) {
    if (kind !== "run.ended") return;
    this.report.hold(
      "flight.empty", state.openAttempts.size === 0,
      `${where}: ${state.openAttempts.size} attempts are in flight`,
    );
  }

  end(state) {
    if (state.last?.kind === "run.ended" || state.openAttempts.size === 0) return;
    this.report.fail("flight.empty", `${state.openAttempts.size} attempts are in flight at the end`);
  }
}
