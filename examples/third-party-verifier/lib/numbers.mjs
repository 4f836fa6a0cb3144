// Exact numbers: money in picodollars, decimals, and rationals. Nothing here is a double.

const MONEY = /^(?:0|[1-9][0-9]{0,15})\.[0-9]{12}$/;
const DECIMAL = /^([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?$/;

/** Picodollars of a money text, or null where it is none. */
export function picodollars(text) {
  return typeof text === "string" && MONEY.test(text) ? BigInt(text.replace(".", "")) : null;
}

/** The money text of picodollars. */
export function moneyText(picos) {
  const digits = picos.toString().padStart(13, "0");
  return `${digits.slice(0, -12)}.${digits.slice(-12)}`;
}

export const divideUp = (num, den) => (num + den - 1n) / den;

/** A decimal as written: {digits: BigInt, exponent: BigInt}, its value digits * 10^exponent; null where it is none. */
export function decimal(text) {
  const match = DECIMAL.exec(text);
  if (match === null) return null;
  const [, sign, whole, fraction = "", exponent = "0"] = match;
  if (whole === "" && fraction === "") return null;
  const digits = BigInt(whole + fraction) * (sign === "-" ? -1n : 1n);
  return { digits, exponent: BigInt(exponent) - BigInt(fraction.length) };
}

/** The number that a decimal is (section 10); null where it is none, too large, or vanishes. */
export function numberOf(text) {
  const exact = decimal(text);
  if (exact === null) return null;
  const near = Number(text);
  if (/^[+-]?[0-9]+$/.test(text)) return Number.isSafeInteger(near) ? near + 0 : null;
  if (!Number.isFinite(near) || (near === 0 && exact.digits !== 0n)) return null;
  return near + 0;
}

/** The decimal that stands for a number in canonical JSON. */
export const decimalOf = (number) => decimal(String(number));

export const gcd = (a, b) => {
  let [x, y] = [a < 0n ? -a : a, b < 0n ? -b : b];
  while (y !== 0n) [x, y] = [y, x % y];
  return x;
};

/** A fraction of a decimal whose exponent is that of a double or small. */
export function fraction({ digits, exponent }) {
  return exponent >= 0n ? [digits * 10n ** exponent, 1n] : [digits, 10n ** -exponent];
}

const floorDiv = (num, den) => {
  const quotient = num / den;
  return num % den < 0n ? quotient - 1n : quotient;
};

/** num / den to six places, a half up; null where den is 0 (section 10). */
export function sixPlaces(num, den) {
  if (den === 0n) return null;
  const millionths = floorDiv(2n * num * 1000000n + den, 2n * den);
  const size = millionths < 0n ? -millionths : millionths;
  const digits = size.toString().padStart(7, "0");
  return `${millionths < 0n ? "-" : ""}${digits.slice(0, -6)}.${digits.slice(-6)}`;
}

/** A sum of rewards, exact; the mean in lowest terms. */
export class DecimalSum {
  constructor() {
    this.digits = 0n;
    this.exponent = 0n;
    this.count = 0;
  }

  add(number) {
    const { digits, exponent } = decimalOf(number);
    if (exponent < this.exponent) {
      this.digits *= 10n ** (this.exponent - exponent);
      this.exponent = exponent;
    }
    this.digits += digits * 10n ** (exponent - this.exponent);
    this.count += 1;
  }

  mean() {
    if (this.count === 0) return null;
    const [num, den] = fraction(this);
    const whole = den * BigInt(this.count);
    const common = gcd(num, whole);
    return [num / common, whole / common];
  }
}
