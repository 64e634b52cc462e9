import { createHash } from "node:crypto";
import { checkExtends, openNote, type Checkpoint, type ReadLog } from "./checkpoint.ts";
import { DeclaredLogError } from "./errors.ts";

/** The path of the first entry of a log. */
export const FIRST_ENTRY = "tile/entries/000.p/1";

/** Characters of a reason that an error repeats. */
const LONGEST_REASON = 500;

/** What a client holds of a log, and what it reads now. */
export interface PresentLog {
  /** The first entry, as {@link FIRST_ENTRY} serves it. */
  bytes: Buffer;
  newest: Checkpoint;
  read: ReadLog;
  /** Everything that was seen, and the origins of the logs that were seen. */
  held: readonly Checkpoint[];
  origins: ReadonlySet<string>;
  logKey: string | undefined;
}

/**
 * The error of a log that operators declared in place of one that was seen: its first entry names the last checkpoint of
 * that log. Null if it names none, or that of a log that was not seen.
 * @throws Error if the entry is not in the log, the kept key did not sign what it names, or more was seen than it names
 */
export async function declaredError(present: PresentLog): Promise<DeclaredLogError | null> {
  const { bytes, newest, read, held, origins, logKey } = present;
  const entry = bytes.subarray(2, 2 + bytes.readUInt16BE(0));
  const leaf = createHash("sha256").update(Buffer.of(0)).update(entry).digest("base64");
  await checkExtends({ size: 1, root: leaf }, newest, read);
  const { kind, previous: note, reason } = JSON.parse(entry.toString()) as Record<string, unknown>;
  if (kind !== "log" || typeof note !== "string" || note === "") return null;
  const previous = openNote(note, logKey);
  if (previous.origin === undefined || !origins.has(previous.origin)) return null;
  for (const one of held) {
    const isNamed = one.size < previous.size || (one.size === previous.size && one.root === previous.root);
    if (!isNamed) await checkExtends(one, newest, read); // responses may have shown the new log
  }
  return new DeclaredLogError(String(reason).slice(0, LONGEST_REASON), { previous, newest });
}
