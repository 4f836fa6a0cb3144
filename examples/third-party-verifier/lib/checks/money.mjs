// What is spent, held and set aside at every entry, and what was said of it (section 5, Money).

import { canonical } from "../json.mjs";
import { moneyText, picodollars } from "../numbers.mjs";

const GATEWAY = new Set([
  "route_unknown", "model_not_listed", "request_unreadable", "request_too_large", "feature_unpriced", "output_above_bound",
]);
const max = (a, b) => (a > b ? a : b);

export class Money {
  constructor(report, design) {
    this.report = report;
    this.design = design;
    const { budget } = design;
    const money = (text) => picodollars(text);
    this.cap = budget === null ? null : money(budget.cap);
    this.ceiling = budget === null ? null : this.cap + money(budget.margin);
    this.models = new Map((budget?.models ?? []).map((one) => [one.name, { cap: money(one.cap), reserve: money(one.reserve) }]));
    this.spent = budget === null ? 0n : money(budget.spent_before); // with what open blocks and orphans take up
    this.byModel = new Map();
    this.open = new Map(); // block index -> {model, reserve, charged, held}
    this.overrun = false;
    this.past = false; // an overrun took spent past the ceiling
    this.opening();
  }

  opening() {
    this.said = new Map(); // scope and model -> body
    this.overrunHere = false;
    this.pastHere = false;
  }

  #add(model, amount) {
    this.spent += amount;
    this.byModel.set(model, (this.byModel.get(model) ?? 0n) + amount);
  }

  #takes(block) {
    return max(max(block.reserve - block.charged, 0n), block.held);
  }

  /** Change an open block, and with it what is spent. */
  #change(block, change) {
    const before = this.#takes(block);
    change(block);
    this.#add(block.model, this.#takes(block) - before);
  }

  /** A block takes up no more: at a resume what is in flight stays held, at the block's end nothing does. */
  #close(index, stays) {
    const block = this.open.get(index);
    if (block === undefined) return;
    this.open.delete(index);
    block.stays = stays;
    this.#add(block.model, (stays ? block.held : 0n) - this.#takes(block));
  }

  entry({ kind, body, where }, state) {
    switch (kind) {
      case "run.resumed":
        for (const index of [...this.open.keys()]) this.#close(index, true);
        this.opening();
        break;
      case "block.admitted":
        this.#block(body, where, state);
        break;
      case "block.ended":
        this.#close(body.block, false);
        break;
      case "ceiling.reached":
        this.#reached(body, where);
        break;
      case "run.ended":
        this.#ended(body, where);
        break;
    }
  }

  #block(body, where, state) {
    const { report, design } = this;
    const block = design.blockOf.get(canonical([body.task, body.model, body.epoch]));
    if (block === undefined) return;
    report.look("budget.blocks");
    const say = (why) => report.fail("budget.blocks", `${where}: ${why}`);
    const planned = this.models.get(body.model);
    if (design.budget === null || planned === undefined) {
      if (body.reserve !== null) say("sets money aside without a budget");
      return;
    }
    if (body.reserve === null) {
      say("sets nothing aside");
      return;
    }
    const reserve = picodollars(body.reserve);
    const trials = block.trials.map(({ id }) => state.trial(id));
    const over = ({ final, last }) => final !== null || ["completed", "infrastructure"].includes(last?.ended?.outcome);
    const none = trials.every(({ final }) => final !== null);
    const may = reserve === 0n ? trials.every(over) : reserve === planned.reserve && !none;
    if (!may && !(reserve === planned.reserve && reserve === 0n)) say(`sets ${body.reserve} aside`);
    const own = this.byModel.get(body.model) ?? 0n;
    if (this.spent + reserve > this.cap) say(`${body.reserve} on top of ${moneyText(this.spent)} is past the cap`);
    else if (own + reserve > planned.cap) {
      say(`${body.reserve} on top of ${moneyText(own)} is past the cap of ${body.model}`);
    } else if (this.overrun) say("follows an overrun");
    else if ([...this.said.values()].some(({ scope, model }) => scope !== "model_cap" || model === body.model)) {
      say("follows what said that no block is admitted");
    }
    if (this.open.has(block.index)) return;
    const open = { model: body.model, reserve: 0n, charged: 0n, held: 0n, stays: true };
    this.open.set(block.index, open);
    this.#change(open, (one) => (one.reserve = reserve));
  }

  admitted(exchange, where) {
    const { report } = this;
    report.look("budget.ceiling");
    const block = this.open.get(exchange.block.index);
    exchange.account = block ?? null;
    if (block === undefined) this.#add(exchange.block.model, exchange.held);
    else this.#change(block, (one) => (one.held += exchange.held));
    if (this.ceiling === null) return; // budget.there, or costs.recomputed
    if (this.spent > this.ceiling) report.fail("budget.ceiling", `${where}: ${moneyText(this.spent)} is past the ceiling`);
    else if (this.past) report.fail("budget.ceiling", `${where}: an overrun was past the ceiling`);
  }

  ended(exchange, charged) {
    const block = exchange.account;
    if (block !== null && this.open.get(exchange.block.index) === block) {
      this.#change(block, (one) => {
        one.held -= exchange.held;
        one.charged += charged;
      });
      this.#add(block.model, charged);
    } else this.#add(exchange.block.model, charged - (block?.stays === false ? 0n : exchange.held));
    if (charged <= exchange.held) return;
    this.overrun = this.overrunHere = true;
    if (this.ceiling !== null && this.spent > this.ceiling) this.past = this.pastHere = true;
  }

  #reached(body, where) {
    const { report } = this;
    report.look("ceiling.disclosed");
    const say = (why) => report.fail("ceiling.disclosed", `${where}: ${body.scope} ${why}`);
    const mark = `${body.scope}/${body.model ?? ""}`;
    const model = body.scope === "model_cap" ? this.models.get(body.model) : null;
    if (this.cap === null) return say("is said without a budget");
    if (this.said.has(mark)) return say("is said again");
    this.said.set(mark, body);
    if (model === undefined || (model === null && body.model !== null)) return say(`is said of model ${body.model}`);
    const [spent, wanted, limit] = [body.spent, body.wanted, body.limit].map(picodollars);
    const really = model === null ? this.spent : (this.byModel.get(body.model) ?? 0n);
    if (spent !== really) return say(`says ${body.spent} is spent, and it is ${moneyText(really)}`);
    const right = body.scope === "ceiling" ? this.ceiling : model === null ? this.cap : model.cap;
    if (limit !== right) return say(`says the limit is ${body.limit}`);
    if (body.scope === "overrun") {
      if (!this.overrun || wanted !== 0n) say("is said without one, or something is wanted");
      return undefined;
    }
    const reserves = model === null ? [...this.models.values()].map(({ reserve }) => reserve) : [model.reserve];
    if (body.scope !== "ceiling" && !reserves.includes(wanted)) return say(`wants ${body.wanted}, which is no reserve`);
    const met = body.scope === "ceiling" && wanted === 0n && spent >= limit;
    if (spent + wanted <= limit && !met) say("is not so");
    return undefined;
  }

  refused(body, attempt, where, prices) {
    const { report } = this;
    const held = picodollars(body.held);
    report.look("ceiling.disclosed");
    const say = (why) => report.fail("ceiling.disclosed", `${where}: refused for ${body.reason}, ${why}`);
    if (body.model !== attempt.trial.model) return say(`of model ${body.model}`);
    const said = (scope) => this.said.has(`${scope}/`);
    switch (body.reason) {
      case "ceiling_reached": {
        const block = this.open.get(attempt.trial.block.index);
        const after = block === undefined ? held : max(max(block.reserve - block.charged, 0n), block.held + held);
        const more = block === undefined ? held : after - this.#takes(block);
        if (!said("ceiling")) say("which was not said before");
        else if (this.ceiling !== null && this.spent + more <= this.ceiling && !this.past) say("and would have fitted");
        return undefined;
      }
      case "overrun":
        if (!said("overrun") || !this.past) say("which was not so");
        return undefined;
      case "budget_absent":
        if (this.cap !== null || held === 0n) say("which was not so");
        return undefined;
      case "price_unknown":
        if (prices?.bounded !== false || held !== 0n) say("which was not so");
        return undefined;
      default:
        if (!GATEWAY.has(body.reason) || held !== 0n) say("which is no reason to refuse one");
        return undefined;
    }
  }

  #ended(body, where) {
    const { report } = this;
    const said = (...scopes) => [...this.said.values()].some(({ scope }) => scopes.includes(scope));
    const say = (why) => {
      report.look("ceiling.disclosed");
      report.fail("ceiling.disclosed", `${where}: ${why}`);
    };
    const needs = new Map([["ceiling_reached", ["ceiling"]], ["overrun", ["overrun"]], ["cap_reached", ["cap", "model_cap"]]]);
    const scopes = needs.get(body.reason);
    if (scopes !== undefined && !said(...scopes)) say(`ends for ${body.reason}, which was not said`);
    if (["disk_full", "write_failed"].includes(body.reason)) return;
    if (this.overrunHere && !said("overrun")) say("an overrun was not said");
    else if (this.pastHere && !said("ceiling")) say("that an overrun was past the ceiling was not said");
  }
}
