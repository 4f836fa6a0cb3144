// Where times contradict each other by more than a minute (section 5): clocks are set, so this is a note, and no finding.

const MINUTE = 60n * 1000000n;

/** Microseconds since 1970 of a time of an entry or a receipt. */
export const micros = (time) => BigInt(Date.parse(`${time.slice(0, 19)}Z`)) * 1000n + BigInt(time.slice(20, 26));

/** How the wall clock of a run goes, opening by opening. */
export class Clock {
  constructor(notes) {
    this.notes = notes;
    this.ahead = null; // by how many microseconds `time` is ahead of `mono` in this opening, least and most
    this.latest = null;
  }

  entry({ time, mono }, opens, where) {
    const now = micros(time);
    const ahead = now - BigInt(Math.floor(mono / 1000));
    if (opens) this.latest = null;
    if (opens || this.ahead === null) this.ahead = { least: ahead, most: ahead };
    if (ahead < this.ahead.least) this.ahead.least = ahead;
    if (ahead > this.ahead.most) this.ahead.most = ahead;
    if (this.ahead.most - this.ahead.least > MINUTE) {
      this.notes.push(`${where}: the wall clock goes off mono by more than a minute`);
      this.ahead = null; // said once for each time that it is set
    }
    if (this.latest !== null && now < this.latest - MINUTE) {
      this.notes.push(`${where}: the wall clock falls by more than a minute`);
    }
    if (this.latest === null || now > this.latest) this.latest = now;
  }
}

function told(leads, what) {
  const found = leads.filter((lead) => lead > MINUTE);
  if (found.length === 0) return [];
  const most = found.reduce((one, other) => (other > one ? other : one));
  return [`${found.length} receipts are dated ${what}, by up to ${(most + 500000n) / 1000000n} seconds`];
}

/**
 * What receipts say that entries contradict. `covers` has the time of the last entry that a checkpoint covers, by its
 * size; `namedAt` that of the entry which names a receipt, by its path. Either may lack one.
 */
export function contradictions(receipts, covers, namedAt) {
  const lead = (time, other) => (time && other ? micros(time) - micros(other) : 0n);
  return [
    ...told(receipts.map(({ covers: size, ended }) => lead(covers.get(size), ended)), "before an entry that their checkpoint covers"),
    ...told(receipts.map(({ path, ended }) => lead(ended, namedAt.get(path))), "after the entry that names them"),
  ];
}
