// Files that entries name, what a public copy leaves out, and what stands in the folder beside (sections 2 and 9).

import { byCodePoint } from "../design.mjs";
import { FolderFault } from "../folder.mjs";
import { JsonFault, readCanonical } from "../json.mjs";
import { isCount, isNumbered, isPath, isSha, listOf, oneOf, shape } from "../types.mjs";

const VERDICTS = ["verifier/reward.json", "verifier/reward.txt", "verifier/ctrf.json", "verifier/junit.xml"];
const withheldShape = shape({
  blobs: listOf(shape({ blob: isSha, size: isCount })),
  files: listOf(shape({ path: isPath, sha256: isSha, size: isCount })), format: oneOf(1),
});
const isManifest = isNumbered("", "json");

export class Withheld {
  constructor(report, folder) {
    this.report = report;
    this.blobs = new Map();
    this.files = new Map();
    this.seen = new Set();
    this.unknown = false;
    if (folder.kind("withheld.json") === "nothing") return;
    try {
      this.#read(readCanonical(folder.read("withheld.json")));
    } catch (error) {
      this.unknown = true;
      if (error instanceof FolderFault) report.cannot("withheld.named", `withheld.json ${error.message}`);
      else if (error instanceof JsonFault) report.fail("withheld.named", `withheld.json ${error.message}`);
      else throw error;
    }
  }

  #read(value) {
    const rising = (names) => names.every((name, i) => i === 0 || byCodePoint(names[i - 1], name) < 0);
    const right = withheldShape(value) && rising(value.blobs.map(({ blob }) => blob)) && rising(value.files.map(({ path }) => path));
    if (!right) throw new JsonFault("has not the fields of section 9, sorted");
    for (const one of value.blobs) this.blobs.set(one.blob, one);
    for (const one of value.files) this.files.set(one.path, one);
  }

  /** An entry names a blob. */
  named(ref) {
    if (this.blobs.get(ref.blob)?.size === ref.size) this.seen.add(ref.blob);
  }

  /** After all entries: `attempts` and `quarantined` are what names files. */
  end(attempts, quarantined) {
    const { report } = this;
    report.look("withheld.named", this.blobs.size + this.files.size);
    for (const blob of this.blobs.keys()) {
      if (!this.seen.has(blob)) report.fail("withheld.named", `no entry names blob ${blob} with its size`);
    }
    if (this.files.size === 0) return;
    const named = new Map();
    for (const attempt of attempts) {
      for (const file of attempt.files.values()) named.set(`${attempt.admitted.folder}/${file.path}`, file);
    }
    for (const [path, one] of this.files) {
      const file = named.get(path) ?? quarantined.get(path);
      const right = file !== undefined && file.sha256 === one.sha256 && file.size === one.size && file.role !== "derived" &&
        !(named.has(path) && VERDICTS.includes(file.path));
      if (!right) report.fail("withheld.named", `${path} is not named so, or is not to be withheld`);
    }
  }
}

export class Files {
  constructor(report, folder, withheld) {
    this.report = report;
    this.folder = folder;
    this.withheld = withheld;
    this.quarantined = new Map();
    this.derived = new Map();
    this.named = new Set();
  }

  entry({ kind, body }) {
    if (kind === "run.recovered") for (const file of body.quarantined) this.quarantined.set(file.path, file);
    if (kind === "run.ended") for (const file of body.files) this.derived.set(file.path, file);
  }

  #file(path, file) {
    const { report, withheld } = this;
    this.named.add(path);
    if (withheld.files.has(path)) {
      if (this.folder.kind(path) !== "nothing") report.fail("withheld.named", `${path} is withheld, and stands`);
      return;
    }
    report.look("files.digests");
    const fault = this.folder.differs(path, file.size, file.sha256);
    if (fault === null) return;
    if (withheld.unknown) report.cannot("files.digests", "what is withheld is not known");
    else report.fail("files.digests", `${path} ${fault}`);
  }

  end(state, places) {
    for (const attempt of state.attempts.values()) {
      for (const file of attempt.files.values()) this.#file(`${attempt.admitted.folder}/${file.path}`, file);
    }
    for (const [path, file] of this.quarantined) this.#file(path, file);
    for (const [path, file] of this.derived) this.#file(path, file);
    this.withheld.end(state.attempts.values(), this.quarantined);
    if (state.design !== null) this.#unlisted(state, places);
  }

  #unlisted(state, places) {
    const folders = new Map(); // of what attempts have, and whether they have ended, so that all in it is named
    for (const [folder, attempt] of state.folders) {
      folders.set(folder, attempt.ended !== null);
      folders.set(folder.split("/").slice(0, 2).join("/"), true);
    }
    // the folder of an attempt that names another one stands with those of its trial: attempts.joined says so
    for (const { trial, row, admitted } of state.attempts.values()) {
      const own = trial === null ? "" : `trials/${state.trial(trial.id).name}/${admitted.number}`;
      if (trial !== null && !row && !folders.has(own)) folders.set(own, false);
    }
    for (const place of places) this.named.add(place);
    const files = new Set(["design.json", "journal.jsonl", "lock", "withheld.json"]);
    const tops = new Set(["manifests", "checkpoints", "packs", "blobs", "trials", "quarantine", "scratch"]);
    this.report.look("files.unlisted");
    const say = (path, kind) => this.report.fail("files.unlisted", `${path} is a ${kind} that no entry names`);
    for (const [name, kind] of this.folder.list("")) {
      if (name.startsWith(".")) continue;
      if (tops.has(name) ? kind !== "folder" : kind !== "file" || !(files.has(name) || this.named.has(name))) {
        say(name, kind);
      } else if (name === "manifests") this.#flat(name, isManifest, say);
      else if (name === "checkpoints") this.#flat(name, (one) => /^[0-9]{12,}\.(?:note|git\.json|drop\.json)$/.test(one), say);
      else if (name === "trials") this.#trials(folders, say);
      else if (["packs", "blobs", "quarantine"].includes(name)) this.#below(name, say);
    }
  }

  /** A folder whose files may stand by their names. */
  #flat(folder, known, say) {
    for (const [name, kind] of this.folder.list(folder)) {
      if (!name.startsWith(".") && (kind !== "file" || !known(name))) {
        say(`${folder}/${name}`, kind);
      }
    }
  }

  #trials(folders, say) {
    for (const [slug, kind] of this.folder.list("trials")) {
      const place = `trials/${slug}`;
      if (slug.startsWith(".")) continue;
      if (kind !== "folder" || !folders.has(place)) say(place, kind);
      else {
        for (const [number, inner] of this.folder.list(place)) {
          const own = `${place}/${number}`;
          if (number.startsWith(".")) continue;
          if (inner !== "folder" || !folders.has(own)) say(own, inner);
          else if (folders.get(own)) this.#below(own, say);
        }
      }
    }
  }

  #below(folder, say) {
    const rest = [folder];
    while (rest.length > 0) {
      const place = rest.pop();
      for (const [name, kind] of this.folder.list(place)) {
        const own = `${place}/${name}`;
        if (name.startsWith(".")) continue;
        if (kind === "folder") rest.push(own);
        else if (!this.named.has(own)) say(own, kind);
      }
    }
  }
}
