// Types of section 1. A type is a predicate; an object's shape is a table of them, exact in its fields.

import { CAUSES, REASONS } from "./words.mjs";
import { picodollars } from "./numbers.mjs";

export const isCount = (v) => Number.isSafeInteger(v) && v >= 0;
export const isOne = (v) => Number.isSafeInteger(v) && v >= 1;
export const isInteger = (v) => Number.isSafeInteger(v);
export const isNumber = (v) => typeof v === "number";
export const isText = (v) => typeof v === "string";
export const isBool = (v) => typeof v === "boolean";
export const isSha = (v) => typeof v === "string" && /^[0-9a-f]{64}$/.test(v);
export const isMoney = (v) => picodollars(v) !== null;
export const isReason = (v) => REASONS.has(v);
export const isCause = (v) => CAUSES.has(v);
export const isObject = (v) => typeof v === "object" && v !== null && !Array.isArray(v);
export const isTrial = (v) => typeof v === "string" && /^[0-9a-f]{16}$/.test(v);
export const isAttempt = (v) => typeof v === "string" && /^[0-9a-f]{16}\/(?:0|[1-9][0-9]{0,8})$/.test(v);
export const isExchange = (v) =>
  typeof v === "string" && /^[0-9a-f]{16}(?:\/(?:0|[1-9][0-9]{0,8})){2}$/.test(v);
export const isRunId = (v) => typeof v === "string" && /^[0-9A-Za-z_-]{1,64}$/.test(v);
export const isPath = (v) =>
  typeof v === "string" && !v.includes("\0") && v.split("/").every((part) => part !== "" && part !== "." && part !== "..");
export const isNumbered = (folder, ending) => {
  const pattern = new RegExp(`^${folder}(?:[0-9]{4}|[1-9][0-9]{4,8})\\.${ending}$`);
  return (v) => typeof v === "string" && pattern.test(v) && !/(?:^|\/)0000\./.test(v);
};
export const isPack = isNumbered("", "pack");

/** A moment as RFC 3339 in UTC with six decimals; a day and a time of day that there are. */
export function isTime(v) {
  const match =
    typeof v === "string" && /^([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})\.[0-9]{6}Z$/.exec(v);
  if (!match) return false;
  const [year, month, day, hour, minute, second] = match.slice(1).map(Number);
  if (year < 1 || month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 59) return false;
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return day <= [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1];
}

export const oneOf = (...words) => (v) => words.includes(v);
export const maybe = (type) => (v) => v === null || type(v);
export const listOf = (type) => (v) => Array.isArray(v) && v.every(type);
export const within = (low, high) => (v) => Number.isSafeInteger(v) && v >= low && v <= high;

/** An object of exactly these fields. */
export const shape = (fields) => {
  const names = Object.keys(fields);
  return (v) =>
    isObject(v) &&
    Object.keys(v).length === names.length &&
    names.every((name) => Object.hasOwn(v, name) && fields[name](v[name]));
};

/** An object with these fields and perhaps others, whose own types are in `optional`, or nobody's. */
export const open = (fields, optional = {}) => (v) =>
  isObject(v) &&
  Object.keys(fields).every((name) => Object.hasOwn(v, name) && fields[name](v[name])) &&
  Object.keys(optional).every((name) => !Object.hasOwn(v, name) || optional[name](v[name]));

/** An object of exactly these fields, of which those in `optional` may be absent. */
export const closed = (fields, optional = {}) => (v) =>
  open(fields, optional)(v) && Object.keys(v).every((name) => Object.hasOwn(fields, name) || Object.hasOwn(optional, name));

/** An object of values of one type. */
export const mapOf = (type, key = () => true) => (v) =>
  isObject(v) && Object.keys(v).every((name) => key(name) && type(v[name]));
