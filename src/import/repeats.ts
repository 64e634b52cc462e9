import { setImmediate } from "node:timers/promises";
import { copied } from "../text.ts";
import type { StagedRound } from "./staged-rounds.ts";

/** The rounds of lines, which a plan lists. */
export interface ListedRounds {
  list: (lines: Int32Array) => StagedRound[];
  lines: Int32Array;
  signal: AbortSignal;
}

/** Rounds per batch: a tenth of a second each, and little memory whatever the file's size. */
export const ROWS_AT_ONCE = 5_000;

/** Waits until other work of the process had a turn, such as an interruption. @throws the signal's reason if it is aborted */
export async function nextTurn(signal: AbortSignal): Promise<void> {
  await setImmediate();
  signal.throwIfAborted();
}

/** Lines whose id an earlier line has, in the order of the file; `ids` are theirs, and few others. */
export async function findRepeats(rounds: ListedRounds): Promise<{ ids: Set<string>; later: number[] }> {
  const ids = new Set<string>();
  const later: number[] = [];
  for await (const { line, roundId } of listSharing(rounds, (round) => round.roundId)) {
    if (ids.has(roundId)) later.push(line);
    else ids.add(copied(roundId));
  }
  return { ids, later };
}

/**
 * The rounds whose key another line has too, in the order of the file, and few others: keys are compared by fingerprints
 * of 4 bytes, so that memory does not grow with their length.
 */
export async function* listSharing(
  { list, lines, signal }: ListedRounds,
  keyOf: (round: StagedRound) => string | null,
): AsyncGenerator<StagedRound> {
  const inFile = lines.toSorted();
  const prints = new Uint32Array(inFile.length);
  let at = 0;
  for await (const rounds of batches({ list, lines: inFile, signal })) {
    for (const round of rounds) prints[at++] = fingerprint(keyOf(round));
  }
  const shared = repeated(prints);
  const sharing = inFile.filter((_, place) => shared.has(prints[place] ?? NONE));
  for await (const rounds of batches({ list, lines: sharing, signal })) yield* rounds;
}

async function* batches({ list, lines, signal }: ListedRounds): AsyncGenerator<StagedRound[]> {
  for (let from = 0; from < lines.length; from += ROWS_AT_ONCE) {
    await nextTurn(signal);
    yield list(lines.subarray(from, from + ROWS_AT_ONCE));
  }
}

/** The fingerprint of a round without a key. */
const NONE = 0;

/** 32 bits of a text (FNV-1a): of ten million, some ten thousand pairs have the same by chance. */
function fingerprint(text: string | null): number {
  if (text === null) return NONE;
  let print = 0x81_1c_9d_c5;
  for (let at = 0; at < text.length; at += 1) print = Math.imul(print ^ text.charCodeAt(at), 0x01_00_01_93);
  return print >>> 0 || 1;
}

function repeated(prints: Uint32Array): Set<number> {
  const shared = new Set<number>();
  let before = NONE;
  for (const print of prints.toSorted()) {
    if (print === before && print !== NONE) shared.add(print);
    before = print;
  }
  return shared;
}
