// The journal line by line, without ever holding it (section 5).

import fs from "node:fs";

const CHUNK = 1 << 20;
const GIVE_UP = 16 << 20;

/**
 * {bytes, ended} of the first `size` bytes: each line without its newline. The last may be without one, and nothing
 * follows an endless one.
 */
export function* journalLines(fd, size) {
  let left = size;
  let kept = [];
  let length = 0;
  for (;;) {
    const chunk = Buffer.alloc(CHUNK);
    const count = fs.readSync(fd, chunk, 0, Math.min(CHUNK, left), null);
    if (count === 0) break;
    left -= count;
    let from = 0;
    for (;;) {
      const at = chunk.subarray(0, count).indexOf(10, from);
      if (at < 0) break;
      kept.push(chunk.subarray(from, at));
      yield { bytes: kept.length === 1 ? kept[0] : Buffer.concat(kept), ended: true };
      kept = [];
      length = 0;
      from = at + 1;
    }
    if (from < count) {
      kept.push(chunk.subarray(from, count));
      length += count - from;
    }
    if (length > GIVE_UP) break;
  }
  if (length > 0) yield { bytes: Buffer.concat(kept), ended: false };
}
