// The tree of RFC 6962 with SHA-256 (section 7), its roots at growing sizes, and its two kinds of proof (section 13).

import { createHash } from "node:crypto";

export const sha256 = (...parts) => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
};
export const sha256hex = (...parts) => sha256(...parts).toString("hex");

const LEAF = Buffer.from([0]);
const NODE = Buffer.from([1]);

export const leafHash = (bytes) => sha256(LEAF, bytes);
export const nodeHash = (left, right) => sha256(NODE, left, right);

/** A tree that grows leaf by leaf and keeps only the hashes of its perfect subtrees. */
export class Tree {
  constructor() {
    this.size = 0;
    this.stack = []; // [height, hash], heights falling
  }

  append(bytes) {
    let height = 0;
    let hash = leafHash(bytes);
    while (this.stack.length > 0 && this.stack[this.stack.length - 1][0] === height) {
      hash = nodeHash(this.stack.pop()[1], hash);
      height += 1;
    }
    this.stack.push([height, hash]);
    this.size += 1;
  }

  root() {
    if (this.stack.length === 0) return sha256();
    let hash = this.stack[this.stack.length - 1][1];
    for (let i = this.stack.length - 2; i >= 0; i -= 1) hash = nodeHash(this.stack[i][1], hash);
    return hash;
  }
}

/** The root that an inclusion proof leads to, or null where it has not the right length. Numbers are BigInt. */
export function rootOfInclusion(index, size, leaf, proof) {
  if (index >= size) return null;
  let place = index;
  let last = size - 1n;
  let hash = leaf;
  for (const sibling of proof) {
    if (last === 0n) return null;
    if (place % 2n === 1n || place === last) {
      hash = nodeHash(sibling, hash);
      while (place % 2n === 0n && place !== 0n) {
        place /= 2n;
        last /= 2n;
      }
    } else {
      hash = nodeHash(hash, sibling);
    }
    place /= 2n;
    last /= 2n;
  }
  return last === 0n ? hash : null;
}

/** The roots of both trees that a consistency proof leads to, or null where it has not the right length. */
export function rootsOfConsistency(older, newer, olderRoot, proof) {
  if (older < 1n || older > newer) return null;
  if (older === newer) return proof.length === 0 ? [olderRoot, olderRoot] : null;
  const path = [...proof];
  let place = older - 1n;
  let last = newer - 1n;
  while (place % 2n === 1n) {
    place /= 2n;
    last /= 2n;
  }
  // An older tree that is perfect is a node of the newer one, and is left out of the proof.
  let hash = place === 0n ? olderRoot : path.shift();
  if (hash === undefined) return null;
  let before = hash;
  for (const sibling of path) {
    if (last === 0n) return null;
    if (place % 2n === 1n || place === last) {
      before = nodeHash(sibling, before);
      hash = nodeHash(sibling, hash);
      while (place % 2n === 0n && place !== 0n) {
        place /= 2n;
        last /= 2n;
      }
    } else {
      hash = nodeHash(hash, sibling);
    }
    place /= 2n;
    last /= 2n;
  }
  return last === 0n ? [before, hash] : null;
}
