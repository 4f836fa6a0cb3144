// Checkpoints and the keys that sign them (section 7).

import { FolderFault } from "../folder.mjs";
import { sha256hex, Tree } from "../merkle.mjs";
import { readCheckpoint, readNote, readVkey, signedBy } from "../notes.mjs";

const NAME = /^[0-9]{12,}\.note$/;

export class Checkpoints {
  constructor(report, folder, trust) {
    this.report = report;
    this.folder = folder;
    this.trust = trust; // a fingerprint, or null
    this.named = new Map();
    this.keys = new Map();
    this.firstKey = null;
    this.sizes = new Map();
    for (const [name, kind] of folder.list("checkpoints")) {
      if (NAME.test(name) && kind !== "folder") this.sizes.set(name, Number(name.slice(0, -5)));
    }
    this.wanted = new Set(this.sizes.values());
    this.roots = new Map([[0, new Tree().root()]]);
  }

  /** After each line, whether or not it can be read: the root where a checkpoint stands. */
  line(tree) {
    if (this.wanted.has(tree.size)) this.roots.set(tree.size, tree.root());
  }

  entry({ kind, body, where, index }) {
    const { report } = this;
    if (kind === "run.admitted" || kind === "run.resumed") this.#key(body.key, where);
    if (kind !== "checkpoint.made") return;
    report.look("checkpoints.files");
    const name = `${String(body.size).padStart(12, "0")}.note`;
    if (body.path !== `checkpoints/${name}` || body.size > index) {
      report.fail("checkpoints.files", `${where}: names ${body.path} of ${body.size} entries`);
      return;
    }
    this.named.set(name, { body, where });
    const root = this.roots.get(body.size);
    if (root !== undefined && root.toString("hex") !== body.root) {
      report.fail("checkpoints.head", `${where}: names another root at ${body.size} than the journal has`);
    }
    try {
      if (sha256hex(this.folder.read(body.path)) !== body.sha256) {
        report.fail("checkpoints.files", `${body.path} is not the file that an entry names`);
      }
    } catch (error) {
      if (!(error instanceof FolderFault)) throw error;
      report.fail("checkpoints.files", `${body.path} ${error.message}`);
    }
  }

  #key(stated, where) {
    const { report } = this;
    const vkey = readVkey(stated.vkey);
    report.hold(
      "key.stated", vkey !== null && vkey.fingerprint === stated.fingerprint,
      `${where}: states no key of its fingerprint`,
    );
    if (vkey !== null) this.keys.set(stated.vkey, vkey);
    const mark = `${stated.vkey}\n${stated.fingerprint}`;
    report.hold("key.same", (this.firstKey?.mark ?? mark) === mark, `${where}: has another key than the first opening`);
    this.firstKey ??= { mark, fingerprint: vkey?.fingerprint ?? null };
  }

  end(state, { blind, lines }) {
    const { report } = this;
    this.#trust();
    const sizes = [...this.sizes.entries()].sort((a, b) => a[1] - b[1]);
    const greatest = sizes.length > 0 ? sizes[sizes.length - 1][1] : 0;
    for (const [name, size] of sizes) {
      const last = size === greatest && size >= lines;
      if (!blind && lines > 0 && !this.named.has(name) && !last) {
        report.fail("checkpoints.files", `checkpoints/${name} is named by no entry`);
      }
      this.#file(name, size, state, lines);
    }
    if (lines === 0) return;
    report.look("checkpoints.last");
    const over = state.last?.kind === "run.ended" || blind;
    if (this.sizes.size === 0 || !sizes.some(([, size]) => size === lines)) {
      if (over) report.fail("checkpoints.last", `none covers all ${lines} entries`);
      else report.cannot("checkpoints.last", "the run is not over");
    }
  }

  #trust() {
    const { report, trust } = this;
    if (trust === null) report.cannot("key.trust", "nobody said whose key it should be");
    else if (this.firstKey === null) report.cannot("key.trust", "no opening states a key");
    else report.hold("key.trust", this.firstKey.fingerprint === trust, `the key is ${this.firstKey.fingerprint}`);
  }

  #file(name, size, state, lines) {
    const { report } = this;
    const place = `checkpoints/${name}`;
    let note;
    try {
      note = readNote(this.folder.read(place, 1 << 20));
    } catch (error) {
      if (!(error instanceof FolderFault)) throw error;
      report.fail("checkpoints.signature", `${place} ${error.message}`);
      return;
    }
    if (note === null) {
      report.fail("checkpoints.signature", `${place} is no signed note`);
      return;
    }
    if (this.keys.size === 0) report.cannot("checkpoints.signature", "no opening states a key");
    else {
      const signed = [...this.keys.values()].some((vkey) => signedBy(note, vkey));
      report.hold("checkpoints.signature", signed, `${place} is not signed by the run's key`);
    }
    report.look("checkpoints.head");
    const head = readCheckpoint(note.text);
    const say = (why) => report.fail("checkpoints.head", `${place} ${why}`);
    if (head === null) say("is no checkpoint");
    else if (head.size !== BigInt(size)) say(`covers ${head.size} entries`);
    else if (size > lines) say(`covers ${size} entries, and ${lines} stand in the journal`);
    else if (state.first?.run_id !== undefined && head.origin !== `proctor/run/${state.first.run_id}`) {
      say("is of another run");
    } else if (!this.roots.get(size)?.equals(head.root)) say("has another root than the journal");
  }
}
