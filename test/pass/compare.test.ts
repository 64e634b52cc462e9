import { beforeEach, expect, it } from "vitest";
import normalizeRounds from "../../jobs/normalize-rounds.ts";
import { keepPayloads } from "../../src/housekeeping/store.ts";
import { createPasses } from "../../src/pass/passes.ts";
import { testContext } from "../support/context.ts";
import { openTestDatabase } from "../support/database.ts";
import { forgetHouses } from "../support/houses.ts";
import { makeItem, makePayload, makeTable, type MadeTable } from "../support/make.ts";

const { sql, pipeline } = await openTestDatabase();
let table: MadeTable;
beforeEach(async () => {
  await forgetHouses(sql);
  await sql`delete from alerts`;
  table = await makeTable(sql);
  // of the hour before the last response, half lies before each payload
  for (const place of [0, 1]) {
    await makePayload(sql, table, { second: 1_200 + place * 1_800, items: [makeItem(place + 1, 1.5)] });
    await normalizeRounds.run({ house: table.house }, contextOf());
  }
});

function contextOf() {
  return testContext(sql, { passes: createPasses(pipeline) }).context;
}

const compare = () => normalizeRounds.run({ house: table.house, compare: true }, contextOf());

/** Writes a result past every guard, as a failing disk would. */
async function setResult(roundId: string, hundredths: number): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`update rounds set hundredths = ${hundredths} where table_id = ${table.id} and round_id = ${roundId}`;
  });
}

const openAlerts = () => sql`select subject from alerts where kind = 'payload_differs' and closed_at is null`;

it("names a payload that differs from its rounds, and is closed only once that payload is equal", async () => {
  for (let time = 0; time < 40; time += 1) expect(await compare()).toMatchObject({ compared: 1, differences: 0 });
  expect(await openAlerts()).toEqual([]);
  for (const id of ["1", "2"]) await setResult(id, 151);
  expect(await compare()).toMatchObject({ compared: 1, differences: 1 });
  const [alert] = await openAlerts();
  const subject = alert?.["subject"] as string;
  expect(subject).toMatch(new RegExp(`^${table.name} 20\\d\\d-.*Z$`));
  const [row] = await sql<{ id: string }[]>`
    select round_id as id
    from rounds
    where table_id = ${table.id}
      and received_at = ${subject.split(" ")[1] ?? ""}::timestamptz`;
  await setResult(row?.id === "1" ? "2" : "1", 150);
  // a random payload is the mended one in half of the cases
  for (let time = 0; time < 10; time += 1) expect(await compare()).toMatchObject({ differences: 1 });
  expect(await openAlerts()).toEqual([{ subject }]);
  await setResult(row?.id ?? "", 150);
  expect(await compare()).toMatchObject({ differences: 0 });
  expect(await openAlerts()).toEqual([]);
});

it("keeps the alert open when the day of its payload is dropped, until that payload is equal", async () => {
  for (const id of ["1", "2"]) await setResult(id, 151);
  await compare();
  const days = await sql<{ name: string; day: string }[]>`
    select distinct tableoid::regclass::text as name, (received_at at time zone 'UTC')::date::text as day
    from payloads`;
  for (const day of days) await keepPayloads(sql, { ...day, parent: "payloads" }, new AbortController().signal);
  await sql`delete from payloads`;
  expect(await compare()).toMatchObject({ compared: 1, differences: 1 });
  expect(await openAlerts()).toHaveLength(1);
  for (const id of ["1", "2"]) await setResult(id, 150);
  expect(await compare()).toMatchObject({ compared: 1, differences: 0 });
  expect(await openAlerts()).toEqual([]);
});

it("closes the alert about a payload that is no longer stored", async () => {
  for (const id of ["1", "2"]) await setResult(id, 151);
  await compare();
  expect(await openAlerts()).toHaveLength(1);
  await sql`delete from payloads`;
  expect(await compare()).toMatchObject({ compared: 0 });
  expect(await openAlerts()).toEqual([]);
});
