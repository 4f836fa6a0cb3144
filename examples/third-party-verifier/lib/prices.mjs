// What a usage costs, and what bounds can cost at most (section 4). All in picodollars.

import { INPUT_BUCKETS } from "./kinds.mjs";
import { divideUp, picodollars } from "./numbers.mjs";

const MILLION = 1000000n;

/** A model's prices, read once. */
export class Prices {
  constructor(price) {
    this.perRequest = price.per_request === undefined ? 0n : picodollars(price.per_request);
    this.rows = new Map();
    for (const { bucket, above_inputs, usd_per_million } of price.rows) {
      if (!this.rows.has(bucket)) this.rows.set(bucket, []);
      this.rows.get(bucket).push([above_inputs, picodollars(usd_per_million)]);
    }
    for (const rows of this.rows.values()) rows.sort((a, b) => b[0] - a[0]);
    this.starts = [...new Set(price.rows.map((row) => row.above_inputs))].sort((a, b) => a - b);
  }

  get free() {
    return this.perRequest === 0n && [...this.rows.values()].every((rows) => rows.every(([, usd]) => usd === 0n));
  }

  /** Whether both sides have a price, so that there is a worst case. */
  get bounded() {
    const has = (buckets) => buckets.some((bucket) => this.rows.has(bucket));
    return has(["input", "cache_read", "cache_write", "cache_write_1h"]) && has(["output", "reasoning"]);
  }

  price(bucket, inputs) {
    const rows = this.rows.get(bucket);
    if (rows === undefined) return null;
    return (rows.find(([above]) => above < inputs) ?? rows[rows.length - 1])[1];
  }

  /** The cost of a usage, or null where one of its buckets has no price. */
  cost(usage) {
    const inputs = INPUT_BUCKETS.reduce((sum, bucket) => sum + (usage[bucket] ?? 0), 0);
    let total = MILLION * this.perRequest;
    for (const [bucket, tokens] of Object.entries(usage)) {
      const price = this.price(bucket, inputs);
      if (price === null) return null;
      total += BigInt(tokens) * price;
    }
    return divideUp(total, MILLION);
  }

  /** The worst case of bounds, or null where a side has no price. */
  worst(inputBound, outputBound) {
    if (!this.bounded) return null;
    const tiers = this.starts.filter((start) => start === 0 || start < inputBound);
    if (tiers[0] !== 0) tiers.unshift(0);
    let worst = 0n;
    for (const start of tiers) {
      const next = this.starts.find((other) => other > start) ?? Infinity;
      const inputs = Math.min(inputBound, next);
      const dearest = (buckets) =>
        buckets
          .map((bucket) => this.price(bucket, start + 1))
          .filter((price) => price !== null)
          .reduce((a, b) => (a > b ? a : b));
      const total =
        BigInt(inputs) * dearest(["input", "cache_read", "cache_write", "cache_write_1h"]) +
        BigInt(outputBound) * dearest(["output", "reasoning"]) +
        MILLION * this.perRequest;
      const cost = divideUp(total, MILLION);
      if (cost > worst) worst = cost;
    }
    return worst;
  }
}

