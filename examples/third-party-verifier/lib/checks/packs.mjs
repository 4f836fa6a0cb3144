// Packs and blobs (section 6): each frame where its first naming says, and what it says it is.

import fs from "node:fs";
import zlib from "node:zlib";
import { FolderFault } from "../folder.mjs";
import { blobsOf } from "../kinds.mjs";
import { sha256hex } from "../merkle.mjs";
import { isPack } from "../types.mjs";

const MAX_CONTENT = 1 << 20;
const MAX_FRAME = 2 << 20;
const MAX_PACK = 256 << 20;

const CRC = new Int32Array(256).map((_, n) => {
  let c = n;
  for (let k = 0; k < 8; k += 1) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c;
});
function crc32(bytes) {
  let c = -1;
  for (const byte of bytes) c = CRC[(c ^ byte) & 255] ^ (c >>> 8);
  return (c ^ -1) >>> 0;
}

/** The content of bytes that are one gzip member and nothing else, of at most `most` bytes; else null. */
export function gunzip(bytes, most) {
  if (bytes.length < 18 || bytes[0] !== 0x1f || bytes[1] !== 0x8b || bytes[2] !== 8 || bytes[3] & 0xe0) return null;
  const flags = bytes[3];
  let at = 10;
  if (flags & 4) at += 2 + (at + 2 <= bytes.length ? bytes.readUInt16LE(at) : bytes.length);
  for (const flag of [8, 16]) {
    if (flags & flag) {
      const end = bytes.indexOf(0, at);
      if (end < 0) return null;
      at = end + 1;
    }
  }
  if (flags & 2) {
    if (at + 2 > bytes.length || (crc32(bytes.subarray(0, at)) & 0xffff) !== bytes.readUInt16LE(at)) return null;
    at += 2;
  }
  if (at + 8 > bytes.length) return null;
  let content;
  let used;
  try {
    const result = zlib.inflateRawSync(bytes.subarray(at), { maxOutputLength: Math.max(most, 1), info: true });
    content = result.buffer;
    used = result.engine.bytesWritten;
  } catch {
    return null;
  }
  const tail = at + used;
  if (tail + 8 !== bytes.length || content.length > most) return null;
  if (bytes.readUInt32LE(tail) !== crc32(content) || bytes.readUInt32LE(tail + 4) !== content.length) return null;
  return content;
}

export class Packs {
  constructor(report, folder, withheld) {
    this.report = report;
    this.folder = folder;
    this.withheld = withheld;
    this.frames = new Map(); // place -> what is said of the frame there
    this.ends = new Map(); // pack -> where its last frame ends
    this.current = 0;
    this.blobs = new Set();
    this.fd = null;
    this.fdOf = null;
    this.recent = new Map(); // contents of the entry at hand
  }

  entry({ body, where }) {
    this.recent.clear();
    for (const [name, ref] of blobsOf(body)) {
      this.withheld.named(ref);
      if (Object.hasOwn(ref, "pack")) this.#frame(ref, `${where}: ${name}`);
      else this.#loose(ref);
    }
  }

  #frame(ref, where) {
    const { report } = this;
    const place = `${ref.pack}:${ref.offset}`;
    const mark = `${ref.length} ${ref.stored_sha256} ${ref.encoding} ${ref.size} ${ref.blob}`;
    const known = this.frames.get(place);
    report.look("packs.frames");
    if (known !== undefined) {
      if (known !== mark) report.fail("packs.frames", `${where} names a frame in other words than before`);
      return;
    }
    this.frames.set(place, mark);
    const number = isPack(ref.pack) ? Number(ref.pack.slice(0, -5)) : null;
    const end = this.ends.get(ref.pack) ?? 0;
    const next = number === this.current ? ref.offset === end : number === this.current + 1 && ref.offset === 0;
    if (!next) report.fail("packs.frames", `${where} names a frame at ${place} that does not come next`);
    if (number === null) return;
    this.current = Math.max(this.current, number);
    this.ends.set(ref.pack, Math.max(end, ref.offset + ref.length));
    const large = ref.size > MAX_CONTENT || ref.length > MAX_FRAME || ref.offset + ref.length > MAX_PACK;
    if (large) {
      report.fail("packs.frames", `${where}: the frame at ${place} is too large`);
      return;
    }
    const fault = this.#differs(ref);
    if (fault !== null) this.#fault("packs.frames", `${where}: the frame at ${place} ${fault}`);
  }

  /** A body is not as it was named; where what is withheld is not known, nobody can tell why. */
  #fault(check, seen) {
    if (this.withheld.unknown) this.report.cannot(check, "what is withheld is not known");
    else this.report.fail(check, seen);
  }

  #differs(ref) {
    let stored;
    try {
      stored = this.#stored(ref);
    } catch (error) {
      if (!(error instanceof FolderFault)) throw error;
      return error.message;
    }
    if (this.withheld.blobs.has(ref.blob)) {
      if (stored.length !== ref.length) return "is cut short";
      if (stored.some((byte) => byte !== 0)) {
        this.report.fail("withheld.named", `packs/${ref.pack} has bytes of withheld blob ${ref.blob}`);
      }
      return null;
    }
    if (stored.length !== ref.length) return "is cut short";
    if (sha256hex(stored) !== ref.stored_sha256) return "has other bytes than are named";
    const content = ref.encoding === "raw" ? stored : gunzip(stored, ref.size);
    if (content === null || content.length !== ref.size || sha256hex(content) !== ref.blob) {
      return "has another content than is named";
    }
    this.recent.set(ref.blob, content);
    return null;
  }

  #stored(ref) {
    if (this.fdOf !== ref.pack) {
      this.close();
      this.fd = this.folder.open(`packs/${ref.pack}`);
      this.fdOf = ref.pack;
    }
    return this.folder.slice(this.fd, ref.offset, ref.length);
  }

  /** The content of a reference of the entry at hand, or null where it cannot be had. */
  content(ref) {
    if (!Object.hasOwn(ref, "pack") || !isPack(ref.pack) || this.withheld.blobs.has(ref.blob)) return null;
    const recent = this.recent.get(ref.blob);
    if (recent !== undefined || ref.length > MAX_FRAME || ref.size > MAX_CONTENT) return recent ?? null;
    return this.#differs(ref) === null ? (this.recent.get(ref.blob) ?? null) : null;
  }

  #loose(ref) {
    const { report } = this;
    if (ref.path !== `blobs/${ref.blob.slice(0, 2)}/${ref.blob}`) {
      report.look("blobs.files");
      report.fail("blobs.files", `${ref.path} is no place of blob ${ref.blob}`);
      return;
    }
    const mark = `${ref.path} ${ref.size}`;
    if (this.blobs.has(mark)) return;
    this.blobs.add(mark);
    report.look("blobs.files");
    if (this.withheld.blobs.has(ref.blob)) {
      if (this.folder.kind(ref.path) !== "nothing") report.fail("withheld.named", `${ref.path} is withheld, and stands`);
      return;
    }
    const fault = this.folder.differs(ref.path, ref.size, ref.blob);
    if (fault !== null) this.#fault("blobs.files", `${ref.path} ${fault}`);
  }

  close() {
    if (this.fd !== null) fs.closeSync(this.fd);
    this.fd = this.fdOf = null;
  }

  /** After the last entry: nothing stands in a pack behind its last frame. */
  end() {
    for (const [pack, end] of this.ends) {
      try {
        const size = this.folder.size(`packs/${pack}`);
        if (size > end) this.report.fail("packs.frames", `packs/${pack} has ${size - end} bytes that no entry names`);
      } catch (error) {
        if (!(error instanceof FolderFault)) throw error; // said of its frames
      }
    }
  }

  /** Places in the folder that are named: packs and blobs. */
  places() {
    const packs = [...this.ends.keys()].map((name) => `packs/${name}`);
    return new Set([...packs, ...[...this.blobs].map((mark) => mark.split(" ")[0])]);
  }
}
