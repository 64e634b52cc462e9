import { ApiError } from "../../api/errors.ts";
import { within } from "../../api/within.ts";
import type { Sql } from "../../db/client.ts";
import { listAnchors, type Anchor } from "../../forecasts/chain/anchors-store.ts";
import { reasonOf } from "../../errors.ts";
import { csvText } from "../../frame/csv.ts";
import type { Log } from "../../log.ts";
import { keeping } from "../keeping.ts";
import { PATIENCE_MS } from "../loader.ts";
import { readBriefly } from "../site-store.ts";

/** Roots of one answer: six weeks. */
const MOST_ROOTS = 1_000;
/** An hour gets its root once, so what was read is believed for long; the newest comes within a minute of being made. */
const BELIEVED_MS = 60_000;
const MOST_KEPT = 50;
/** Statements at a time, for whoever asks without a key. */
const MOST_AT_ONCE = 2;
const AFTER = /^(?!0000)\d{4}-\d{2}-\d{2}T\d{2}:00(?::00(?:\.0{1,7})?)?Z$/;

/** A page of roots, oldest first. */
export interface RootsPage {
  roots: Anchor[];
  /** What to ask for after it; null where it is the last one so far. */
  next: string | null;
}

/**
 * Gives the roots after an hour, at most 1,000.
 * @throws ApiError where a parameter is another one, or the database does not answer within 2 s
 */
export function rootsReader(sql: Sql, log: Log): (params: URLSearchParams) => Promise<RootsPage> {
  const kept = keeping<RootsPage>({ forMs: BELIEVED_MS, most: MOST_KEPT });
  let running = 0;

  async function read(after: string): Promise<RootsPage> {
    if (running >= MOST_AT_ONCE) throw unavailable();
    running += 1;
    const reading = readBriefly(sql, (tx) => listAnchors(tx, after === "" ? null : after, MOST_ROOTS + 1));
    void reading.catch(() => undefined).finally(() => (running -= 1));
    try {
      const found = await within(PATIENCE_MS, "PostgreSQL", reading);
      const roots = found.slice(0, MOST_ROOTS);
      return { roots, next: found.length > MOST_ROOTS ? (roots.at(-1)?.hour ?? null) : null };
    } catch (error) {
      log.warn(`the roots are not shown: ${reasonOf(error)}`);
      throw unavailable();
    }
  }

  return async (params) => {
    const unknown = [...params.keys()].filter((name) => name !== "after");
    if (unknown.length > 0) {
      const message = `${JSON.stringify(unknown[0])} is not known here; there is after`;
      throw new ApiError("unknown_parameter", { message });
    }
    const after = params.get("after") ?? "";
    if ((after !== "" && !isHour(after)) || params.getAll("after").length > 1) {
      throw new ApiError("invalid_parameter", { message: "expected after as an hour such as 2026-11-21T04:00Z" });
    }
    return kept.find(after) ?? kept.keep(after, await read(after));
  };
}

/** Whether it is an hour that there is, and that the database has too (it knows no year 0). */
function isHour(text: string): boolean {
  const at = AFTER.test(text) ? new Date(text) : null;
  return at !== null && !Number.isNaN(at.getTime()) && at.toISOString().slice(0, 13) === text.slice(0, 13);
}

/** Roots as a file, as `roundhouse export roots` writes them. */
export function rootsCsv({ roots }: RootsPage): string {
  return csvText([["hour", "size", "root"], ...roots.map(({ hour, size, root }) => [hour, String(size), root])]);
}

function unavailable(): ApiError {
  return new ApiError("temporarily_unavailable", { headers: { "Retry-After": "5" } });
}
