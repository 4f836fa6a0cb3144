// Receipts: that a checkpoint was pushed to where the operator is not alone (section 8).

import { createHash } from "node:crypto";
import { contradictions } from "../clocks.mjs";
import { FolderFault } from "../folder.mjs";
import { JsonFault, readCanonical } from "../json.mjs";
import { sha256hex } from "../merkle.mjs";
import { base64, readVkey } from "../notes.mjs";
import { isCount, isOne, isPath, isSha, isText, isTime, oneOf, shape } from "../types.mjs";

const NAME = /^([0-9]{12,})\.(git|drop)\.json$/;
const isCommit = (v) => isText(v) && /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(v);
const isBase64 = (v) => base64(v) !== null;
const snapshots = {
  git: shape({ ref: isText, commit: isCommit, objects: shape({ commit: isBase64, tree: isBase64 }) }),
  drop: shape({ path: isPath, sha256: isSha, size: isCount }),
};
const receiptShape = shape({
  format: oneOf(1), anchor: oneOf("git", "drop"), location: isText, origin: isText, size: isOne, sha256: isSha,
  return_code: () => true, started: isTime, ended: isTime, attempts: isOne, snapshot: () => true,
});

const sizeOf = (name) => Number(NAME.exec(name)[1]);
const padded = (size) => String(size).padStart(12, "0");
const seconds = (time) => Math.floor(Date.parse(time) / 1000);

function gitId(type, content, length) {
  const hash = createHash(length === 40 ? "sha1" : "sha256");
  return hash.update(`${type} ${content.length}\0`).update(content).digest("hex");
}

/** {author, committer}: who and when, of a commit's header; either may be undefined. */
function peopleOf(commit) {
  const found = {};
  const text = commit.toString("latin1");
  const end = text.indexOf("\n\n");
  for (const line of text.slice(0, end < 0 ? text.length : end).split("\n")) {
    const match = /^(author|committer) (.*) ([0-9]{1,15}) ([+-][0-9]{4})$/.exec(line);
    if (match !== null) found[match[1]] = { name: match[2], seconds: Number(match[3]) };
  }
  return found;
}

export class Anchors {
  constructor(report, folder, design) {
    this.report = report;
    this.folder = folder;
    this.planned = design?.value.anchor ?? null;
    this.wanted = this.planned === null ? [] : ["git", "drop"].filter((name) => Object.hasOwn(this.planned, name));
    this.named = new Set();
    this.namedAt = new Map(); // time of the entry that names a receipt, by its path
    this.others = new Set(); // receipts that are not the file that their entry names
    this.covers = new Map(); // time of the last entry that a checkpoint with a receipt covers, by its size
    for (const [name] of folder.list("checkpoints")) if (NAME.test(name)) this.covers.set(sizeOf(name), null);
    this.fingerprint = null;
    this.took = new Set();
    this.failed = new Set();
  }

  /** So many lines were read, and the last entry among them is of that time. */
  line(lines, time) {
    if (this.covers.has(lines)) this.covers.set(lines, time);
  }

  entry({ kind, body, where, index, time }) {
    const { report } = this;
    if (kind === "run.admitted" || kind === "run.resumed") {
      this.took.clear();
      this.failed.clear();
      this.fingerprint ??= readVkey(body.key.vkey)?.fingerprint ?? null;
    } else if (kind === "checkpoint.anchored") this.#anchored(body, where, index, time);
    else if (kind === "anchor.failed") this.failed.add(body.anchor);
    else if (kind === "block.admitted" && this.planned?.required === true) {
      const fit = this.wanted.every((name) => this.took.has(name) && !this.failed.has(name));
      report.hold("anchors.required", fit, `${where}: a block is admitted, and not every anchor took a checkpoint before`);
    }
  }

  #anchored(body, where, index, time) {
    const { report } = this;
    this.took.add(body.anchor);
    this.failed.delete(body.anchor);
    report.look("anchors.receipts");
    const say = (why) => report.fail("anchors.receipts", `${where}: ${body.path} ${why}`);
    if (body.path !== `checkpoints/${padded(body.size)}.${body.anchor}.json`) return say("is no place of its receipt");
    if (body.size > index) return say("is of a checkpoint that comes later");
    if (this.named.has(body.path)) return say("is named twice");
    this.named.add(body.path);
    this.namedAt.set(body.path, time);
    try {
      if (sha256hex(this.folder.read(body.path)) !== body.sha256) {
        this.others.add(body.path);
        say("is not the file that is named");
      }
    } catch (error) {
      if (!(error instanceof FolderFault)) throw error;
      say(error.message);
    }
    return undefined;
  }

  end(state, lines) {
    const { report } = this;
    const over = state.last?.kind === "run.ended";
    const found = [];
    for (const [name, kind] of this.folder.list("checkpoints")) {
      const match = NAME.exec(name);
      if (match === null) continue;
      const path = `checkpoints/${name}`;
      const size = sizeOf(name);
      report.look("anchors.receipts");
      if (over && !this.named.has(path) && size !== lines) report.fail("anchors.receipts", `${path} is named by no entry`);
      const receipt = this.#read(path, match[2], size);
      if (receipt !== null) found.push(receipt);
    }
    found.sort((a, b) => a.covers - b.covers);
    const latest = new Map();
    for (const receipt of found) {
      this.#receipt(receipt, state.first?.run_id ?? null);
      this.#chronology(receipt, latest.get(receipt.anchor));
      latest.set(receipt.anchor, receipt);
    }
    const own = found.filter(({ path }) => !this.others.has(path));
    report.notes.push(...contradictions(own, this.covers, this.namedAt));
    if (!over || this.planned?.required !== true || this.folder.kind(`checkpoints/${padded(lines)}.note`) === "nothing") return;
    for (const name of this.wanted) {
      const covered = found.some(({ anchor, covers }) => anchor === name && covers === lines);
      report.hold("anchors.covered", covered, `the last checkpoint has no receipt of ${name}`);
    }
  }

  #read(path, anchor, size) {
    const say = (why) => this.report.fail("anchors.receipts", `${path} ${why}`);
    try {
      const value = readCanonical(this.folder.read(path, 1 << 24));
      if (receiptShape(value) && snapshots[value.anchor](value.snapshot) && value.anchor === anchor) {
        return { ...value, path, covers: size };
      }
      say("has not the form of a receipt");
    } catch (error) {
      if (!(error instanceof FolderFault || error instanceof JsonFault)) throw error;
      say(error.message);
    }
    return null;
  }

  #receipt(receipt, runId) {
    const { report } = this;
    const { path, anchor, snapshot } = receipt;
    const hold = (check, holds, why) => report.hold(check, holds, `${path} ${why}`);
    hold("anchors.pushed", receipt.return_code === 0, "was pushed with another return code than 0");
    let note = null;
    try {
      note = this.folder.read(`checkpoints/${padded(receipt.covers)}.note`, 1 << 20);
    } catch (error) {
      if (!(error instanceof FolderFault)) throw error;
    }
    const place = this.planned?.[anchor];
    let identity = null;
    if (runId !== null && receipt.origin !== `proctor/run/${runId}`) identity = "is of another run";
    else if (place !== undefined && receipt.location !== place) identity = "is of another place than the design names";
    else if (receipt.size !== receipt.covers) identity = `is of a checkpoint of ${receipt.size} entries`;
    else if (note === null || sha256hex(note) !== receipt.sha256) identity = "is of a checkpoint that does not stand";
    else if (anchor === "git") {
      const people = peopleOf(base64(snapshot.objects.commit));
      const own = `proctor <${this.fingerprint}>`;
      if (people.author?.name !== own || people.committer?.name !== own) identity = "has a commit by another key";
    }
    hold("anchors.identity", identity === null, identity);
    if (note === null || runId === null) return;
    const fault = anchor === "git" ? this.#gitFault(snapshot, note, runId) : this.#dropFault(receipt, note, runId);
    hold("anchors.snapshot", fault === null, fault);
  }

  #gitFault({ ref, commit, objects }, note, runId) {
    const [commitBytes, tree] = [objects.commit, objects.tree].map(base64);
    const id = (type, content) => gitId(type, content, commit.length);
    if (ref !== `refs/proctor/${runId}`) return "is of another ref";
    if (id("commit", commitBytes) !== commit) return "has a commit of another id";
    if (!commitBytes.toString("latin1").startsWith(`tree ${id("tree", tree)}\n`)) return "has a commit of another tree";
    const one = Buffer.concat([Buffer.from("100644 checkpoint\0"), Buffer.from(id("blob", note), "hex")]);
    return tree.equals(one) ? null : "has a tree that is not of the checkpoint alone";
  }

  #dropFault({ covers, snapshot }, note, runId) {
    if (snapshot.path !== `${runId}/${padded(covers)}.note`) return "is of another place in the folder";
    return snapshot.sha256 === sha256hex(note) && snapshot.size === note.length ? null : "read something else back";
  }

  #chronology(receipt, before) {
    const { started, ended, anchor, snapshot } = receipt;
    let fault = null;
    if (ended < started) fault = "ended before it started";
    else if (before !== undefined && (started < before.started || ended < before.ended)) {
      fault = "is older than that of a smaller checkpoint";
    } else if (anchor === "git") {
      const people = Object.values(peopleOf(base64(snapshot.objects.commit)));
      const [from, to] = [seconds(started), seconds(ended)];
      if (people.some((one) => one.seconds < from || one.seconds > to)) fault = "has a commit that was not made in between";
    }
    this.report.hold("anchors.chronology", fault === null, `${receipt.path} ${fault}`);
  }
}
