import pino from "pino";
import { afterAll, beforeAll, expect, it } from "vitest";
import normalizeRounds from "../../jobs/normalize-rounds.ts";
import { createAccount } from "../../src/callers/account-store.ts";
import { createKey } from "../../src/callers/key-store.ts";
import { openPipeline } from "../../src/db/client.ts";
import { listen, type Listener } from "../../src/db/connections/listener.ts";
import { PUBLISHED_CHANNEL } from "../../src/db/connections/notifier.ts";
import { createPasses } from "../../src/pass/passes.ts";
import { roundhouse } from "../cli/world.ts";
import { testContext } from "../support/context.ts";
import { eventually } from "../support/eventually.ts";
import { makeGap, makeItem, makePayload, makeTable, type MadeTable } from "../support/make.ts";
import { openOpsWorld, type CookieClient, type OpsWorld } from "./world.ts";

let world: OpsWorld;
let admin: CookieClient;
let table: MadeTable;
let listener: Listener;
let notified = 0;

const REASON = "a reason of a test";

beforeAll(async () => {
  world = await openOpsWorld();
  admin = await world.as("admin");
  table = await makeTable(world.sql);
  await makePayload(world.sql, table, { second: 0, items: [2, 1].map((id) => makeItem(id, 1.5)) });
  await makePayload(world.sql, table, { second: 1, items: [4, 3].map((id) => makeItem(id, 1.5)) });
  await makePayload(world.sql, table, { second: 2, items: [2, 1].map((id) => makeItem(id, 2.5)) });
  await makePayload(world.sql, table, { second: 40, items: [makeItem(60, 2.5)] });
  for (const id of [51, 52, 53]) await makePayload(world.sql, table, { second: id, items: [makeItem(id, 1.5)] });
  const pipeline = openPipeline(world.databaseUrl, { name: "test" });
  const { context } = testContext(world.sql, { passes: createPasses(pipeline) });
  await normalizeRounds.run({ house: "alpha" }, context);
  await pipeline.end();
  const joined = Promise.withResolvers<void>();
  const on = { channels: [PUBLISHED_CHANNEL], notified: () => notified++, joined: () => joined.resolve() };
  listener = listen(world.databaseUrl, on, pino({ level: "silent" }));
  await joined.promise;
});
afterAll(async () => {
  await listener.close();
  await world.close();
});

/** The steps of a decision at `/ops`, and the same as commands. */
interface Decision {
  ops: [path: string, form?: Record<string, string>][];
  commands: string[][];
}

const idsOf = async (name: "conflicts" | "gaps" | "quarantine") => {
  const rows = await world.sql<{ id: bigint }[]>`select id from ${world.sql(name)} order by id desc limit 2`;
  return rows.map(({ id }) => String(id));
};

const openCircuit = () => world.sql`update poll_leases set circuit = 'open', opened_at = now()`;

const DECISIONS: Record<string, () => Promise<Decision>> = {
  "a gap": async () => {
    await makeGap(world.sql, table, 20n, 24n);
    const [id = ""] = await idsOf("gaps");
    return {
      ops: [[`/gaps/${id}/close`], [`/gaps/${id}/open`]],
      commands: [
        ["gap", "close", id],
        ["gap", "open", id],
      ],
    };
  },
  "the polls of a house": async () => ({
    ops: [["/houses/alpha/pause"], ["/houses/alpha/resume"]],
    commands: [
      ["house", "pause", "alpha"],
      ["house", "resume", "alpha"],
    ],
  }),
  "the probe of a house": async () => {
    await openCircuit();
    return { ops: [["/houses/alpha/probe"]], commands: [["house", "probe", "alpha"]] };
  },
  "the circuit of a house": async () => {
    await openCircuit();
    return { ops: [["/houses/alpha/close"]], commands: [["house", "probe", "alpha", "--close"]] };
  },
  "a conflict": async () => {
    const [one = "", two = ""] = await idsOf("conflicts");
    return {
      ops: [[`/conflicts/${one}/decide`, { take: "other" }]],
      commands: [["conflict", "decide", two, "--take", "other"]],
    };
  },
  "a round": async () => ({
    ops: [["/conflicts/revise", { table: table.name, round: "3", seen: "1.50", to: "void" }]],
    commands: [["round", "revise", "--table", table.name, "--round", "4", "--to", "void"]],
  }),
  "a notice": async () => ({
    ops: [
      ["/notices/write", { of: "alpha", text: "It moves." }],
      ["/notices/end", { of: table.name }],
    ],
    commands: [
      ["notice", "write", "It moves.", "--house", "alpha"],
      ["notice", "end", "--table", table.name],
    ],
  }),
  "items in quarantine": async () => {
    for (const round of ["77", "78"])
      await world.sql`
        insert into quarantine (table_id, payload_received_at, code, reason, round_id, item, item_sha256)
        select table_id, received_at, 'stuck_feed', 'a test', ${round}, '{}', ${round} from payloads limit 1`;
    const [one = "", two = ""] = await idsOf("quarantine");
    return {
      ops: [["/quarantine/decide", { ids: one, state: "released" }]],
      commands: [["quarantine", "release", two]],
    };
  },
  "the newest number of a table": async () => ({
    ops: [[`/tables/${table.name}/reset-newest`, { to: "53" }]],
    commands: [["table", "reset-newest", table.name, "--to", "52"]],
  }),
};

const UNPUBLISHED: typeof DECISIONS = {
  "an account": async () => {
    const account = await createAccount(world.sql, "ann@callers.example");
    const id = account.ok ? String(account.id) : "";
    return {
      ops: [[`/callers/${id}/suspend`], [`/callers/${id}/restore`]],
      commands: [
        ["account", "suspend", id],
        ["account", "restore", id],
      ],
    };
  },
  "a key": async () => {
    const account = await createAccount(world.sql, "bob@callers.example");
    const made = await Promise.all(
      ["one", "two"].map((name) => createKey(world.sql, { email: "bob@callers.example", plan: "Pro", name })),
    );
    const [one = "", two = ""] = made.map((key) => (key.ok ? String(key.id) : ""));
    // a text of digits is also the last four characters of a key
    await world.sql`update keys set last4 = 'same'`;
    return {
      ops: [[`/callers/${account.ok ? account.id : ""}/keys/${one}/revoke`]],
      commands: [["key", "revoke", `0${two}`]],
    };
  },
  "a member of staff": async () => {
    const email = "staff@example.com";
    const id = await world.makeOperator(email, "viewer");
    const of = `/people/${id}`;
    return {
      ops: [
        [`${of}/role`, { role: "data", was: "viewer" }],
        [`${of}/role`, { role: "viewer", was: "data" }],
        [`${of}/disable`],
        [`${of}/enable`],
        [`${of}/end-sessions`],
      ],
      commands: [
        ["ops-user", "set-role", email, "--role", "data"],
        ["ops-user", "set-role", email, "--role", "viewer"],
        ["ops-user", "disable", email],
        ["ops-user", "enable", email],
        ["ops-user", "end-sessions", email],
      ],
    };
  },
};

interface Entry {
  actor: string;
  action: string;
  target: string;
}

/** The entries that were added by some work, without what differs between two of the same kind. */
async function entriesOf(work: () => Promise<void>): Promise<object[]> {
  const [head] = await world.sql<{ seq: bigint }[]>`select seq from audit_head`;
  await work();
  const entries = await world.sql<Entry[]>`
    select actor, action, target, before, after, reason from audit_log where seq > ${head?.seq ?? 0n} order by seq`;
  return entries.map(({ actor, ...entry }) => {
    const text = JSON.stringify(entry).replaceAll(`"${actor}"`, '"ACTOR"');
    const plain = text.replaceAll(/\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|\+00)/g, "TIME").replaceAll(/\d+/g, "0");
    return JSON.parse(plain) as object;
  });
}

async function bySurface(decision: () => Promise<Decision>, afterStep: () => Promise<void>) {
  const { ops, commands } = await decision();
  const byOps = await entriesOf(async () => {
    for (const [path, form = {}] of ops) {
      const response = await admin.post(`/ops${path}`, { ...form, reason: REASON });
      expect(`${path} ${response.status}`).toBe(`${path} 303`);
      await afterStep();
    }
  });
  expect(byOps).toHaveLength(ops.length);
  await openCircuit();
  const env = { DATABASE_URL: world.databaseUrl };
  const byCommands = await entriesOf(async () => {
    for (const words of commands) {
      const { code, stderr } = await roundhouse([...words, "--reason", REASON, "--json"], { env });
      expect([words.join(" "), code, stderr]).toEqual([words.join(" "), 0, ""]);
      await afterStep();
    }
  });
  return { byOps, byCommands };
}

it.each(Object.entries(DECISIONS))(
  "/ops and a command record a decision on %s alike, and notify the API processes",
  async (_, decision) => {
    let seen = notified;
    const { byOps, byCommands } = await bySurface(decision, async () => {
      await eventually(() => notified > seen);
      seen = notified;
    });
    expect(byCommands).toEqual(byOps);
  },
);

it.each(Object.entries(UNPUBLISHED))("/ops and a command record a decision on %s alike", async (_, decision) => {
  const { byOps, byCommands } = await bySurface(decision, () => Promise.resolve());
  expect(byCommands).toEqual(byOps);
});
