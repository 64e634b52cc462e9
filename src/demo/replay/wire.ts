import type { DemoResponse } from "../response.ts";
import type { RecordedRound } from "./rounds-file.ts";

/** A request as a wire format sees it. */
export interface WireRequest {
  method: string;
  url: URL;
  headers: Readonly<Record<string, string | undefined>>;
  /** At most 64 KiB; empty where there is none. */
  body: string;
}

/** The rounds that have been published by now. */
export interface PublishedRounds {
  count: number;
  /** The newest first: `limit` of them after `skipped`. */
  newest(limit: number, skipped?: number): PublishedRound[];
  /** The one with this id; null if it has not been published, or is not in the file. */
  find(id: string): PublishedRound | null;
  /** At most `limit` rounds that were published before this one, newest first; null if this one has not been published. */
  before(id: string, limit: number): PublishedRound[] | null;
}

/** A round as it is published. */
export interface PublishedRound extends RecordedRound {
  /** The time that is published with it. */
  at: Date;
}

/** How one house writes its rounds, as houses that call themselves so do. */
export interface WireFormat {
  /** What `--as` calls it. */
  name: string;
  /** The palette of houses.yaml with its colors. */
  palette: string;
  /** Usual time from one round to the next, for files without a clock. */
  usualMs: number;
  /** Each round has its own page: 404 until it was played. */
  byPage?: true;
  /** Its routes and what they return, in plain words, a line each. */
  serves: readonly string[];
  /** The lines that houses.yaml needs under `feed:`, if any. */
  feed?: readonly string[];
  /** The lines that houses.yaml needs under `headers:` of the house, if any. */
  headers?: readonly string[];
  /** The response to a request for one of its paths; null if nothing is served there. */
  respond(request: WireRequest, published: PublishedRounds): DemoResponse | null;
}

/** A whole number written plainly, between two bounds; null for anything else. */
export function wholeIn(value: unknown, min: number, max: number): number | null {
  const number = typeof value === "string" && /^\d{1,9}$/.test(value) ? Number(value) : value;
  return typeof number === "number" && Number.isInteger(number) && number >= min && number <= max ? number : null;
}

/**
 * A value as a page shows it: whole numbers without decimals, thousands with a comma.
 *
 * @example
 * pageText(18504) // => "185.04x"
 * pageText(200) // => "2x"
 * pageText(123456789) // => "1,234,567.89x"
 */
export function pageText(hundredths: number): string {
  const whole = String(Math.floor(hundredths / 100)).replaceAll(/\B(?=(\d{3})+$)/g, ",");
  const rest = hundredths % 100;
  return rest === 0 ? `${whole}x` : `${whole}.${String(rest).padStart(2, "0")}x`;
}

/** An HTML response. */
export function html(title: string, main: string, status = 200): DemoResponse {
  const body = `<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>${title}</title></head>\n<body>\n${main}\n</body>\n</html>\n`;
  return { status, contentType: "text/html; charset=utf-8", body };
}
