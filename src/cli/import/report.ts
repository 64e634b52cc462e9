import type { Imported } from "../../import/import.ts";
import type { Survey } from "../../import/survey.ts";

/** Refused lines and kinds of refusals in the text output. */
const MOST_SHOWN = 20;

/** Why a row without an id is refused. */
const WITHOUT_ID = "expected a round_id, found nothing";

/** The result of a dry run in addition to the counts, as JSON; multipliers are strings, times ISO 8601 in UTC. */
export function summaryOf(imported: Imported) {
  const { read, inserted, refusedKinds, survey } = imported;
  const { ids, times, withoutTime, order, repeats, clock, thousands } = survey;
  return {
    rows: read,
    would_insert: inserted,
    ids: ids && { ...ids, missing: ids.missing === null ? null : Number(ids.missing) },
    times: { from: times?.from ?? null, to: times?.to ?? null, without: withoutTime },
    order: { listed: order.listed, decided_by: order.decidedBy, taken_by: order.takenBy, reversed: order.isReversed },
    duplicates: { in_file: repeats.inFile, stored: repeats.stored },
    refused: refusedKinds,
    clock,
    read_as_thousands: thousands,
  };
}

/** Prints the result of a dry run in addition to the counts. */
export function summaryLines(imported: Imported): string[] {
  const { ids, times, withoutTime, order, repeats } = imported.survey;
  const missing = ids?.missing ?? 0n;
  const rows = (count: number) => `${count} row${count === 1 ? "" : "s"}`;
  return [
    `rows     ${imported.read}, of which ${imported.inserted} would be inserted`,
    ids === null
      ? "ids      none"
      : `ids      ${ids.from} to ${ids.to}, oldest first${missing > 0n ? `; ${missing} ${missing === 1n ? "number between is" : "numbers between are"} not in the file` : ""}`,
    times === null
      ? "times    none"
      : `times    ${times.from} to ${times.to}${withoutTime > 0 ? `; ${rows(withoutTime)} without one` : ""}`,
    `order    ${orderSentence(order)}`,
    `repeats  ${repeats.inFile} of other lines, ${repeats.stored} of stored rounds`,
    ...imported.refusedKinds
      .slice(0, MOST_SHOWN)
      .map(
        ({ count, reason, lines }) =>
          `refused  ${count}: ${reason} (line ${lines.join(", ")}${count > lines.length ? ", …" : ""})`,
      ),
  ];
}

function orderSentence({ listed, decidedBy, takenBy, isReversed }: Survey["order"]): string {
  const how = {
    newest_first: "the file lists the newest first",
    newest_last: "the file lists the newest last",
    mixed: "the file lists its rounds in no clear order",
    unknown: "the order of the file's rounds is unknown",
  }[listed];
  const by = { option: " (from the option)", ids: " (from its ids)", times: " (from its times)", nothing: "" }[
    decidedBy
  ];
  const taken = { number: "by number", time: "by time", file: isReversed ? "from its end" : "as listed" }[takenBy];
  return `${how}${by}; rounds are taken ${taken}`;
}

/** Notes on an import or a dry run for the operator. */
export function notesOf(
  { read, survey, refused, refusedCount }: Imported,
  { numbered, zone }: { numbered: boolean; zone: string | null },
): string[] {
  const { order, clock, thousands } = survey;
  const notes: string[] = [];
  if (refusedCount > 0) {
    const lines = refused.slice(0, MOST_SHOWN).map(({ line }) => line);
    const more = refusedCount > lines.length ? ", …" : "";
    notes.push(`refused ${refusedCount} lines, the others are not held up by them: line ${lines.join(", ")}${more}`);
  }
  if (refusedCount > 0 && refusedCount === read && refused.every(({ reason }) => reason === WITHOUT_ID)) {
    notes.push("no row has an id: name their column with --round-id, or number the rows with --row-numbers");
  }
  if (numbered) {
    notes.push(
      "rows without ids: a row or a block that was entered twice looks like two rounds, and is imported twice",
    );
  }
  if (order.takenBy !== "number" && (order.listed === "newest_first" || order.listed === "mixed")) {
    notes.push(`${orderSentence(order)}; use --order to change it`);
  }
  if (clock.twice.count > 0) {
    notes.push(
      `${clock.twice.count} times come twice in ${zone ?? "UTC"}, when the clock is put back (line ${clock.twice.line}); the later one is taken, and times order no rows`,
    );
  }
  if (clock.never.count > 0) {
    notes.push(
      `${clock.never.count} times never come in ${zone ?? "UTC"}, when the clock is put forward (line ${clock.never.line}); they are read as if it had not been`,
    );
  }
  if (thousands.count > 0) {
    notes.push(
      `${thousands.count} values such as that of line ${thousands.line} have three digits after a comma and were read as thousands; where the comma is decimal, say --decimal ,`,
    );
  }
  return notes;
}
