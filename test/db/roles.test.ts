import { randomBytes } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { connect } from "../../src/db/client.ts";
import { migrate } from "../../src/db/migrate.ts";
import { GRANTS, type Part, ROLES, SECRETS } from "../../src/db/roles/role-grants.ts";
import { applyRoles, listUnlisted, readRolesState } from "../../src/db/roles/roles.ts";
import { listLogins, withRole, withRoleOf } from "../../src/db/roles/take-role.ts";
import { createDatabase } from "../support/database.ts";

const AS_LISTED = { missing: [], lacking: [], beyond: [], rowRules: [], creatable: [] };
const DENIED = "42501";
/** Tables that only a worker may insert into, and no role may change. */
const FACTS = ["rounds", "forecast_sets", "score_sets", "score_revisions", "log_entries"];
/** What callers are shown, and what it was made from. */
const SHOWN = [
  "table_heads",
  "palettes",
  "published_readings",
  "model_snapshots",
  "accuracy_hours",
  "accuracy_days",
  "accuracy_periods",
  "payloads",
  "polls",
  "calibrations",
];

let database: Awaited<ReturnType<typeof createDatabase>>;
let owner: pg.Client;
beforeAll(async () => {
  database = await createDatabase();
  owner = await open(database.url);
});
afterAll(async () => {
  await owner.end();
  await database.drop();
});

async function open(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  await client.connect();
  return client;
}

/** The code with which each statement fails under a role; "done" if it does not. All is rolled back. */
async function asRole(part: Part, statements: readonly string[]): Promise<Record<string, string>> {
  const outcomes: Record<string, string> = {};
  for (const statement of statements) {
    await owner.query(`begin; set local role ${ROLES[part]}`);
    outcomes[statement] = await owner.query(statement).then(
      () => "done",
      (error: unknown) => (error instanceof pg.DatabaseError ? (error.code ?? "") : String(error)),
    );
    await owner.query("rollback");
  }
  return outcomes;
}

const every = (statements: readonly string[], outcome: string) =>
  Object.fromEntries(statements.map((statement) => [statement, outcome]));

/** Writes that touch no row: whether they are allowed is decided before. */
async function writesTo(tables: readonly string[], verbs: readonly ("insert" | "update" | "delete" | "truncate")[]) {
  const { rows } = await owner.query<{ name: string; column: string }>(
    `select distinct on (attrelid) attrelid::regclass::text as name, quote_ident(attname) as column
    from pg_attribute
    where attrelid = any($1::regclass[]) and attnum > 0 and not attisdropped and attgenerated = '' and attidentity = ''
    order by attrelid, attnum`,
    [tables],
  );
  return rows.flatMap(({ name, column }) => {
    const statement = {
      insert: `insert into ${name} (${column}) select ${column} from ${name} where false`,
      update: `update ${name} set ${column} = ${column} where false`,
      delete: `delete from ${name} where false`,
      truncate: `truncate ${name}`,
    };
    return verbs.map((verb) => statement[verb]);
  });
}

describe("the list of grants", () => {
  test("names every table and view, and none that is not there", async () => {
    expect(await listUnlisted(owner)).toEqual([]);
    const names = Object.keys(GRANTS);
    const { rows } = await owner.query("select name from unnest($1::text[]) name where to_regclass(name) is null", [
      names,
    ]);
    expect(rows).toEqual([]);
  });

  test("is what a migrated database has; what is granted beyond it is taken back, what is missing is given again", async () => {
    expect(await readRolesState(owner)).toEqual(AS_LISTED);
    await owner.query(
      `grant update on rounds to ${ROLES.api}; grant select (password) on auth.accounts to ${ROLES.worker}`,
    );
    const { rows } = await owner.query<{ name: string }>("select quote_ident(current_database()) as name");
    await owner.query(`
      revoke select on rounds from ${ROLES.api};
      grant temporary on database ${rows[0]?.name} to public, ${ROLES.worker};
      grant create on schema public to ${ROLES.console}`);
    await owner.query(`grant select on keys to ${ROLES.worker}`); // taking it back takes the columns that it has, too
    const { lacking, beyond, creatable } = await readRolesState(owner);
    expect([lacking.length, beyond.length, creatable]).toEqual([
      1,
      3,
      [
        `revoke create on schema public from ${ROLES.console}`,
        `revoke temporary on database ${rows[0]?.name} from public`,
        `revoke temporary on database ${rows[0]?.name} from ${ROLES.worker}`,
      ],
    ]);
    await applyRoles(owner, expect.fail);
    expect(await readRolesState(owner)).toEqual(AS_LISTED);
  });

  test("lets workers do what their files do", () => {
    const root = path.join(import.meta.dirname, "../..");
    // of functions that only surfaces call
    const unused = [
      "auth.sessions w",
      "auth.users w",
      "deposit_addresses a",
      "payment_app_nonces a",
      "payment_app_unknown_orders a",
    ];
    const found = new Set<string>();
    const seen = new Set<string>();
    const look = (file: string) => {
      if (seen.has(file)) return;
      seen.add(file);
      const text = readFileSync(file, "utf8");
      for (const [, verb = "", table = ""] of text.matchAll(
        /\b(insert into|update|delete from) ((?:auth\.)?[a-z_]+)\b/g,
      )) {
        const letter = { "insert into": "a", update: "w", "delete from": "d" }[verb] ?? "";
        if (table in GRANTS) found.add(`${table} ${letter}`);
      }
      for (const [, specifier = ""] of text.matchAll(/(?:from|import\() ?"(\.[^"]+\.ts)"/g))
        look(path.join(path.dirname(file), specifier));
    };
    for (const file of globSync("jobs/*.ts", { cwd: root })) look(path.join(root, file));
    look(path.join(root, "src/cli/run/worker.ts"));
    const refused = [...found].filter((one) => {
      const [table = "", letter = ""] = one.split(" ");
      return !GRANTS[table]?.worker?.replaceAll(/\([^)]*\)/g, "").includes(letter);
    });
    expect(found.size).toBeGreaterThan(60);
    expect(refused.toSorted()).toEqual(unused);
  });
});

describe("a role", () => {
  test.each<Part>(["api", "console", "read"])("%s writes no fact and nothing that is shown", async (part) => {
    const statements = await writesTo([...FACTS, ...SHOWN], ["insert", "update", "delete", "truncate"]);
    expect(await asRole(part, statements)).toEqual(every(statements, DENIED));
  });

  test.each<Part>(["ops", "worker"])("%s changes no fact and removes none", async (part) => {
    const statements = await writesTo(
      [...FACTS, "audit_log", "ledger_entries", "ledger_transactions"],
      ["update", "delete", "truncate"],
    );
    expect(await asRole(part, statements)).toEqual(every(statements, DENIED));
  });

  test("ops issues no forecast and makes no root", async () => {
    const statements = await writesTo(["forecast_sets", "log_entries"], ["insert"]);
    expect(await asRole("ops", statements)).toEqual(every(statements, DENIED));
  });

  test("worker, api and read cannot read sign-in data, and of keys no more than the api needs", async () => {
    for (const part of ["worker", "api", "read"] as const) {
      const columns = SECRETS.filter(([table]) => part !== "api" || table !== "keys");
      const statements = columns.map(([table, column]) => `select ${column} from ${table}`);
      expect(await asRole(part, statements)).toEqual(every(statements, DENIED));
      const whole = [...new Set(columns.map(([table]) => `select * from ${table}`))];
      expect(await asRole(part, whole)).toEqual(every(whole, DENIED));
    }
  });

  test("makes no tables, and only workers make days", async () => {
    const statements = ["create table public.mine (a integer)", "select make_day_partitions(current_date + 20, 1)"];
    for (const part of ["api", "console", "ops", "read"] as const) {
      expect(await asRole(part, statements)).toEqual(every(statements, DENIED));
    }
    expect(Object.values(await asRole("worker", statements))).toEqual([DENIED, "done"]);
  });

  test("that owns a table of days gets no code run with the rights of the owner", async () => {
    await owner.query(`begin; alter table polls owner to ${ROLES.worker}`);
    try {
      const made = owner.query("select make_day_partitions(current_date + 20, 1)");
      await expect(made).rejects.toThrow(`found polls of ${ROLES.worker}`);
    } finally {
      await owner.query("rollback");
    }
  });

  test("is taken by every connection of a URL, from its first statement on", async () => {
    const { url, why } = await withRoleOf("api", database.url);
    expect(why).toBeNull();
    const sql = connect(url, { name: "api", max: 1 });
    try {
      const [row] = await sql`select current_user as role`;
      expect(row).toEqual({ role: ROLES.api });
      await sql`reset role`;
      expect((await sql`select current_user as role`)[0]).toEqual({ role: ROLES.api });
      expect(await listLogins(owner)).toEqual([expect.objectContaining({ part: "api", isSuperuser: true })]);
    } finally {
      await sql.end();
    }
  });
});

describe("a server on which the schema's owner may not make roles", () => {
  const user = `limited_${randomBytes(4).toString("hex")}`;
  const name = `roundhouse_${user}_${inject("templateDatabase").slice(-8)}`;
  const url = new URL(database?.url ?? inject("databaseUrl"));
  url.pathname = name;
  url.username = user;
  url.password = "secret";
  beforeAll(async () => {
    await owner.query(`create role ${user} login password 'secret'`);
    await owner.query(`create database ${name} owner ${user}`);
  });
  afterAll(async () => {
    await owner.query(`drop database if exists ${name} with (force)`);
    await owner.query(`drop role if exists ${user}`);
  });

  test("works without them, prints what an administrator has to run, and then uses them", async () => {
    const printed: string[] = [];
    await migrate(url.href, (line) => printed.push(line));
    const advice = printed.find((line) => line.includes("administrator")) ?? "";
    for (const role of Object.values(ROLES)) expect(advice).toContain(`grant ${role} to "${user}"`);
    const refused = await withRoleOf("worker", url.href);
    expect(refused).toMatchObject({ url: url.href, isOwner: true });
    expect(refused.why).toContain(`grant ${ROLES.worker} to "${user}"`);

    for (const role of Object.values(ROLES)) await owner.query(`grant ${role} to ${user}`);
    await migrate(url.href, expect.fail);
    const mine = await open(url.href);
    try {
      expect(await readRolesState(mine)).toEqual(AS_LISTED);
      const worker = connect(withRole(url.href, ROLES.worker), { name: "worker", max: 1 });
      await worker`select make_day_partitions(current_date + 30, 1)`;
      await worker.end();
    } finally {
      await mine.end();
    }
  });

  test("prints what the owner of the database has to run where another user owns it", async () => {
    await owner.query(`alter database ${name} owner to current_user; grant temporary on database ${name} to public`);
    const printed: string[] = [];
    await migrate(url.href, (line) => printed.push(line));
    expect(printed).toEqual([`let the owner of the database run: revoke temporary on database ${name} from public`]);
  });

  test("uses a separate login for each part, which holds nothing but its part", async () => {
    const login = `${user}_api`;
    await owner.query(`create role ${login} login password 'secret' in role ${ROLES.api}`);
    try {
      const own = new URL(database.url);
      own.username = login;
      own.password = "secret";
      expect(await withRoleOf("api", own.href)).toMatchObject({ why: null, isOwner: false });
      expect((await withRoleOf("worker", own.href)).why).toContain("may not take the role");
      const sql = connect(own.href, { name: "api", max: 1 });
      await sql`set role none`;
      await expect(sql`delete from rounds`).rejects.toMatchObject({ code: DENIED });
      await sql.end();
    } finally {
      await owner.query(`drop role ${login}`);
    }
  });
});
