// Strict JSON and its one canonical form (section 1).
//
// Values are what JSON.parse gives, but for integers beyond 2^53 - 1 of a text that need not be canonical: these are
// BigInt, so that nothing is rounded unseen.

const MAX_DEPTH = 64;
const MAX_INTEGER_DIGITS = 40;
const MAX_NUMBER_CHARS = 1100;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const LONE = /[\ud800-\udfff]/u; // with the flag u, half of a pair alone

export class JsonFault extends Error {}

/** The text of UTF-8 bytes without a byte order mark; throws JsonFault. */
export function decodeText(bytes) {
  let text;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw new JsonFault("not UTF-8");
  }
  if (text.charCodeAt(0) === 0xfeff) throw new JsonFault("a byte order mark");
  return text;
}

/** The canonical form (RFC 8785); throws JsonFault where a value has none. */
export function canonical(value, depth = 0) {
  switch (typeof value) {
    case "string":
      if (LONE.test(value)) throw new JsonFault("a lone surrogate");
      return JSON.stringify(value);
    case "number":
      if (!Number.isFinite(value)) throw new JsonFault("a number that is not finite");
      return Object.is(value, -0) ? "0" : String(value);
    case "boolean":
      return value ? "true" : "false";
    case "bigint":
      throw new JsonFault("an integer beyond 2^53 - 1");
  }
  if (value === null) return "null";
  if (depth >= MAX_DEPTH) throw new JsonFault(`deeper than ${MAX_DEPTH}`);
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item, depth + 1)).join(",")}]`;
  const members = Object.keys(value)
    .sort() // UTF-16 code units, as RFC 8785 asks
    .map((key) => `${canonical(key)}:${canonical(value[key], depth + 1)}`);
  return `{${members.join(",")}}`;
}

/**
 * The value of bytes that are canonical JSON; throws JsonFault.
 *
 * What the ordinary reader lets pass (a key twice, 1.0, white space, a lone surrogate) is not in the canonical form of
 * what it read, so that one comparison refuses all of it.
 */
export function readCanonical(bytes) {
  const text = decodeText(bytes);
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new JsonFault("not JSON");
  }
  if (canonical(value) !== text) throw new JsonFault("not in canonical form");
  return value;
}

/** The value of bytes that are strict JSON in any form; throws JsonFault. */
export function readStrict(bytes) {
  const reader = new Reader(decodeText(bytes));
  const value = reader.value(0);
  reader.space();
  if (reader.at < reader.text.length) throw new JsonFault("more than one value");
  return value;
}

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  space() {
    while (" \t\n\r".includes(this.text[this.at] ?? "x")) this.at += 1;
  }

  value(depth) {
    this.space();
    const char = this.text[this.at];
    if (char === "{") return this.object(depth + 1);
    if (char === "[") return this.list(depth + 1);
    if (char === '"') return this.string();
    for (const [word, value] of [["null", null], ["true", true], ["false", false]]) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    return this.number();
  }

  enter(depth) {
    if (depth > MAX_DEPTH) throw new JsonFault(`deeper than ${MAX_DEPTH}`);
    this.at += 1;
    this.space();
  }

  object(depth) {
    this.enter(depth);
    const found = Object.create(null);
    if (this.take("}")) return found;
    for (;;) {
      this.space();
      if (this.text[this.at] !== '"') throw new JsonFault("a key is missing");
      const key = this.string();
      if (Object.hasOwn(found, key)) throw new JsonFault(`a key twice: ${key.slice(0, 80)}`);
      this.space();
      if (!this.take(":")) throw new JsonFault("a colon is missing");
      found[key] = this.value(depth);
      this.space();
      if (this.take("}")) return found;
      if (!this.take(",")) throw new JsonFault("an object is not closed");
    }
  }

  list(depth) {
    this.enter(depth);
    const found = [];
    if (this.take("]")) return found;
    for (;;) {
      found.push(this.value(depth));
      this.space();
      if (this.take("]")) return found;
      if (!this.take(",")) throw new JsonFault("a list is not closed");
    }
  }

  take(char) {
    if (this.text[this.at] !== char) return false;
    this.at += 1;
    return true;
  }

  string() {
    const pattern = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
    pattern.lastIndex = this.at;
    const match = pattern.exec(this.text);
    if (match === null) throw new JsonFault("a string that is not one");
    this.at = pattern.lastIndex;
    const value = JSON.parse(match[0]);
    if (LONE.test(value)) throw new JsonFault("a lone surrogate");
    return value;
  }

  number() {
    const pattern = /(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
    pattern.lastIndex = this.at;
    const match = pattern.exec(this.text);
    if (match === null) throw new JsonFault("not a value");
    this.at = pattern.lastIndex;
    const [text, whole, fraction, exponent] = match;
    if (fraction === undefined && exponent === undefined) {
      if (whole.replace("-", "").length > MAX_INTEGER_DIGITS) throw new JsonFault("an integer of too many digits");
      const exact = BigInt(whole);
      const near = Number(exact);
      return Number.isSafeInteger(near) ? near : exact;
    }
    if (text.length > MAX_NUMBER_CHARS) throw new JsonFault("a number of too many characters");
    const near = Number(text);
    if (!Number.isFinite(near)) throw new JsonFault("a number beyond every double");
    if (near === 0 && /[1-9]/.test(text.split(/[eE]/)[0])) throw new JsonFault("a number that rounds to zero");
    return Object.is(near, -0) ? 0 : near;
  }
}
