import { createThread, ThreadLimitError } from "../../../thread.ts";
import type { ReadStatement, StatementOptions } from "./parse-statement.ts";
import type { StatementTask } from "./statement-thread.ts";

const thread = createThread<StatementTask, ReadStatement>(new URL("statement-thread.ts", import.meta.url), {
  deadlineMs: 10_000,
  idleMs: 120_000,
  maxTasks: 8,
  heapMb: 128,
});

/**
 * Reads a bank statement in a thread, within 10 s and 128 MB: ISO 20022 XML if it begins with `<`, else CSV with a
 * header.
 */
export async function readStatement(text: string, options: StatementOptions): Promise<ReadStatement> {
  try {
    return await thread.run({ text, options });
  } catch (error) {
    if (!(error instanceof ThreadLimitError)) throw error;
    return { ok: false, problem: `the statement could not be read: ${error.message}; import it in smaller parts` };
  }
}
