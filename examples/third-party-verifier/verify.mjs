// node verify.mjs RUN [--key VKEY|FILE|sha256:HEX] [--json]
// node verify.mjs RECEIPT [--key KEY] [--json]
// node verify.mjs PROOF --since CHECKPOINT [--key KEY] [--json]
//
// Exit status: 0 all holds, 1 something does not or cannot be told, 2 there is nothing that can be read.

import fs from "node:fs";
import { FolderFault } from "./lib/folder.mjs";
import { readVkey } from "./lib/notes.mjs";
import { isReceipt, verifyConsistency, verifyReceipt } from "./lib/proofs.mjs";
import { verifyRun } from "./lib/run.mjs";

const USAGE = "usage: node verify.mjs RUN|RECEIPT|PROOF [--key VKEY|FILE|sha256:HEX] [--since CHECKPOINT] [--json]";
const MAX_FILE = 1 << 20;
const NOT_OF_THE_RUN = "a receipt does not tell whether its model is made up, and its run a part or the whole of a stage";

class Unreadable extends Error {}

function readArguments(words) {
  const found = { place: null, key: null, since: null, json: false };
  for (let i = 0; i < words.length; i += 1) {
    const option = /^--(key|since)(?:=(.*))?$/su.exec(words[i]);
    if (words[i] === "--json") found.json = true;
    else if (option !== null && (option[2] !== undefined || i + 1 < words.length)) {
      found[option[1]] = option[2] ?? words[(i += 1)];
    } else if (words[i].startsWith("-") || found.place !== null) throw new Unreadable(USAGE);
    else found.place = words[i];
  }
  if (found.place === null) throw new Unreadable(USAGE);
  return found;
}

/** A plain file's bytes, and one byte more than a proof may have where it is longer. */
function readFile(place) {
  const stat = fs.statSync(place, { throwIfNoEntry: false });
  if (!stat?.isFile()) throw new Unreadable(`${place} is no file`);
  const fd = fs.openSync(place, "r");
  try {
    const bytes = Buffer.alloc(MAX_FILE + 1);
    return bytes.subarray(0, fs.readSync(fd, bytes, 0, bytes.length, 0));
  } finally {
    fs.closeSync(fd);
  }
}

/** {fingerprint, vkey} that --key names, `vkey` null where it is a fingerprint alone; null without one. */
function readTrust(key) {
  if (key === null) return null;
  const read = (text) => {
    if (/^sha256:[0-9a-f]{64}$/.test(text)) return { fingerprint: text, vkey: null };
    const vkey = readVkey(text);
    return vkey === null ? null : { fingerprint: vkey.fingerprint, vkey };
  };
  const trust = read(key.trim()) ?? (key.trim() === "" || key.includes("\0") ? null : read(readFile(key).toString("utf8").trim()));
  if (trust === null) throw new Unreadable("--key names neither a verifier key, nor a file with one, nor a fingerprint");
  return trust;
}

function print(report, status, { marks, ...rest }, json) {
  const checks = report.checks();
  if (json) {
    const said = { checks, exit_status: status, marks, notes: report.notes, ...rest };
    process.stdout.write(`${JSON.stringify(said, null, 2)}\n`);
    return;
  }
  for (const { check, status: found, seen } of checks) process.stdout.write(`${found.padEnd(15)} ${check.padEnd(30)} ${seen}\n`);
  for (const note of report.notes) process.stdout.write(`note            ${note}\n`);
  const what = Object.entries(rest).map(([name, value]) => `${name} ${value}`).join(", ");
  process.stdout.write(`${[status === 0 ? "HOLDS" : "DOES NOT HOLD", ...marks].join(", ")}: ${what}\n`);
}

function verify({ place, key, since, json }) {
  const trust = readTrust(key);
  const stat = fs.statSync(place, { throwIfNoEntry: false });
  let report;
  let rest = { marks: [] };
  if (stat === undefined) throw new Unreadable(`${place}: nothing stands there`);
  if (stat.isFile()) {
    const bytes = readFile(place);
    if (bytes[0] === 0x7b) throw new Unreadable(`${place}: attestations are for proctor verify`);
    if (isReceipt(bytes)) {
      const result = verifyReceipt(bytes, trust);
      ({ report } = result);
      report.notes.push(NOT_OF_THE_RUN);
      if (result.found !== null) rest = { ...rest, run: result.found.run, trial: Object.values(result.found.extra.trial).join(" · ") };
    } else {
      if (since === null) throw new Unreadable("a proof of consistency needs --since and the older checkpoint");
      const result = verifyConsistency(bytes, readFile(since), trust);
      ({ report } = result);
      if (result.found !== null) rest = { ...rest, run: result.found.run };
    }
  } else {
    const result = verifyRun(place, trust?.fingerprint ?? null);
    ({ report } = result);
    rest = { marks: result.marks, run: result.runId, entries: result.entries };
  }
  const status = report.exitStatus(trust !== null);
  print(report, status, rest, json);
  return status;
}

function main(words) {
  try {
    return verify(readArguments(words));
  } catch (error) {
    if (!(error instanceof FolderFault || error instanceof Unreadable)) throw error;
    if (words.includes("--json")) {
      process.stdout.write(`${JSON.stringify({ checks: [], exit_status: 2, unreadable: error.message }, null, 2)}\n`);
    } else process.stderr.write(`${error.message}\n`);
    return 2;
  }
}

process.exitCode = main(process.argv.slice(2));
