import { nextFormat, type FormatState, type Verdict } from "./format-watch.ts";

/** What changed of what is known of a feed's format. */
export interface FormatChange {
  tableId: number;
  from: FormatState;
  to: FormatState;
}

const UNKNOWN: FormatState = { badAnswers: 0, since: null };

/** Follows the formats of several feeds through the answers of a batch, from what is stored of them. */
export function followFormats(stored: readonly (FormatState & { tableId: number })[]) {
  const before = new Map<number, FormatState>(stored.map((one) => [one.tableId, one]));
  const after = new Map(before);
  return {
    /** Counts one more answer of a table, that arrived at `now`; gives whether its house is taken to have changed its format. */
    follow(tableId: number, verdict: Verdict, now: string): boolean {
      const next = nextFormat(after.get(tableId) ?? UNKNOWN, verdict, now);
      after.set(tableId, next);
      return next.since !== null;
    },
    changes(): FormatChange[] {
      return [...after].flatMap(([tableId, { badAnswers, since }]) => {
        const from = before.get(tableId) ?? UNKNOWN;
        const isSame = from.badAnswers === badAnswers && from.since === since;
        return isSame ? [] : [{ tableId, from, to: { badAnswers, since } }];
      });
    },
  };
}
