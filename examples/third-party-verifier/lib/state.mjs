// What the journal says so far, as far as more than one check asks it.

/** Of an attempt. `trial` is null where the design plans none of its id. */
export class Attempt {
  constructor(body, trial, opening, row) {
    this.id = body.attempt;
    this.admitted = body;
    this.trial = trial;
    this.opening = opening;
    this.row = row;
    this.agentStarted = null;
    this.agentEnded = null;
    this.verifierEnded = null;
    this.verifierWorld = false;
    this.graded = null;
    this.answers = 0;
    this.ended = null;
    this.endedIn = null;
    this.boundaries = [];
    this.sandboxes = [];
    this.files = new Map();
    this.exchanges = new Map(); // exchange id -> what is known of it
    this.asked = 0; // exchanges that were admitted
    this.settled = 0; // exchanges that ended
    this.lastEnd = null; // the latest exchange.ended that ended one in flight
    this.unknown = false;
    this.said = new Set(); // reasons of its exchanges
    this.charged = 0n;
    this.estimated = 0;
    this.tokens = new Map();
  }

  /** Bodies are needed until the attempt has ended. */
  forget() {
    this.sandboxes = null;
    this.boundaries = null;
    this.exchanges = null;
    this.agentStarted = this.agentStarted === null ? null : true;
  }
}

export class State {
  constructor(design) {
    this.design = design;
    this.entries = 0;
    this.opening = 0; // from 1
    this.last = null; // the entry before
    this.first = null; // body of entry 0
    this.attempts = new Map();
    this.openAttempts = new Set();
    this.folders = new Map(); // folder -> its attempt, but for question rows
    this.trials = new Map();
    this.finals = { finals: 0, pass: 0, fail: 0, ungraded: 0 };
    this.admittedInOpening = 0;
    this.drain = null; // cause of the opening's first run.draining
  }

  trial(id) {
    let found = this.trials.get(id);
    if (found === undefined) {
      found = { attempts: 0, last: null, replaced: 0, final: null, name: null, openingSeen: 0 };
      this.trials.set(id, found);
    }
    return found;
  }

  get complete() {
    return this.finals.finals === this.design.trialCount;
  }

  /** Entry 0 or a run.resumed begins an opening. */
  open(kind, body) {
    this.opening += 1;
    this.admittedInOpening = 0;
    this.drain = null;
    if (kind === "run.admitted") this.first = body;
  }
}
