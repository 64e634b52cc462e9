import { randomBytes } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { expect, inject, onTestFailed } from "vitest";
import { z } from "zod";
import { connect, type Sql } from "../../src/db/client.ts";
import { ask, type Ready, roundhouse, startRoundhouse, untilReady } from "../cli/world.ts";
import { eventually } from "../support/eventually.ts";

/** For a machine that is busy with other things: forecasts are issued in time or not at all. */
const PATIENCE_MS = 120_000;

/** Instead of a status where no answer came. */
const CUT_OFF = 0;

/** How much of a process's log is shown where a test fails. */
const TOLD = 4_000;

/** A process that goes on, and where it answers. */
export interface Part extends Ready {
  process: ReturnType<typeof startRoundhouse>;
}

/** Starts an `api` or a `worker` and waits until it answers. */
export async function startPart(args: string[], env: Record<string, string>): Promise<Part> {
  const process = startRoundhouse([...args, "--json"], { env });
  onTestFailed(() => console.log(`${args.join(" ")} said at the end:\n${process.output.stderr.slice(-TOLD)}`));
  return { ...(await untilReady(process)), process };
}

/** Runs a command that must end well; gives what it printed. */
export async function must(args: string[], env: Record<string, string>): Promise<string> {
  const { code, stdout, stderr } = await roundhouse(args, { env });
  if (code !== 0) throw new Error(`roundhouse ${args.join(" ")} ended with ${code}: ${stderr}`);
  return stdout;
}

/** An account with a key; gives the key. */
export async function makeKey(env: Record<string, string>, email: string, plan: string): Promise<string> {
  await must(["account", "create", email], env);
  return (await must(["key", "create", "--account", email, "--plan", plan], env)).trim();
}

/** A database with nothing in it. */
export async function createEmptyDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  const name = `roundhouse_several_${randomBytes(6).toString("hex")}`;
  await using(inject("databaseUrl"), (sql) => sql`create database ${sql(name)}`);
  return {
    url: Object.assign(new URL(inject("databaseUrl")), { pathname: name }).href,
    drop: () => using(inject("databaseUrl"), async (sql) => void (await sql`drop database ${sql(name)} with (force)`)),
  };
}

/** A pool past everything that stands between. */
export async function using<Result>(url: string, work: (sql: Sql) => Promise<Result>): Promise<Result> {
  const sql = connect(url, { name: "test", max: 2 });
  try {
    return await work(sql);
  } finally {
    await sql.end({ timeout: 2 });
  }
}

const tables = z.looseObject({
  tables: z.array(z.looseObject({ rounds: z.array(z.looseObject({ round_id: z.string() })) })),
});

/** The number of the newest round that an API shows, once it may be asked and answers; 0 where there is none yet. */
export async function newest(api: Ready): Promise<number> {
  return eventually(async () => {
    const { status, body } = await ask(api, "/api/v1/rounds?house=bustabit");
    return status === 200 && Number(tables.parse(body).tables[0]?.rounds[0]?.round_id ?? 0);
  });
}

/** Waits until newer rounds are shown than now; gives after how many seconds. */
export async function untilNewer(api: Ready): Promise<number> {
  const [before, fromMs] = [await newest(api), performance.now()];
  await eventually(async () => (await newest(api)) > before, { timeoutMs: PATIENCE_MS });
  return (performance.now() - fromMs) / 1_000;
}

/** Waits until forecasts are issued and scored. */
export async function untilScored(sql: Sql): Promise<void> {
  await eventually(
    async () => {
      const [row] = await sql<{ scores: number }[]>`select count(*)::integer as scores from scores`;
      return (row?.scores ?? 0) > 0;
    },
    { timeoutMs: PATIENCE_MS },
  );
}

/** Ten calls at a time, to the APIs in turn; gives how many answers had which status. */
export async function callAll(apis: readonly Ready[], calls: number): Promise<Map<number, number>> {
  const counted = new Map<number, number>();
  for (let from = 0; from < calls; from += 10) {
    const wave = Array.from({ length: Math.min(10, calls - from) }, async (_, n) => {
      const api = apis[n % apis.length];
      if (api === undefined) throw new Error("there is no API to call");
      // a connection of its own: one that is kept may be closed in the moment in which it is used again
      const headers = { "x-api-key": api.api_key, connection: "close" };
      const call = async () => {
        const response = await fetch(`${api.url}/api/v1/games`, { headers }).catch(() => null);
        await response?.arrayBuffer();
        return { status: response?.status ?? CUT_OFF, waitS: Number(response?.headers.get("retry-after") ?? 1) };
      };
      const { status, waitS } = await call();
      if (status !== 429) return status;
      await setTimeout(waitS * 1_000); // what was called before may have used the burst up
      return (await call()).status;
    });
    for (const status of await Promise.all(wave)) counted.set(status, (counted.get(status) ?? 0) + 1);
  }
  return counted;
}

/**
 * Calls in the same way, and sees that every call is counted once: an honest 503 of a busy machine and a call without an
 * answer may have been counted or not, and nothing else may come back than that and 200.
 */
export async function expectCounted(sql: Sql, email: string, apis: readonly Ready[], calls: number): Promise<void> {
  const before = await countedCalls(sql, email);
  const {
    200: good = 0,
    429: _tooFast = 0, // not counted
    503: busy = 0,
    [CUT_OFF]: cutOff = 0,
    ...others
  } = Object.fromEntries(await callAll(apis, calls));
  expect(others).toEqual({});
  expect(good, `${busy} busy, ${cutOff} cut off`).toBeGreaterThan(0);
  const after = await countedCalls(sql, email);
  expect(after.facts).toBe(after.quota);
  expect(after.quota - before.quota).toBeGreaterThanOrEqual(good);
  expect(after.quota - before.quota).toBeLessThanOrEqual(good + busy + cutOff);
}

/** How many calls of an account are counted, by its quota of the month and by the meter's facts. */
async function countedCalls(sql: Sql, email: string): Promise<{ quota: number; facts: number }> {
  const [row] = await sql<{ quota: number; facts: number }[]>`
    select
      (select coalesce(sum(q.used), 0)::integer from quotas q where q.account_id = a.id and length(q.period) = 7) as quota,
      (select coalesce(sum(f.n), 0)::integer from usage_facts f where f.account_id = a.id) as facts
    from accounts a
    where a.email = ${email}`;
  if (row === undefined) throw new Error(`there is no account ${email}`);
  return row;
}

/** Everything that is stored fits together, as `roundhouse verify` says. */
export async function expectVerified(env: Record<string, string>): Promise<void> {
  expect(JSON.parse(await must(["verify", "--json"], env))).toMatchObject({ ok: true });
}
