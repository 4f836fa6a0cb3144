// node vectors.mjs FOLDER: what this program does with the test vectors of proctor (tests/vectors), file by file.
// Prints how many cases there were and each that came out otherwise; exit status 1 where one did.

import fs from "node:fs";
import path from "node:path";
import { checkBudgetRules, checkMarks } from "./lib/checks/design.mjs";
import { decisive, outcomes, readRewards } from "./lib/checks/grades.mjs";
import { Design, designFault, readRule } from "./lib/design.mjs";
import { canonical, JsonFault, readCanonical, readStrict } from "./lib/json.mjs";
import { leafHash, rootOfInclusion, rootsOfConsistency, Tree } from "./lib/merkle.mjs";
import { readCheckpoint, readNote, readVkey, signedBy } from "./lib/notes.mjs";
import { moneyText } from "./lib/numbers.mjs";
import { drawnBlocks, Stream } from "./lib/order.mjs";
import { Prices } from "./lib/prices.mjs";
import { verifyConsistency, verifyReceipt } from "./lib/proofs.mjs";
import { Report } from "./lib/report.mjs";

const MAX_LINE = 65535;
const folder = process.argv[2];
if (folder === undefined || !fs.existsSync(path.join(folder, "json.json"))) {
  console.error("usage: node vectors.mjs FOLDER, which is tests/vectors of proctor");
  process.exit(2);
}
let cases = 0;
const others = [];

function same(name, found, wanted) {
  cases += 1;
  const [left, right] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (left !== right) others.push(`${name}: ${left.slice(0, 200)}, not ${right.slice(0, 200)}`);
}

const tried = (act) => {
  try {
    return act();
  } catch (error) {
    if (error instanceof JsonFault) return undefined;
    throw error;
  }
};

const load = (name) => JSON.parse(fs.readFileSync(path.join(folder, name), "utf8"));

for (const one of load("json.json").cases) {
  let bytes = Buffer.from(one.text ?? "");
  if (one.hex !== undefined) bytes = Buffer.from(one.hex, "hex");
  else if (one.fill !== undefined) bytes = Buffer.from(`"${"a".repeat(one.fill - 2)}"`);
  else if (one.repeat !== undefined) bytes = Buffer.from(one.repeat[0].repeat(one.repeat[1]));
  const value = tried(() => readStrict(bytes));
  same(`json: ${one.name}`, value !== undefined && bytes.length <= MAX_LINE, one.read);
  if (one.read && one.canonical !== null) same(`json: ${one.name}, canonical`, canonical(value), one.canonical);
  if (one.as_double) same(`json: ${one.name}, as a line`, tried(() => canonical(readCanonical(bytes))), one.text);
}
for (const { ieee, text } of load("canonical.json").numbers) {
  same(`canonical: ${ieee}`, tried(() => canonical(Buffer.from(ieee, "hex").readDoubleBE(0))) ?? null, text);
}

const merkle = load("merkle.json");
const tree = new Tree();
merkle.roots.forEach((root, size) => {
  same(`merkle: root ${size}`, tree.root().toString("hex"), root);
  if (size < merkle.leaves.length) tree.append(Buffer.from(merkle.leaves[size], "hex"));
});
const hashes = (proof) => proof.map((one) => Buffer.from(one, "hex"));
for (const { index, size, proof } of merkle.inclusion) {
  const leaf = leafHash(Buffer.from(merkle.leaves[index], "hex"));
  const root = rootOfInclusion(BigInt(index), BigInt(size), leaf, hashes(proof));
  same(`merkle: ${index} in ${size}`, root?.toString("hex"), merkle.roots[size]);
}
for (const { old, new: size, proof } of merkle.consistency) {
  const roots = rootsOfConsistency(BigInt(old), BigInt(size), Buffer.from(merkle.roots[old], "hex"), hashes(proof));
  same(`merkle: ${old} to ${size}`, roots?.map((one) => one.toString("hex")), [merkle.roots[old], merkle.roots[size]]);
}

const notes = load("notes.json");
const holder = readVkey(notes.vkey);
for (const one of notes.notes) {
  const note = readNote(Buffer.from(one.note));
  const verdict = note === null ? "no note" : signedBy(note, holder) ? "signed" : "not signed";
  same(`notes: ${one.name}`, [verdict, note === null ? null : readCheckpoint(note.text) !== null], [one.verdict, one.checkpoint]);
}

for (const one of load("order.json")) {
  const stream = new Stream(one.seed, `order/${one.stage}/${one.model ?? "-"}`);
  same(`order: words of ${one.seed}`, one.words.map(() => stream.word().toString()), one.words);
  const named = (list) => list.map((name) => ({ name }));
  const design = {
    draw: { seed: one.seed }, stage: { name: one.stage, epochs: one.epochs }, tasks: named(one.tasks), arms: named(one.arms),
  };
  same(`order: blocks of ${one.seed}`, drawnBlocks(design, one.model), one.blocks);
}

for (const one of load("proofs.json").cases) {
  const vkey = one.key === null ? null : readVkey(one.key);
  const trust = one.key === null ? null : { fingerprint: vkey?.fingerprint ?? one.key, vkey };
  const bytes = Buffer.from(one.file);
  const { report } = one.since === null ? verifyReceipt(bytes, trust) : verifyConsistency(bytes, Buffer.from(one.since), trust);
  const found = Object.fromEntries(report.checks().map(({ check, status }) => [check, status]));
  const wanted = Object.fromEntries(Object.keys(found).map((check) => [check, one.checks[check]]));
  same(`proofs: ${one.name}`, [found, report.exitStatus(trust !== null)], [wanted, one.exit_status]);
}

for (const one of load("costs.json")) {
  const prices = new Prices(one.price);
  const text = (picos) => (picos === null ? null : moneyText(picos));
  for (const { usage, cost } of one.costs) same(`costs: ${one.name}`, text(prices.cost(usage)), cost);
  for (const { input_bound: input, output_bound: output, held } of one.worst_cases) {
    same(`costs: ${one.name}, at most`, text(prices.worst(input, output)), held);
  }
}

for (const one of load("designs.json")) {
  const report = new Report();
  let plan = [one.trials, one.blocks];
  if (designFault(one.design) !== null) report.fail("design.plan", "it has not the form of one");
  else {
    const design = new Design(one.design).plan();
    checkMarks(report, design);
    checkBudgetRules(report, design);
    plan = [design.trials.size, design.blocks.length];
  }
  const failed = report.checks().filter(({ status }) => status === "fail").map(({ check }) => check);
  same(`designs: ${one.name}`, [plan, failed.sort()], [[one.trials, one.blocks], [...one.failed].sort()]);
}

for (const one of load("grades.json")) {
  const rule = readRule(one.rule);
  const bytes = (name) => (one[name] === null ? null : Buffer.from(one[name], "base64"));
  const found = readRewards(bytes("reward.txt"), bytes("reward.json"));
  const may = outcomes(rule, one.ended, found, false);
  same(
    `grades: ${one.rule} of ${JSON.stringify([one["reward.txt"], one["reward.json"]]).slice(0, 80)}`,
    [may, canonical(found[0] ?? {}), decisive(rule, found[0])], [[[one.grade, one.reason]], canonical(one.rewards), one.reward],
  );
}

process.stdout.write(`${cases} cases, ${others.length} otherwise\n${others.map((one) => `${one}\n`).join("")}`);
process.exitCode = others.length > 0 ? 1 : 0;
