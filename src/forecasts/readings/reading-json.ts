import { z } from "zod";
import { createModel } from "../model/model.ts";
import { emptyReading, type ReadingMemory } from "./reading-memory.ts";
import { withMoments, withoutMoments } from "./volatility.ts";

/** The version of this text; another version is rebuilt from the rounds. */
const VERSION = 1;

/** The memory as text: keys in the order of the schema below, colors as digits, numbers in their shortest exact form. */
export function readingToText({ model, consecutive, colors, ...memory }: ReadingMemory): string {
  const { streak, dependence, drift, volatility, edgeTest, tally } = memory;
  const { first, newest, seq, ...counted } = tally;
  return JSON.stringify({
    version: VERSION,
    thresholds: model.thresholds,
    edge: model.edge,
    consecutive,
    colors: colors.join(""),
    streak,
    dependence,
    drift,
    volatility: withoutMoments(volatility),
    edge_test: edgeTest,
    tally: { ...counted, seq: String(seq), first: textOf(first), newest: textOf(newest) },
  });
}

/** The memory from its text, exactly; null if the text is damaged or of another version. */
export function readingFromText(text: string): ReadingMemory | null {
  const parsed = memoryJson.safeParse(text);
  if (!parsed.success) return null;
  const { thresholds, edge, consecutive, colors, streak, dependence, drift, volatility, edge_test, tally } =
    parsed.data;
  const empty = emptyOf(thresholds, edge, consecutive);
  if (empty === null || !fits(dependence, empty.dependence) || !fits(drift, empty.drift)) return null;
  return {
    ...empty,
    colors: Uint8Array.from(colors, Number),
    streak,
    dependence,
    drift,
    volatility: withMoments(volatility),
    edgeTest: edge_test,
    tally,
  };
}

function emptyOf(thresholds: readonly number[], edge: number | null, consecutive: boolean): ReadingMemory | null {
  try {
    return emptyReading(createModel({ thresholds, edge }), { consecutive });
  } catch (error) {
    if (error instanceof RangeError) return null; // invalid bands or edge
    throw error;
  }
}

/** Whether every list is as long as that of a new memory with these bands. */
function fits(part: Readonly<Record<string, unknown>>, empty: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(part).every(([name, value]) => {
    const like = empty[name];
    return !Array.isArray(value) || (Array.isArray(like) && value.length === like.length);
  });
}

function textOf(value: bigint | null): string | null {
  return value === null ? null : String(value);
}

const count = z.int().nonnegative();
const big = z
  .string()
  .regex(/^\d{1,19}$/)
  .transform(BigInt);
const numbers = z.array(z.number());
/** Accepts only the canonical form: normalizing any other form might not end. */
const product = z.object({
  value: z
    .number()
    .min(1)
    .lt(2 ** 256),
  scale: z.int(),
});

const memoryJson = z
  .string()
  .transform((text, context): unknown => {
    try {
      return JSON.parse(text);
    } catch (error) {
      context.addIssue(String(error));
      return z.NEVER;
    }
  })
  .pipe(
    z.strictObject({
      version: z.literal(VERSION),
      thresholds: numbers,
      edge: z.number().nullable(),
      consecutive: z.boolean(),
      colors: z.string().regex(/^[0-7]{0,500}$/),
      streak: count.nullable(),
      dependence: z.strictObject({
        counts: numbers,
        transitions: numbers,
        trials: numbers,
        hits: numbers,
        previous: count.nullable(),
        gap: count.nullable(),
        weights: z.tuple([z.number(), z.number(), z.number()]),
        likelihood: product,
      }),
      drift: z.strictObject({
        rounds: count,
        reached: count,
        newerRounds: z.number(),
        newerReached: z.number(),
        reachEvidence: z.number(),
        counts: numbers,
        newerCounts: numbers,
        colorEvidence: z.number(),
      }),
      volatility: z.strictObject({
        rounds: count,
        sum: count,
        newest: z.array(count),
        means: z.array(count),
        spreads: z.array(count),
      }),
      edge_test: z.strictObject({
        rounds: count,
        reachedNear: count,
        reachedFar: count,
        wealth: product,
        most: product,
      }),
      tally: z.strictObject({
        hour: z.string().nullable(),
        rounds: count,
        proven: count,
        within: count,
        gaps: count,
        seq: big,
        first: big.nullable(),
        newest: big.nullable(),
      }),
    }),
  );
