/** Deeper responses are refused unparsed: no house nests ten levels, and later walks of the tree are recursive. */
const DEEPEST = 100;
/** Responses with more values are refused unparsed: 5,000 items of 20 fields have 100,000, and each costs some microseconds. */
const MOST_VALUES = 250_000;

/**
 * A number whose digits a JavaScript number does not preserve, such as 1.10 or 9007199254740993: it behaves as the number,
 * and prints as text and as JSON exactly as it was received.
 */
export class WireNumber extends Number {
  readonly #source: string;

  constructor(value: number, source: string) {
    super(value);
    this.#source = source;
  }

  override toString(): string {
    return this.#source;
  }

  toJSON(): unknown {
    return JSON.rawJSON(this.#source);
  }
}

declare global {
  /** Supported by JSON since Node 22, but missing in TypeScript's library. */
  interface JSON {
    rawJSON(text: string): unknown;
    parse(text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown): unknown;
  }
}

/**
 * Parses JSON without losing digits: numbers are JavaScript numbers if these represent exactly what was sent, else boxed
 * numbers (see {@link WireNumber}). The reason is a sentence on what was found instead.
 */
export function parseWireJson(text: string): { ok: true; value: unknown } | { ok: false; reason: string } {
  const { isTooDeep, isTooLong, isLossy } = scan(text);
  if (isTooDeep) return { ok: false, reason: `JSON nested deeper than ${DEEPEST} levels` };
  if (isTooLong) return { ok: false, reason: `JSON with more than ${MOST_VALUES} values` };
  try {
    // reviving each value with its source takes six times as long as parsing
    const value: unknown = isLossy ? JSON.parse(text, withSource) : JSON.parse(text);
    return { ok: true, value };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { ok: false, reason: isIncomplete(error.message, text) ? "incomplete JSON" : "a text that is not JSON" };
  }
}

function withSource(_: string, value: unknown, { source }: { source?: string }): unknown {
  const isLossy = typeof value === "number" && source !== undefined && String(value) !== source;
  return isLossy ? new WireNumber(value, source) : value;
}

/** Whether the parser reached the end of the text too early. */
function isIncomplete(message: string, text: string): boolean {
  const position = /at position (\d+)/.exec(message)?.[1];
  return /^(?:Unexpected end|Unterminated)/.test(message) || Number(position) >= text.trimEnd().length;
}

/** What a scan finds before parsing: nested too deep, too many values, and whether a number would lose a digit. */
function scan(text: string): { isTooDeep: boolean; isTooLong: boolean; isLossy: boolean } {
  let depth = 0;
  let values = 1;
  let inText = false;
  let isLossy = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (inText) {
      if (code === BACKSLASH) at += 1;
      else if (code === QUOTE) inText = false;
    } else if (code === QUOTE) inText = true;
    else if (code === COMMA) values += 1;
    else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      depth += 1;
      values += 1;
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth -= 1;
    else if (!isLossy && (code === MINUS || isDigit(code))) {
      const from = at;
      while (isOfNumber(text.charCodeAt(at + 1))) at += 1;
      const source = text.slice(from, at + 1);
      isLossy = String(Number(source)) !== source;
    }
    if (depth > DEEPEST || values > MOST_VALUES) break;
  }
  return { isTooDeep: depth > DEEPEST, isTooLong: values > MOST_VALUES, isLossy };
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}

/** A digit, a point, a sign or the letter of an exponent; NaN, past the end of the text, is none. */
function isOfNumber(code: number): boolean {
  return isDigit(code) || code === POINT || code === MINUS || code === PLUS || code === 0x65 || code === 0x45;
}

const COMMA = 0x2c;
const MINUS = 0x2d;
const PLUS = 0x2b;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const BACKSLASH = 0x5c;
const QUOTE = 0x22;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
