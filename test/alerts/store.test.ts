import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { queueAlertMail } from "../../src/alerts/mail-store.ts";
import { closeAlert, openAlert, syncAlerts } from "../../src/alerts/store.ts";
import { listAlertsToPost, noteAlertsPosted } from "../../src/alerts/webhook-store.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { LEVEL, readableLog } from "../queue/world.ts";
import { createDatabase } from "../support/database.ts";
import { lockWaits } from "../support/lock-waits.ts";

let database: Awaited<ReturnType<typeof createDatabase>>;
let sql: Sql;
beforeEach(async () => {
  database = await createDatabase();
  sql = connect(database.url, { name: "test" });
});
afterEach(async () => {
  await sql.end({ timeout: 1 });
  await database.drop();
});

const wrong = (...houses: string[]) => houses.map((subject) => ({ subject, text: `${subject} is silent` }));
const offline = { kind: "house_offline", subject: "alpha", text: "alpha has been silent for an hour" };

describe("an alert", () => {
  it("is logged once when it opens and once when it is over, however many processes say so", async () => {
    const { log, lines } = readableLog();
    await Promise.all([1, 2, 3, 4].map(() => openAlert(sql, log, offline)));
    await Promise.all([1, 2, 3, 4].map(() => closeAlert(sql, log, offline)));
    expect(lines).toMatchObject([
      { level: LEVEL.error, alert: "house_offline", subject: "alpha", msg: offline.text },
      { level: LEVEL.info, alert: "house_offline", subject: "alpha", msg: `recovered: ${offline.text}` },
    ]);
  });

  it("can open again after it was over", async () => {
    const { log, lines } = readableLog();
    for (const _ of [1, 2]) {
      await openAlert(sql, log, offline);
      await closeAlert(sql, log, offline);
    }
    expect(lines).toHaveLength(4);
    expect(await sql`select from alerts where closed_at is not null`).toHaveLength(2);
  });

  it("that is not open is not closed", async () => {
    const { log, lines } = readableLog();
    await openAlert(sql, log, offline);
    await closeAlert(sql, log, { kind: "house_offline", subject: "beta" });
    expect(lines).toHaveLength(1);
  });

  it("of a kind follows what is wrong now", async () => {
    const { log, lines } = readableLog();
    const changes = () =>
      lines.splice(0).map(({ level, subject }) => [level === LEVEL.error ? "+" : "-", subject].join(""));
    await openAlert(sql, log, { kind: "proof_mismatch", subject: "alpha", text: "another kind" });
    changes();
    await syncAlerts(sql, log, "house_offline", wrong("alpha", "beta"));
    expect(changes().toSorted()).toEqual(["+alpha", "+beta"]);
    await syncAlerts(sql, log, "house_offline", wrong("beta", "gamma"));
    expect(changes()).toEqual(["-alpha", "+gamma"]);
    await syncAlerts(sql, log, "house_offline", wrong("beta", "gamma"));
    expect(changes()).toEqual([]);
    await syncAlerts(sql, log, "house_offline", []);
    expect(changes().toSorted()).toEqual(["-beta", "-gamma"]);
    expect(await sql`select kind from alerts where closed_at is null`).toMatchObject([{ kind: "proof_mismatch" }]);
  });

  it.each([
    ["closed", () => syncAlerts(sql, readableLog().log, "house_offline", [])],
    ["noted as posted", async () => noteAlertsPosted(sql, (await listAlertsToPost(sql)).toReversed())],
  ])("is %s while it is mailed, with others, without a deadlock", async (_, change) => {
    // the order by time is neither that of the subjects nor that of the rows
    await sql`
      insert into alerts (kind, subject, text, opened_at)
      values
        ('house_offline', 'alpha', 'it is silent', now()),
        ('house_offline', 'zeta', 'it is silent', now() - interval '1 minute')`;
    const { both } = await sql.begin(async (tx) => {
      await tx`select from alerts where subject = 'zeta' for no key update`;
      const mailed = queueAlertMail(sql, ["ops@example.com"], null);
      await lockWaits(sql, 1);
      const changed = change();
      await lockWaits(sql, 2);
      return { both: Promise.allSettled([mailed, changed]) };
    });
    expect((await both).map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
  });
});
