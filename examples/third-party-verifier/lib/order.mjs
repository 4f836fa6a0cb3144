// The drawn order of blocks and of the arms in each (section 11).

import { canonical } from "./json.mjs";
import { sha256 } from "./merkle.mjs";

/** Words of 64 bits that a seed and a text name, one after the other. */
export class Stream {
  constructor(seed, text) {
    this.seed = seed;
    this.text = text;
    this.next = 0;
  }

  word() {
    const digest = sha256(canonical([this.seed, this.text, this.next]));
    this.next += 1;
    return digest.readBigUInt64BE(0);
  }

  below(bound) {
    const k = BigInt(bound);
    const limit = 2n ** 64n - (2n ** 64n % k);
    for (;;) {
      const word = this.word();
      if (word < limit) return Number(word % k);
    }
  }

  shuffle(list) {
    for (let i = list.length - 1; i >= 1; i -= 1) {
      const j = this.below(i + 1);
      [list[i], list[j]] = [list[j], list[i]];
    }
    return list;
  }
}

function* ordersOf(items) {
  if (items.length === 0) yield [];
  for (let i = 0; i < items.length; i += 1) {
    const others = [...items.slice(0, i), ...items.slice(i + 1)];
    for (const order of ordersOf(others)) yield [items[i], ...order];
  }
}

/** [task, epoch, [arm, …]] of each block of a model, in order. */
export function drawnBlocks(design, modelName) {
  const stream = new Stream(design.draw.seed, `order/${design.stage.name}/${modelName ?? "-"}`);
  const blocks = [];
  for (const task of design.tasks) {
    for (let epoch = 1; epoch <= design.stage.epochs; epoch += 1) blocks.push([task.name, epoch]);
  }
  stream.shuffle(blocks);
  const arms = design.arms.map(({ name }) => name);
  const k = arms.length;
  if (k === 1) return blocks.map(([task, epoch]) => [task, epoch, arms]);
  const bases =
    k <= 4 ? stream.shuffle([...ordersOf(arms.slice(1))].map((rest) => [arms[0], ...rest])) : [stream.shuffle([...arms])];
  const start = stream.below(k);
  return blocks.map(([task, epoch], p) => {
    const base = bases[Math.floor(p / k) % bases.length];
    const turn = (start + p) % k;
    return [task, epoch, [...base.slice(turn), ...base.slice(0, turn)]];
  });
}
