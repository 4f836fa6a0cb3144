// Receipts of a trial and proofs of consistency, which need no run folder (section 13).

import { trialId } from "./design.mjs";
import { decodeText, JsonFault, readCanonical } from "./json.mjs";
import { classify } from "./kinds.mjs";
import { leafHash, rootOfInclusion, rootsOfConsistency } from "./merkle.mjs";
import { base64, readCheckpoint, readNote, readVkey, signedBy, wholeNumber } from "./notes.mjs";
import { PROOF_CHECKS, RECEIPT_CHECKS, Report } from "./report.mjs";
import { isOne, isText, listOf, maybe, oneOf, shape } from "./types.mjs";

const MAX_PROOF = 1 << 20;
const MAX_HASHES = 63;
const MAX_LINE = 65535;
const MAGIC = "c2sp.org/tlog-proof@v1";

const isCommit = (v) => isText(v) && /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(v);
const anchorShape = shape({ anchor: oneOf("git", "drop"), location: isText, commit: maybe(isCommit) });
const isAnchored = (v) => anchorShape(v) && (v.anchor === "git") === (v.commit !== null);
const isExtra = shape({
  line: isText, trial: shape({ task: isText, model: maybe(isText), arm: isText, epoch: isOne }),
  anchored: listOf(isAnchored), vkey: (v) => isText(v) && readVkey(v) !== null,
});

class ProofFault extends Error {}

/** {note, head, run} of the text of a run's checkpoint; throws ProofFault. */
function readHead(text) {
  const note = readNote(Buffer.from(text));
  const head = note === null ? null : readCheckpoint(note.text);
  if (head === null) throw new ProofFault("has no checkpoint");
  const run = /^proctor\/run\/([0-9A-Za-z_-]{1,64})$/.exec(head.origin)?.[1];
  if (run === undefined) throw new ProofFault("has a checkpoint of no run");
  return { note, head, run };
}

/** [lines before the blank line, text after it]; throws ProofFault. */
function split(bytes) {
  if (bytes.length > MAX_PROOF) throw new ProofFault(`is more than ${MAX_PROOF} bytes long`);
  const text = decodeText(bytes);
  const blank = text.indexOf("\n\n");
  if (blank < 0) throw new ProofFault("has no blank line before a checkpoint");
  return [text.slice(0, blank).split("\n"), text.slice(blank + 2)];
}

function readHashes(lines) {
  const hashes = lines.map(base64);
  if (hashes.length > MAX_HASHES || hashes.some((hash) => hash?.length !== 32)) {
    throw new ProofFault("has hashes that are none");
  }
  return hashes;
}

function readNumber(line, word) {
  const number = line?.startsWith(`${word} `) ? wholeNumber(line.slice(word.length + 1)) : null;
  if (number === null) throw new ProofFault(`has no line ${word}`);
  return number;
}

function readReceipt(bytes) {
  const [[magic, extraLine, indexLine, ...rest], text] = split(bytes);
  if (magic !== MAGIC) throw new ProofFault("does not begin as a receipt");
  const extraBytes = extraLine?.startsWith("extra ") ? base64(extraLine.slice(6)) : null;
  if (extraBytes === null) throw new ProofFault("has no line extra");
  const index = readNumber(indexLine, "index");
  const hashes = readHashes(rest);
  const extra = readCanonical(extraBytes);
  if (!isExtra(extra)) throw new ProofFault("has not the extra data of a trial");
  return { extra, index, hashes, ...readHead(text) };
}

/** Run `read`; where it finds no file of its form, say so, and that nothing else can be told. */
function formed(report, checks, read) {
  report.look(checks[0]);
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ProofFault || error instanceof JsonFault)) throw error;
    report.fail(checks[0], error.message);
    for (const check of checks.slice(1)) report.cannot(check, `the file ${error.message}`);
    return null;
  }
}

/** Why a line is no final of a trial at an index, or null. */
function recordFault(extra, index) {
  const line = Buffer.from(extra.line);
  if (line.length > MAX_LINE) return `is ${line.length} bytes long`;
  let entry;
  try {
    entry = readCanonical(line);
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    return error.message;
  }
  if (classify(entry) !== "entry" || entry.kind !== "trial.final") return "is no trial.final";
  if (BigInt(entry.seq) !== index) return `is entry ${entry.seq}`;
  const { task, model, arm, epoch } = extra.trial;
  return trialId(task, model, arm, epoch) === entry.body.trial ? null : "is of another trial";
}

/** The report on a receipt of a trial; `trust` is {fingerprint} or null. */
export function verifyReceipt(bytes, trust) {
  const report = new Report(RECEIPT_CHECKS);
  const found = formed(report, RECEIPT_CHECKS, () => readReceipt(bytes));
  if (found === null) return { report, found };
  const { extra, index, hashes, note, head } = found;
  const vkey = readVkey(extra.vkey);
  if (!signedBy(note, vkey)) report.fail("receipt.signed", "its key did not sign the checkpoint");
  else if (trust === null) report.cannot("receipt.signed", `nobody said whether the key should be ${vkey.fingerprint}`);
  else report.hold("receipt.signed", vkey.fingerprint === trust.fingerprint, `the key is ${vkey.fingerprint}`);
  const root = rootOfInclusion(index, head.size, leafHash(Buffer.from(extra.line)), hashes);
  report.hold("receipt.included", root?.equals(head.root) ?? false, "the hashes do not lead to the checkpoint's root");
  const fault = recordFault(extra, index);
  report.hold("receipt.record", fault === null, `the line ${fault}`);
  return { report, found };
}

/** The report on a proof of consistency and the older checkpoint; `trust` is {vkey} or null. */
export function verifyConsistency(bytes, since, trust) {
  const report = new Report(PROOF_CHECKS);
  const found = formed(report, PROOF_CHECKS, () => {
    const [[oldLine, ...rest], text] = split(bytes);
    const old = readNumber(oldLine, "old");
    const hashes = readHashes(rest);
    return { old, hashes, ...readHead(text), older: readHead(decodeText(since)) };
  });
  if (found === null) return { report, found };
  const { old, hashes, note, head, older } = found;
  if (trust === null) report.cannot("proof.signed", "nobody said whose key it should be");
  else if (trust.vkey === null) report.cannot("proof.signed", "a fingerprint is no key to check signatures with");
  else report.hold("proof.signed", signedBy(note, trust.vkey) && signedBy(older.note, trust.vkey), "the key did not sign both");
  const roots = rootsOfConsistency(older.head.size, head.size, older.head.root, hashes);
  const consistent =
    older.head.origin === head.origin && older.head.size === old && roots !== null &&
    roots[0].equals(older.head.root) && roots[1].equals(head.root);
  report.hold("proof.consistent", consistent, "the hashes do not lead from the older checkpoint to the newer");
  return { report, found };
}

/** Whether bytes begin as a receipt does, rather than as a proof of consistency. */
export const isReceipt = (bytes) => !bytes.subarray(0, 4).equals(Buffer.from("old "));
