// Agents and worlds, against the design and against what came of them (section 5).

import { canonical } from "../json.mjs";
import { NETWORKS } from "../kinds.mjs";
import { SAID_BY_AGENT, SAID_BY_EXCHANGE, STOPPED_SHORT } from "../words.mjs";

const LIMITS = new Map([
  ["steps", "step_limit"], ["tokens", "token_limit"], ["context", "context_exceeded"], ["idle", "idle_timeout"],
]);

/** The exceptions that fit to how an agent ended. */
function exceptions(ended, row) {
  if (ended.start_error !== null) return ["agent_start_failed"];
  if (ended.timed_out) return ["agent_timeout"];
  if (LIMITS.has(ended.limit_hit)) return [LIMITS.get(ended.limit_hit)];
  if (ended.signal !== null || ended.limit_hit !== null) return ["agent_killed"];
  if (ended.exit_code !== 0) return ["agent_error"];
  if (ended.output_dropped > 0) return ["agent_output_capped"];
  return row ? [null, "agent_error", "step_limit", "token_limit", "context_exceeded"] : [null];
}

export class Agents {
  constructor(report, design) {
    this.report = report;
    this.design = design;
  }

  entry({ kind, body, where }, attempt) {
    if (attempt.trial === null) return;
    if (kind === "agent.started") this.#planned(body, attempt, where);
    else if (kind === "sandbox.started") this.#world(body, attempt, where);
    else if (kind === "agent.ended") {
      const fits = exceptions(body.ended, attempt.row).includes(body.exception);
      this.report.hold("agents.ended", fits, `${where}: ${body.exception} does not follow from how the agent ended`);
    } else if (kind === "attempt.ended") this.#ended(body, attempt, where);
  }

  #planned(body, attempt, where) {
    const { report, design } = this;
    const agent = design.agentOf(attempt.trial.arm);
    const skills = (design.arms.get(attempt.trial.arm).skills ?? []).map(({ name, sha256 }) => ({ name, sha256 }));
    report.look("agents.planned");
    const say = (why) => report.fail("agents.planned", `${where}: starts an agent ${why}`);
    if (body.agent !== agent.name) say(`of the name ${body.agent}`);
    else if (canonical(body.settings) !== canonical(agent.settings)) say("with other settings than the design's");
    else if (canonical(body.skills) !== canonical(skills)) say("with other skills than the design's");
    else if (body.timeout_sec !== null ? body.timeout_sec <= 0 : agent.timeout_sec !== null) say("without a deadline");
    else if (agent.timeout_sec !== null && body.timeout_sec > agent.timeout_sec) {
      say("with a later deadline than the design's");
    }
    if (!attempt.row && !attempt.sandboxes.some(({ role }) => role === "agent")) {
      report.fail("worlds.planned", `${where}: starts an agent that has no world`);
    }
  }

  #world(body, attempt, where) {
    const { report, design } = this;
    const sandbox = design.sandboxOf(attempt.trial.arm);
    report.look("worlds.planned");
    const say = (why) => report.fail("worlds.planned", `${where}: a world ${why}`);
    if (sandbox.kind !== "auto" && body.facts.kind !== sandbox.kind) say(`of kind ${body.facts.kind}`);
    else if (NETWORKS.indexOf(body.facts.network) > NETWORKS.indexOf(sandbox.network)) {
      say(`with network ${body.facts.network}`);
    } else if (body.role === "agent" && body.from_snapshot) say("of an agent is a fork");
  }

  #ended({ outcome, exception }, attempt, where) {
    const { report } = this;
    const say = (why) => report.fail("agents.ended", `${where}: ${attempt.id} ${why}`);
    const reason = attempt.graded?.grade === "ungraded" ? attempt.graded.reason : null;
    const short = STOPPED_SHORT.has(reason);
    if (outcome === "completed") {
      if (short && exception === null) say(`was not graded for ${reason}, and its end has no exception`);
      else if (attempt.agentEnded === null && !short) say("completed without an end of its agent");
      else if (attempt.verifierEnded === null && !attempt.row && !short) say("completed without a verifier");
      else if (attempt.agentEnded !== null && attempt.agentEnded.exception !== null && exception === null) {
        say(`does not say that its agent ended as ${attempt.agentEnded.exception}`);
      }
    }
    for (const said of new Set([short ? reason : null, exception])) {
      if (SAID_BY_EXCHANGE.has(said) && !attempt.said.has(said)) say(`says ${said}, and no exchange of it did`);
    }
    if (SAID_BY_AGENT.has(exception) && attempt.agentEnded?.exception !== exception) {
      say(`says ${exception}, and its agent did not`);
    }
  }
}
