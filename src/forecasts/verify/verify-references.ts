import type { Transaction } from "../../db/client.ts";
import { reasonOf } from "../../errors.ts";
import type { Wrong } from "./check-round.ts";
import type { HourForecast } from "../accuracy/hour-facts-store.ts";
import { listSeenRounds, scoreAlong, scoredOf, takeIn, type SeenRound } from "../accuracy/reference-hours.ts";
import { listReferenceMarks, type ReferenceMark } from "../accuracy/reference-store.ts";
import { mergeReferenceSums, type ReferenceSums } from "../accuracy/reference-sums.ts";
import { emptyReferences, referencesFromJson, referencesToJson, type ReferencesJson } from "../accuracy/references.ts";
import type { VerifiedTable } from "./verify-store.ts";

const ROUNDS_PER_STRETCH = 1000;
const MARKS_PER_READ = 1000;

/** Rounds one after another, and what the references remembered before them. */
interface Stretch {
  memory: ReferencesJson;
  rounds: number;
  seqs: Float64Array;
  /** The color of each, and whether rounds were missing before it: 2 · color + 1 where they were. */
  colors: Uint8Array;
}

/** The on-time rounds of a table as the references saw them, nine bytes each; no mark is trusted. */
export type Course = readonly Stretch[];

/**
 * Replays the references over all on-time rounds of a table and holds each mark against what they remember there.
 * Gives the first mark that is not so, or the course that was replayed.
 */
export async function replayReferences(
  tx: Transaction,
  { id: tableId, name, bands, lastSeq }: VerifiedTable,
): Promise<{ course: Course } | { wrong: Wrong & { kind: "reference_mark"; id: string } }> {
  const memory = emptyReferences(bands.length);
  const course: Stretch[] = [];
  let [marks, next] = [await listReferenceMarks(tx, tableId, -1n, MARKS_PER_READ), 0];
  /** Checks the marks before a seq. */
  const checkMarks = async (beforeSeq: bigint | null) => {
    for (
      let mark = marks[next];
      mark !== undefined && (beforeSeq === null || mark.seq < beforeSeq);
      mark = marks[next]
    ) {
      const wrong = checkMark(mark, lastSeq, referencesToJson(memory));
      if (wrong !== null) return { kind: "reference_mark" as const, id: `${name} seq ${mark.seq}`, ...wrong };
      next += 1;
      if (next === MARKS_PER_READ) {
        [marks, next] = [await listReferenceMarks(tx, tableId, mark.seq, MARKS_PER_READ), 0];
      }
    }
    return null;
  };
  for (let afterSeq = 0n; ;) {
    const part = { tableId, bands, afterSeq, upToSeq: lastSeq };
    const [rounds = []] = await listSeenRounds(tx, [part], ROUNDS_PER_STRETCH);
    course.push(pack(referencesToJson(memory), rounds));
    for (const round of rounds) {
      // a mark at a seq stands after the round with it
      const wrong = (marks[next]?.seq ?? round.seq) < round.seq ? await checkMarks(round.seq) : null;
      if (wrong !== null) return { wrong };
      takeIn(memory, round);
      afterSeq = round.seq;
    }
    if (rounds.length < ROUNDS_PER_STRETCH) break;
  }
  const wrong = await checkMarks(null);
  return wrong === null ? { course } : { wrong };
}

/** The sums of the references over the forecasts that were scored, by feature, from the rounds alone. */
export function referencesOnCourse(
  course: Course,
  { bands }: VerifiedTable,
  forecasts: readonly HourForecast[],
): ReferenceSums {
  const scored = scoredOf(forecasts);
  const sums = new Map<string, ReferenceSums>();
  for (let from = 0; from < scored.length;) {
    const at = stretchOf(course, scored[from]!.cutoffSeq);
    const stretch = course[at];
    if (stretch === undefined) throw new Error("expected a replay that begins before every forecast, got an empty one");
    const end = course[at + 1]?.seqs[0] ?? Infinity;
    const within = scored.slice(from).filter(({ cutoffSeq }) => cutoffSeq < end);
    scoreAlong(sums, bands, referencesFromJson(stretch.memory), unpack(stretch), within);
    from += within.length;
  }
  return mergeReferenceSums(sums.values());
}

function checkMark({ seq, memory }: ReferenceMark, lastSeq: bigint, expected: ReferencesJson): Wrong | null {
  if (seq > lastSeq) return { expected: `marks up to seq ${lastSeq}`, found: `one at ${seq}` };
  try {
    const [want, have] = [expected, referencesToJson(referencesFromJson(memory))].map((json) => JSON.stringify(json));
    return want === have ? null : { expected: `a memory of ${want}`, found: `one of ${have}` };
  } catch (error) {
    return { expected: `a memory of ${JSON.stringify(expected)}`, found: reasonOf(error) };
  }
}

/** The last stretch that begins at or before a seq. */
function stretchOf(course: Course, seq: bigint): number {
  let [low, high] = [0, course.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((course[middle]?.seqs[0] ?? Infinity) <= seq) low = middle;
    else high = middle - 1;
  }
  return low;
}

function pack(memory: ReferencesJson, rounds: readonly SeenRound[]): Stretch {
  return {
    memory,
    rounds: rounds.length,
    seqs: Float64Array.from(rounds, ({ seq }) => Number(seq)),
    colors: Uint8Array.from(rounds, ({ color, afterGap }) => 2 * color + Number(afterGap)),
  };
}

function unpack({ seqs, colors, rounds }: Stretch): SeenRound[] {
  return Array.from({ length: rounds }, (_, at) => {
    const code = colors[at] ?? 0;
    return { seq: BigInt(seqs[at] ?? 0), color: Math.floor(code / 2), afterGap: code % 2 === 1 };
  });
}
