// Manifests (section 3).

import { FolderFault } from "../folder.mjs";
import { JsonFault, canonical, readCanonical } from "../json.mjs";
import { sha256hex } from "../merkle.mjs";
import { isNumbered, isObject, isSha, isText, isTime, listOf, maybe, oneOf, open, shape } from "../types.mjs";

const isPlace = isNumbered("manifests/", "json");
const manifest = shape({
  format: oneOf(1), command: isText, requested: isObject, started: isTime,
  verdict: oneOf("pending", "admitted", "refused"), exit_status: maybe(oneOf(3, 5, 129, 130, 143)),
  refusals: listOf(open({ reason: isText })), waivers: shape({ requested: listOf(isText), used: listOf(isText) }),
  probes: isObject, design_sha256: maybe(isSha),
});

export class Manifests {
  constructor(report, folder, design) {
    this.report = report;
    this.folder = folder;
    this.design = design;
    this.named = new Set();
  }

  entry({ kind, body, where }, state) {
    if (kind !== "run.admitted" && kind !== "run.resumed") return;
    this.#name(body.manifest, where);
    for (const one of body.abandoned) this.#name(one, where);
    this.#bound(body.manifest.path, kind === "run.admitted" ? body.design_sha256 : state.first?.design_sha256);
  }

  #name({ path, sha256 }, where) {
    const { report } = this;
    report.look("manifests.bound");
    report.look("manifests.unbound");
    const say = (why) => report.fail("manifests.bound", `${where}: ${path} ${why}`);
    if (!isPlace(path)) say("is no place of a manifest");
    if (this.named.has(path)) say("is named twice");
    this.named.add(path);
    try {
      if (sha256hex(this.folder.read(path)) !== sha256) say("is not the file that is named");
    } catch (error) {
      if (!(error instanceof FolderFault)) throw error;
      say(error.message);
    }
  }

  /** The manifest at a place, or null and why not. */
  #read(path) {
    try {
      const value = readCanonical(this.folder.read(path));
      return manifest(value) ? [value, null] : [null, "has not the fields of a manifest"];
    } catch (error) {
      if (!(error instanceof FolderFault || error instanceof JsonFault)) throw error;
      return [null, error.message];
    }
  }

  #bound(path, design) {
    const { report } = this;
    const gone = ["folder", "nothing"].includes(this.folder.kind("manifests")) && this.folder.kind(path) === "nothing";
    if (!isPlace(path) || gone) {
      report.cannot("manifests.verdict", `${path} is not there, or no place of a manifest`);
      return;
    }
    const [value, why] = this.#read(path);
    const say = (seen) => report.fail("manifests.verdict", `${path} ${seen}`);
    report.look("manifests.verdict");
    if (value === null) {
      say(why);
      return;
    }
    const { requested, used } = value.waivers;
    if (value.verdict !== "admitted" || value.exit_status !== null) say(`says ${value.verdict}`);
    if (value.design_sha256 !== design) say("is of another design");
    if (value.refusals.some(({ reason }) => !used.includes(reason))) say("has a refusal that was not waived");
    if (used.some((reason) => !requested.includes(reason))) say("used a waiver that nobody asked for");
    const other = this.design && this.#otherwise(value.requested, this.design.value);
    if (other) say(`requested another ${other} than the design has`);
  }

  /** What was requested otherwise than the design has it: the stage, or what the command line selects of it. */
  #otherwise(requested, { stage, selection = {} }) {
    if (![undefined, null, stage.name].includes(requested.stage)) return "stage";
    const chosen = (value) => canonical(Array.isArray(value) ? value.map((each) => canonical(each)).sort() : value ?? []);
    const said = ["limit", "arms", "models"].filter((name) => Object.hasOwn(requested, name));
    return said.find((name) => chosen(requested[name]) !== chosen(selection[name]));
  }

  end() {
    const { report } = this;
    const standing = [];
    for (const [name, kind] of this.folder.list("manifests")) {
      const path = `manifests/${name}`;
      if (!isPlace(path) || kind === "folder") continue;
      standing.push(path);
      report.look("manifests.unbound");
      if (!this.named.has(path)) this.#unbound(path);
    }
    const numbers = new Set([...standing, ...this.named].filter(isPlace).map((path) => Number(path.slice(10, -5))));
    const most = [...numbers].reduce((a, b) => Math.max(a, b), 0);
    if (most !== numbers.size) report.fail("manifests.unbound", `${most - numbers.size} of ${most} manifests are missing`);
  }

  #unbound(path) {
    const { report } = this;
    const [value, why] = this.#read(path);
    const say = (seen) => report.fail("manifests.unbound", `${path} ${seen}`);
    if (value === null) {
      say(why);
      return;
    }
    const signal = value.refusals.some(({ reason }) => reason === "interrupted");
    if (value.verdict !== "refused" || value.refusals.length === 0) say(`says ${value.verdict}, and no entry names it`);
    else if (!(signal ? [129, 130, 143] : [3, 5]).includes(value.exit_status)) say(`has exit status ${value.exit_status}`);
  }
}
