import type { CompletePassRows, PassResult } from "./state.ts";

/**
 * Joins consecutive passes on one table, to be written in one transaction and with one version: the rows of all, and the
 * last one. At most one of them issues a set: a payload that another unread one follows issues none.
 */
export function joinPasses(all: readonly CompletePassRows[], last: PassResult): PassResult {
  const [first = last.rows] = all;
  const isQuiet = all.every((rows) => rows.isQuiet);
  const formats = all.flatMap(({ format }) => format ?? []);
  const [format] = formats;
  return {
    state: { ...last.state, version: isQuiet ? last.state.version : first.version + 1n },
    rows: {
      ...last.rows,
      version: first.version,
      payloads: all.flatMap(({ payloads }) => payloads),
      marks: all.flatMap(({ marks }) => marks),
      rounds: all.flatMap(({ rounds }) => rounds),
      quarantine: all.flatMap(({ quarantine }) => quarantine),
      conflicts: all.flatMap(({ conflicts }) => conflicts),
      gaps: all.flatMap(({ gaps }) => gaps),
      lateNumbers: all.flatMap(({ lateNumbers }) => lateNumbers),
      shownGaps: all.flatMap(({ shownGaps }) => shownGaps),
      scoreSets: all.flatMap(({ scoreSets }) => scoreSets),
      forecastSet: all.findLast(({ forecastSet }) => forecastSet !== null)?.forecastSet ?? null,
      snapshot: all.findLast(({ snapshot }) => snapshot !== null)?.snapshot ?? null,
      reading: all.findLast(({ reading }) => reading !== null)?.reading ?? null,
      // of each notice and each hour the newest counts
      notices: [...new Map(all.flatMap(({ notices }) => notices).map((one) => [one.kind, one])).values()],
      audits: [...new Map(all.flatMap(({ audits }) => audits).map((one) => [one.hour, one])).values()],
      changesNotices: all.some((rows) => rows.changesNotices),
      format: format === undefined ? null : { from: format.from, to: (formats.at(-1) ?? format).to },
      isQuiet,
    },
    sequence: last.sequence,
  };
}
