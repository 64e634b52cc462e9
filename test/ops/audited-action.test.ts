import pino from "pino";
import { expect, it, onTestFinished } from "vitest";
import { loadSettings } from "../../src/config/environment.ts";
import { connect } from "../../src/db/client.ts";
import { auditedAction } from "../../src/ops/audited-action.ts";
import { createDatabase } from "../support/database.ts";

it("an audited action prepares its change before it takes a connection", async () => {
  const database = await createDatabase();
  const sql = connect(database.url, { name: "test", max: 1, use: "meter" });
  onTestFinished(async () => {
    await sql.end();
    await database.drop();
  });
  const action = auditedAction({
    name: "test.prepare",
    path: "/test",
    roles: [],
    isDangerous: false,
    // the only connection: a transaction around this would wait for itself
    prepare: () => sql<{ text: string }[]>`select 'prepared' as text`.then(([row]) => row?.text ?? ""),
    change: (_tx, _sent, _parts, target) => Promise.resolve({ ok: true, target, message: "", location: "/ops" }),
  });
  const log = pino({ level: "silent" });
  const parts = { sql, queues: null, liveWindowSeconds: 300, settings: loadSettings({}), log, mailKeys: [] };
  const visitor = { operatorId: "1", email: "ann@example.com", role: "admin", address: "::1", requestId: "r" } as const;
  expect(await action.run(parts, { visitor, params: {}, form: {} })).toMatchObject({ ok: true });
  expect(await sql`select action, target from audit_log`).toEqual([{ action: "test.prepare", target: "prepared" }]);
});
