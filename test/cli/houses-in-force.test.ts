import pino from "pino";
import { beforeEach, expect, it } from "vitest";
import { createHousesInForce } from "../../src/cli/run/houses-in-force.ts";
import type { Transaction } from "../../src/db/client.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { openTestDatabase } from "../support/database.ts";
import { forgetHouses, houseEntry, tableEntry } from "../support/houses.ts";

const { sql } = await openTestDatabase({ max: 3 });
const stored = houseEntry();
/** A change of a setting of its table. */
const changed = houseEntry({ tables: [tableEntry({ pause_ms: 7_000 })] });

beforeEach(async () => {
  await forgetHouses(sql);
  await applyHouses(sql, [stored]);
});

/** What is in force, why the process failed, and when the log first names a locked table. */
function startProcess(refresh = () => Promise.resolve()) {
  const isLocked = Promise.withResolvers<void>();
  const failed = Promise.withResolvers<string>();
  const log = pino({}, { write: (line) => (line.includes("is not applied yet") ? isLocked.resolve() : undefined) });
  const ending = new AbortController();
  const undos: (() => Promise<unknown>)[] = [];
  const life = {
    ending: ending.signal,
    fail: failed.resolve,
    onStop: (_: string, undo: () => Promise<unknown>) => undos.push(undo),
  };
  const houses = createHousesInForce(life, { sql, demo: { refresh }, file: "houses.yaml", log, lockedPauseMs: 1 });
  const end = async () => {
    ending.abort();
    for (const undo of undos) await undo();
  };
  return { ...houses, isLocked: isLocked.promise, failed: failed.promise, end };
}

const inForce = () => sql`
  select
    h.name,
    t.pause_ms
  from houses h
  join tables t on t.house_id = h.id`;

/** Runs work while another session keeps the tables locked, as an import does. */
async function whileLocked(work: (importing: Transaction) => Promise<unknown>): Promise<void> {
  await sql.begin(async (importing) => {
    await importing`select from table_heads for no key update`;
    await work(importing);
  });
}

it("starts with the stored houses while a table is locked", async () => {
  const { start, end } = startProcess();
  await whileLocked(async () => {
    await start([changed]);
    expect(await inForce()).toMatchObject([{ pause_ms: 5_000 }]);
    await end();
  });
});

it("stops the process when a file that waited at its start cannot be applied", async () => {
  let isFree = false;
  const refresh = () => (isFree ? Promise.reject(new Error("no free port")) : Promise.resolve());
  const { start, failed } = startProcess(refresh);
  await whileLocked(async () => {
    await start([changed]);
    isFree = true;
  });
  expect(await failed).toBe("houses.yaml cannot be applied: no free port");
});

it("gives up a file that waits for a locked table when a newer one is requested", async () => {
  const { reload, isLocked } = startProcess();
  await whileLocked(async () => {
    const older = reload(() => Promise.resolve([changed]));
    await isLocked;
    await reload(() => Promise.resolve([houseEntry({ name: "Newer" })]));
    await older;
  });
  expect(await inForce()).toMatchObject([{ name: "Newer", pause_ms: 5_000 }]);
});

it("leaves the newer file in force when an older one is read later", async () => {
  const { reload } = startProcess();
  const isRead = Promise.withResolvers<readonly ReturnType<typeof houseEntry>[]>();
  const older = reload(() => isRead.promise);
  await reload(() => Promise.resolve([houseEntry({ name: "Newer" })]));
  isRead.resolve([houseEntry({ name: "Older" })]);
  await older;
  expect(await inForce()).toMatchObject([{ name: "Newer" }]);
});

it("continues with a waiting file when a newer one has problems", async () => {
  const { reload, isLocked } = startProcess();
  let older = Promise.resolve();
  await whileLocked(async () => {
    older = reload(() => Promise.resolve([changed]));
    await isLocked;
    await expect(reload(() => Promise.reject(new Error("wrong")))).rejects.toThrow("wrong");
  });
  await older;
  expect(await inForce()).toMatchObject([{ pause_ms: 7_000 }]);
});
