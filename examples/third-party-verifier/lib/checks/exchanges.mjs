// Exchanges with models: how they begin and end, and what they cost (section 5).

import { JsonFault, readCanonical } from "../json.mjs";
import { picodollars } from "../numbers.mjs";
import { Prices } from "../prices.mjs";
import { isCount, isObject } from "../types.mjs";

const MAX_KNOWN = 4096;
const MAX_CHUNKS = 32768;

/** Whether a route counts tokens, and whether it is one of the model's format. */
export function counting(route, api) {
  if (route.endsWith("/count_tokens")) return { counts: true, can: api === "anthropic" };
  if (route.endsWith(":countTokens")) return { counts: true, can: api === "gemini" };
  return { counts: false, can: true };
}

export class Exchanges {
  constructor(report, design, packs, money) {
    this.report = report;
    this.design = design;
    this.packs = packs;
    this.money = money;
    this.prices = new Map(design.value.models.map((model) => [model.name, new Prices(model.price)]));
    this.maps = new Map(); // frame -> what its chunk map is: one may be large, and named very often
  }

  entry({ kind, body, where }, attempt, state) {
    if (attempt.trial === null) return;
    if (kind === "exchange.admitted") this.#admitted(body, attempt, where, state);
    else if (kind === "exchange.ended") this.#ended(body, attempt, where, state);
    else if (kind === "exchange.refused") {
      attempt.said.add(body.reason);
      this.money.refused(body, attempt, where, this.prices.get(attempt.trial.model), state);
    } else if (kind === "attempt.ended") this.#attemptEnded(body, attempt, where);
  }

  #admitted(body, attempt, where, state) {
    const { report, design } = this;
    const { trial } = attempt;
    const model = trial.model === null ? undefined : design.models.get(trial.model);
    const { counts, can } = counting(body.route, model?.api);
    report.look("exchanges.admitted");
    const say = (why) => report.fail("exchanges.admitted", `${where}: ${body.exchange} ${why}`);
    const again = body.retries === null ? null : attempt.exchanges.get(body.retries);
    const place = attempt.asked;
    if (body.exchange !== `${attempt.id}/${place}`) say(`is not number ${place} of ${attempt.id}`);
    else if (model === undefined || body.model !== trial.model) say(`is of model ${body.model}`);
    else if (attempt.agentStarted === null || attempt.agentEnded !== null) say("stands outside of its agent");
    else if (!can) say("counts tokens in a format that cannot");
    else if (counts && (body.output_bound !== 0 || body.mutations.length > 0)) say("counts tokens, and may do more");
    else if (body.output_bound > design.maxOutput(trial.model, trial.arm)) say("may put out more than the design allows");
    else if (body.input_bound < body.request.size) say("bounds its input below the bytes of its request");
    else if (body.mutations.some((one) => !(model.mutations ?? []).includes(one))) {
      say("was changed as the design does not admit");
    } else if (again !== null && !(again?.ended && (again.error || again.released))) say(`sends ${body.retries} again`);
    if (model === undefined) return;
    const twice = attempt.exchanges.get(body.exchange)?.ended === false;
    const exchange = {
      held: picodollars(body.held), ended: false, error: false, released: false, counted: counts, opening: state.opening, block: trial.block,
    };
    const worst = counts ? 0n : this.prices.get(trial.model).worst(body.input_bound, body.output_bound);
    report.hold("costs.recomputed", worst === exchange.held, `${where}: holds ${body.held}, which is not the worst case`);
    if (twice) return;
    attempt.asked += 1;
    attempt.exchanges.set(body.exchange, exchange);
    this.money.admitted(exchange, where);
  }

  #ended(body, attempt, where, state) {
    const { report } = this;
    report.look("exchanges.ended");
    const exchange = attempt.exchanges.get(body.exchange);
    const say = (why) => report.fail("exchanges.ended", `${where}: ${body.exchange} ${why}`);
    if (exchange === undefined || exchange.ended) {
      say(exchange === undefined ? "was not admitted" : "ends again");
      return;
    }
    const charged = picodollars(body.charged);
    const fault = this.#unfit(body, exchange, charged, state);
    if (fault !== null) say(fault);
    if (body.chunks !== null) this.#chunks(body, where);
    this.#cost(body, exchange, charged, attempt, where);
    exchange.ended = true;
    attempt.lastEnd = body;
    exchange.error = body.error !== null;
    exchange.released = body.outcome === "released";
    if (body.outcome === "unknown") attempt.unknown = true;
    if (body.error !== null) attempt.said.add(body.error);
    attempt.settled += 1;
    attempt.charged += charged;
    attempt.estimated += body.estimated ? 1 : 0;
    for (const [bucket, tokens] of Object.entries(body.usage ?? {})) {
      attempt.tokens.set(bucket, (attempt.tokens.get(bucket) ?? 0n) + BigInt(tokens));
    }
    this.money.ended(exchange, charged);
  }

  /** What of an end does not fit together, or null. */
  #unfit(body, exchange, charged, state) {
    const { outcome, http_status: status, error } = body;
    if (body.overrun !== charged > exchange.held) return `says overrun: ${body.overrun}`;
    if (error !== null && body.finish !== null) return "has an error and a finish";
    if (body.chunks !== null && body.response === null) return "has chunks of no response";
    if (exchange.opening !== state.opening && outcome !== "unknown") {
      return `was in flight at a resume, and ends as ${outcome}`;
    }
    if (outcome === "unknown") {
      const left = [status, error, body.resolved_model, body.finish, body.response, body.usage, body.chunks];
      if (!body.estimated || left.some((one) => one !== null)) return "says of an unknown end what nobody saw";
      return body.flags.length > 0 || Object.keys(body.timing).length > 0 ? "says of an unknown end what nobody saw" : null;
    }
    if (exchange.counted) {
      if (outcome !== "released" || charged !== 0n || body.estimated) return "counted tokens, which is free";
      if (body.usage !== null || body.finish !== null || body.chunks !== null) return "counted tokens, and says more";
      return error === null && (body.response === null || status === null || status >= 300) ? "counted tokens, and has no answer" : null;
    }
    if (outcome === "released") {
      if (charged !== 0n || body.estimated || error === null) return "is released, and charged or without an error";
      const unsent = status === null && ["provider_unreachable", "interrupted"].includes(error);
      return unsent || (status !== null && status >= 300) ? null : `is released with status ${status}`;
    }
    if (status !== null && status >= 300) return `is settled with status ${status}`;
    if (!body.estimated && body.usage === null) return "is charged exactly, without a usage";
    if (body.estimated && body.usage !== null && body.flags.length === 0) {
      return "estimates beside a usage, and flags nothing";
    }
    const usable = body.finish !== null && body.response !== null && status !== null;
    return error === null && !usable ? "has neither an answer nor an error" : null;
  }

  #cost(body, exchange, charged, attempt, where) {
    const { report } = this;
    report.look("costs.recomputed");
    const cost = body.usage === null ? null : this.prices.get(attempt.trial.model).cost(body.usage);
    let due;
    if (body.outcome === "released" || exchange.counted) due = charged; // exchanges.ended says so
    else if (body.outcome === "unknown") due = exchange.held;
    else if (body.estimated) due = cost !== null && cost > exchange.held ? cost : exchange.held;
    else if (body.usage === null) due = charged;
    else due = cost;
    if (due !== charged) report.fail("costs.recomputed", `${where}: ${body.exchange} is charged ${body.charged}`);
  }

  #chunks(body, where) {
    const { report } = this;
    const ref = body.chunks;
    if (ref === null || body.response === null || this.packs.withheld.blobs.has(ref.blob)) return;
    const say = (why) => report.fail("exchanges.chunks", `${where}: the chunk map ${why}`);
    report.look("exchanges.chunks");
    if (!Object.hasOwn(ref, "pack")) {
      say("is no frame of a pack");
      return;
    }
    const frame = JSON.stringify(ref);
    const { why, last } = this.maps.get(frame) ?? this.#map(ref);
    if (this.maps.size < MAX_KNOWN) this.maps.set(frame, { why, last });
    if (why !== undefined) say(why);
    else if (last >= body.response.size) say("goes beyond its response");
  }

  /** Where the last chunk of a map begins, or why it is none; neither where that is said of its frame. */
  #map(ref) {
    const content = this.packs.content(ref);
    if (content === null) return {};
    let map;
    try {
      map = readCanonical(content);
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error;
      return { why: error.message };
    }
    const pair = (one) => Array.isArray(one) && one.length === 2 && one.every(isCount);
    if (isObject(map) || !Array.isArray(map) || map.length === 0 || map.length > MAX_CHUNKS || !map.every(pair)) {
      return { why: "is no list of pairs" };
    }
    if (map[0][0] !== 0 || map[0][1] !== 0) return { why: "does not begin with [0, 0]" };
    const falls = map.some(([offset, ns], i) => i > 0 && (offset <= map[i - 1][0] || ns < map[i - 1][1]));
    return falls ? { why: "falls" } : { last: map[map.length - 1][0] };
  }

  #attemptEnded(body, attempt, where) {
    const { report } = this;
    const say = (why) => report.fail("exchanges.ended", `${where}: ${attempt.id} ${why}`);
    const flying = [...attempt.exchanges.values()].filter(({ ended }) => !ended);
    if (flying.length > 0) say("ends with an exchange in flight");
    for (const exchange of flying) this.money.ended(exchange, 0n);
    if (attempt.unknown && !["lost", "interrupted"].includes(body.outcome)) {
      say(`ends as ${body.outcome} after an unknown end`);
    }
  }
}
