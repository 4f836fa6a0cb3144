// C2SP signed notes, verifier keys and checkpoints (section 7).

import { createPublicKey, verify } from "node:crypto";
import { sha256, sha256hex } from "./merkle.mjs";

const MAX_NOTE = 262144;
const MAX_SIGNATURES = 64;
const NAME = /^[^\s+\p{Z}\u0085\u001c-\u001f]+$/u;
const BELOW_2_63 = 2n ** 63n;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The bytes of base64 in its one spelling, or null. */
export function base64(text) {
  if (typeof text !== "string") return null;
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? bytes : null;
}

/** The number of a decimal without leading zeros, as BigInt, or null where it is none below 2^63. */
export function wholeNumber(text) {
  if (!/^(?:0|[1-9][0-9]{0,18})$/.test(text)) return null;
  const value = BigInt(text);
  return value < BELOW_2_63 ? value : null;
}

/** {name, id, key, fingerprint} of a verifier key, or null. */
export function readVkey(text) {
  const match = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/su.exec(text);
  if (match === null || !NAME.test(match[1])) return null;
  const bytes = base64(match[3]);
  if (bytes === null || bytes.length !== 33 || bytes[0] !== 1) return null;
  const id = sha256(`${match[1]}\n`, bytes).subarray(0, 4);
  if (id.toString("hex") !== match[2]) return null;
  const raw = bytes.subarray(1);
  const der = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), raw]);
  let key;
  try {
    key = createPublicKey({ key: der, format: "der", type: "spki" });
  } catch {
    return null;
  }
  return { name: match[1], id, key, fingerprint: `sha256:${sha256hex(raw)}` };
}

/** {text, signatures: [{name, id, signature}]} of a signed note, or null where the bytes are none. */
export function readNote(bytes) {
  if (bytes.length > MAX_NOTE) return null;
  let whole;
  try {
    whole = utf8.decode(bytes);
  } catch {
    return null;
  }
  if (/[\u0000-\u0009\u000b-\u001f\u007f]/.test(whole)) return null;
  const split = whole.lastIndexOf("\n\n");
  if (split < 0 || !whole.endsWith("\n")) return null;
  const lines = whole.slice(split + 2).split("\n");
  lines.pop();
  if (lines.length === 0 || lines.length > MAX_SIGNATURES) return null;
  const signatures = [];
  for (const line of lines) {
    const match = /^\u2014 ([^ ]+) ([^ ]+)$/u.exec(line);
    if (match === null || !NAME.test(match[1])) return null;
    const data = base64(match[2]);
    if (data === null || data.length < 5) return null;
    signatures.push({ name: match[1], id: data.subarray(0, 4), signature: data.subarray(4) });
  }
  return { text: whole.slice(0, split + 1), signatures };
}

/** Whether one of the lines is of the key, and all that are hold. */
export function signedBy(note, vkey) {
  const own = note.signatures.filter(({ name, id }) => name === vkey.name && id.equals(vkey.id));
  const text = Buffer.from(note.text);
  const holds = ({ signature }) => signature.length === 64 && verify(null, text, vkey.key, signature);
  return own.length > 0 && own.every(holds);
}

/** {origin, size: BigInt, root: Buffer} of a note's text that is a checkpoint, or null. */
export function readCheckpoint(text) {
  const lines = text.split("\n");
  if (lines.length < 4 || lines.pop() !== "") return null;
  const [origin, number, hash] = lines;
  const size = wholeNumber(number);
  const root = base64(hash);
  if (origin === "" || size === null || root === null || root.length !== 32) return null;
  if (lines.slice(3).includes("")) return null;
  return { origin, size, root };
}
