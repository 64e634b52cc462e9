import { beforeEach, expect, it } from "vitest";
import { listPeriodicTasks } from "../../jobs/periodic.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { testContext } from "../support/context.ts";
import { openTestDatabase } from "../support/database.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";

const { sql } = await openTestDatabase();

beforeEach(async () => {
  await applyHouses(sql, [
    houseEntry({ id: "alpha", tables: [tableEntry(), tableEntry({ market: "other", enabled: false })] }),
    houseEntry({ id: "beta", enabled: false }),
  ]);
  await sql`
    insert into alerts (kind, subject, text)
    values
      ('staff_webhook', 'webhook', 'x'), ('mail_server', 'smtp', 'x'), ('mail_refused', 'smtp', 'x'), ('mail_late', 'smtp', 'x'), ('disk', 'a:/', 'x'),
      ('calibration_failed', 'alpha/crash/other', 'x'), ('calibration_failed', 'alpha/crash/global', 'x'),
      ('calibration', 'alpha/crash/global', 'x'), ('calibration', 'alpha/crash/other', 'x'), ('calibration', 'beta/crash/global', 'x'),
      ('payload_differs', 'alpha/crash/other 2026-11-25T00:00:00Z', 'x'),
      ('payload_differs', 'beta/crash/global 2026-11-25T00:00:00Z', 'x')`;
  await sql`insert into mail_failures (next_try_at, reason) values (now(), 'x')`;
  await sql`insert into staff_webhook_failure (next_try_at, reason) values (now(), 'x')`;
  return () => sql`truncate alerts, mail_failures, staff_webhook_failure`;
});

/** Runs the task that closes alerts; returns the open ones. */
async function closeEnded(env: Record<string, string>): Promise<string[]> {
  const task = listPeriodicTasks().find(({ name }) => name === "close-alerts");
  await task?.run(testContext(sql, { env }).context);
  const open = await sql<{ name: string }[]>`
    select kind || ' ' || subject as name from alerts where closed_at is null order by 1`;
  return open.map(({ name }) => name);
}

const OTHERS = [
  "calibration alpha/crash/global",
  "calibration_failed alpha/crash/global",
  "disk a:/",
  "payload_differs alpha/crash/other 2026-11-25T00:00:00Z",
];

it("closes alerts of a service that is not configured any more, and of disabled tables and houses", async () => {
  expect(await closeEnded({})).toEqual(OTHERS);
  expect(await sql`select from mail_failures union all select from staff_webhook_failure`).toHaveLength(0);
});

it("keeps alerts of services that are configured", async () => {
  const env = {
    SMTP_URL: "smtp://mail.example",
    MAIL_FROM: "a@example.com",
    STAFF_WEBHOOK_URL: "https://example.com/x",
  };
  expect(await closeEnded(env)).toEqual(
    [...OTHERS, "mail_late smtp", "mail_refused smtp", "mail_server smtp", "staff_webhook webhook"].toSorted(),
  );
  expect(await sql`select from mail_failures union all select from staff_webhook_failure`).toHaveLength(2);
});
