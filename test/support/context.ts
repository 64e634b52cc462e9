import pino from "pino";
import { z } from "zod";
import { loadSettings, type Variables } from "../../src/config/environment.ts";
import { openPipeline, type Sql } from "../../src/db/client.ts";
import type { HouseClient } from "../../src/houses/polling/client.ts";
import { createPasses, type Passes } from "../../src/pass/passes.ts";
import type { Job, JobContext } from "../../src/queue/job.ts";

const logLine = z.looseObject({ msg: z.string(), level: z.number() });

/** The context of a job in a test, and what the job did with it. */
export interface TestContext {
  context: JobContext;
  /** Log lines, parsed. */
  lines: z.infer<typeof logLine>[];
  /** Jobs it asked for, as "name payload". */
  enqueued: string[];
  /** Payloads that it named for the log. */
  followed: (string | null)[];
}

const NO_HOUSES: HouseClient = {
  fetch: () => Promise.reject(new Error("this test has no houses to ask")),
  close: () => Promise.resolve(),
};

/** For jobs that make no passes: it connects to nothing. */
export const NO_PASSES = createPasses(openPipeline("postgres://nobody@127.0.0.1:1/none", { name: "test" }));

/** A job's context over a real database; nothing is queued, what would be is listed. */
export function testContext(
  sql: Sql,
  options: {
    passes?: Passes;
    http?: HouseClient;
    env?: Record<string, string>;
    variables?: Variables;
    signal?: AbortSignal;
    ending?: AbortSignal;
  } = {},
): TestContext {
  const lines: TestContext["lines"] = [];
  const enqueued: string[] = [];
  const followed: TestContext["followed"] = [];
  const log = pino({ level: "trace" }, { write: (line) => void lines.push(logLine.parse(JSON.parse(line))) });
  return {
    lines,
    enqueued,
    followed,
    context: {
      sql,
      passes: options.passes ?? NO_PASSES,
      log,
      http: options.http ?? NO_HOUSES,
      settings: loadSettings(options.env ?? {}),
      variables: options.variables ?? (() => undefined),
      signal: options.signal ?? new AbortController().signal,
      ending: options.ending ?? new AbortController().signal,
      enqueue: <Next>(job: Job<Next>, payload: Next) => {
        enqueued.push(`${job.name} ${JSON.stringify(payload)}`);
        return Promise.resolve();
      },
      follow: (payloads) => void followed.push(...payloads),
      published: () => undefined,
    },
  };
}
