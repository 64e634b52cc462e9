import pg from "pg";
import { reasonOf } from "../../errors.ts";
import { withPgClient } from "../connections/pg-client.ts";
import { listLogins, type Login, quoted, takingOf } from "./take-role.ts";
import { FUNCTION_GRANTS, GRANTS, ROLES, withSchema } from "./role-grants.ts";
import { wantedPolicies } from "./row-rules.ts";
import { type Grant, wantedGrants } from "./wanted-grants.ts";

/** Codes of PostgreSQL: not allowed to; and a role that someone else made at the same moment. */
const NOT_ALLOWED = "42501";
const MADE_MEANWHILE = ["42710", "23505"];

/** What a database lacks of the roles, as statements that put it right; none where all is as it should be. */
export interface RolesState {
  /** Roles that the server does not have. */
  missing: string[];
  /** Grants that the list has and the database has not. */
  lacking: Grant[];
  /** Grants of ours that the list does not have. */
  beyond: Grant[];
  /** Statements that make the row rules right: those that are missing, and those that are not ours. */
  rowRules: string[];
  /** Statements that take back what a role or everyone may create in the database: tables, functions, temporary tables. */
  creatable: string[];
}

/**
 * Creates missing roles and makes every grant in this database equal to the list. Idempotent; databases of one server may
 * do so concurrently. Needs the lock of the migrations.
 *
 * If the user of `client` may not create roles, it prints the statements for an administrator: the program then works with
 * the rights of its login.
 */
export async function applyRoles(client: pg.Client, say: (line: string) => void): Promise<void> {
  const refused: string[] = [];
  for (const role of Object.values(ROLES)) refused.push(...(await makeRole(client, role)));
  if (refused.length > 0) {
    say(
      `the roles of the database are not in use; let an administrator run: ${refused.join("; ")}; then migrate again`,
    );
    return;
  }
  await client.query("begin");
  try {
    const schemas = Object.values(ROLES).map((role) => `grant usage on schema public to ${role}`);
    const inAuth = [ROLES.console, ROLES.ops, ROLES.worker].map((role) => `grant usage on schema auth to ${role}`);
    await client.query([...schemas, ...inAuth].join("; "));
    await client.query(statements("revoke", (await readRolesState(client)).beyond).join("; "));
    // what is taken back on a table goes from each of its columns, too: what is lacking shows only afterwards
    const { lacking, rowRules } = await readRolesState(client);
    await client.query([...statements("grant", lacking), ...rowRules].join("; "));
    await client.query((await readRolesState(client)).creatable.join("; "));
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
  // PostgreSQL only warns a user who may not take it back
  const { creatable } = await readRolesState(client);
  if (creatable.length > 0) say(`let the owner of the database run: ${creatable.join("; ")}`);
}

/**
 * Compares a database with the list, and reads who is logged in for which part of the program now.
 * @throws the driver's error if it cannot be reached.
 */
export async function readRoles(url: string): Promise<RolesState & { logins: Login[] }> {
  return withPgClient(url, "doctor", async (client) => ({
    ...(await readRolesState(client)),
    logins: await listLogins(client),
  }));
}

/** Compares a database with the list; tables that it does not have yet are skipped. */
export async function readRolesState(client: pg.Client): Promise<RolesState> {
  const roles = Object.values(ROLES);
  const there = await client.query<{ rolname: string }>("select rolname from pg_roles where rolname = any($1)", [
    roles,
  ]);
  const missing = roles.filter((role) => !there.rows.some(({ rolname }) => rolname === role));
  const { rows: objects } = await client.query<{ name: string }>(OBJECTS);
  const names = new Set(objects.map(({ name }) => name));
  const { rows: found } = await client.query<Grant>(GRANTED, [roles]);
  const wanted = wantedGrants().filter(({ object }) => names.has(object));
  const foundKeys = new Set(found.map(keyOf));
  const wantedKeys = new Set(wanted.map(keyOf));
  const { rows: creatable } = await client.query<{ statement: string }>(CREATABLE, [roles]);
  return {
    missing,
    lacking: wanted.filter((grant) => !foundKeys.has(keyOf(grant))),
    beyond: found.filter((grant) => !wantedKeys.has(keyOf(grant))),
    rowRules: missing.length > 0 ? [] : await listRowRules(client, names),
    creatable: creatable.map(({ statement }) => statement),
  };
}

async function listRowRules(client: pg.Client, tables: ReadonlySet<string>): Promise<string[]> {
  const { rows } = await client.query<{ table: string; name: string }>(`
    select schemaname || '.' || tablename as table, policyname as name
    from pg_policies
    where schemaname in ('public', 'auth')
    order by 1, 2`);
  const wanted = wantedPolicies().filter(({ table }) => tables.has(table));
  const keyOfRule = ({ table, name }: { table: string; name: string }) => `${table} ${name}`;
  const [found, known] = [new Set(rows.map(keyOfRule)), new Set(wanted.map(keyOfRule))];
  return [
    ...rows.filter((rule) => !known.has(keyOfRule(rule))).map(({ table, name }) => `drop policy ${name} on ${table}`),
    ...wanted.filter((rule) => !found.has(keyOfRule(rule))).map(({ statement }) => statement),
  ];
}

/** Tables, views and functions of the database that the list does not name. */
export async function listUnlisted(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(OBJECTS);
  const listed = new Set([...Object.keys(GRANTS), ...Object.keys(FUNCTION_GRANTS)].map(withSchema));
  return rows.map(({ name }) => name).filter((name) => !listed.has(name));
}

/** Gives what an administrator has to run where we may not. */
async function makeRole(client: pg.Client, role: string): Promise<string[]> {
  const refused: string[] = [];
  const { rows } = await client.query("select from pg_roles where rolname = $1", [role]);
  if (rows.length === 0 && !(await isDone(client, `create role ${role} nologin`)))
    refused.push(`create role ${role} nologin`);
  if (refused.length > 0) return [...refused, `grant ${role} to ${await quotedUser(client)}`];
  // the owner of the schema takes any role if there is only one URL
  const { rows: held } = await client.query<{ held: boolean }>(
    `select pg_has_role($1, '${await takingOf(client)}') and pg_has_role($1, 'USAGE') as held`,
    [role],
  );
  if (held[0]?.held === true) return [];
  const give = `grant ${role} to ${await quotedUser(client)}`;
  return (await isDone(client, give)) ? [] : [give];
}

async function isDone(client: pg.Client, statement: string): Promise<boolean> {
  try {
    await client.query(statement);
    return true;
  } catch (error) {
    const code = error instanceof pg.DatabaseError ? (error.code ?? "") : "";
    if (MADE_MEANWHILE.includes(code)) return true;
    if (code === NOT_ALLOWED) return false;
    throw new Error(`\`${statement}\` failed: ${reasonOf(error)}`, { cause: error });
  }
}

async function quotedUser(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ name: string }>("select current_user as name");
  return quoted(rows[0]?.name ?? "");
}

/** What grants are on: partitions are reached through their whole table, but for the default one of usage, which is looked into. */
const OBJECTS = `
  select n.nspname || '.' || c.relname as name
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  where n.nspname in ('public', 'auth')
    and c.relkind in ('r', 'p', 'v', 'm', 'f')
    and (not c.relispartition or c.relname = 'usage_facts_default')
    -- days that are being taken out
    and c.relname !~ '_[0-9]{8}$'
  union all
  select 'public.' || p.proname || '(' || oidvectortypes(p.proargtypes) || ')'
  from pg_proc p
  where p.pronamespace = 'public'::regnamespace
    and p.prosecdef`;

const GRANTED = `
  select
    r.rolname as role,
    case c.relkind when 'S' then 'sequence' else 'table' end as kind,
    n.nspname || '.' || c.relname as object,
    null as column,
    acl.privilege_type as privilege
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  cross join aclexplode(c.relacl) acl
  join pg_roles r on r.oid = acl.grantee
  where n.nspname in ('public', 'auth')
    and r.rolname = any($1)
    and acl.grantee <> c.relowner
  union all
  select r.rolname, 'table', n.nspname || '.' || c.relname, a.attname, acl.privilege_type
  from pg_attribute a
  join pg_class c on c.oid = a.attrelid
  join pg_namespace n on n.oid = c.relnamespace
  cross join aclexplode(a.attacl) acl
  join pg_roles r on r.oid = acl.grantee
  where n.nspname in ('public', 'auth')
    and r.rolname = any($1)
    and acl.grantee <> c.relowner
  union all
  select
    r.rolname,
    'function',
    'public.' || p.proname || '(' || oidvectortypes(p.proargtypes) || ')',
    null,
    acl.privilege_type
  from pg_proc p
  cross join aclexplode(p.proacl) acl
  join pg_roles r on r.oid = acl.grantee
  where p.pronamespace = 'public'::regnamespace
    and r.rolname = any($1)
    and acl.grantee <> p.proowner`;

/** A temporary table would hide one of ours from an unqualified name, and its owner gives it triggers of any kind. */
const CREATABLE = `
  select format('revoke %s on %s from %s', lower(acl.privilege_type), object.name, coalesce(r.rolname, 'public')) as statement
  from (
    select format('database %I', datname), coalesce(datacl, acldefault('d', datdba))
    from pg_database
    where datname = current_database()
    union all
    select format('schema %I', nspname), coalesce(nspacl, acldefault('n', nspowner))
    from pg_namespace
    where nspname in ('public', 'auth')
  ) object (name, acl)
  cross join aclexplode(object.acl) acl
  left join pg_roles r on r.oid = acl.grantee
  where acl.privilege_type in ('CREATE', 'TEMPORARY')
    and (acl.grantee = 0 or r.rolname = any($1))
  order by 1`;

function keyOf({ role, kind, object, column, privilege }: Grant): string {
  return [role, kind, object, column ?? "", privilege].join("|");
}

/** One statement for each role and object. */
function statements(verb: "grant" | "revoke", grants: readonly Grant[]): string[] {
  const groups = Map.groupBy(grants, ({ role, kind, object }) => `${kind} ${object}|${role}`);
  return [...groups].map(([group, some]) => {
    const [on = "", role = ""] = group.split("|");
    const what = some.map(({ privilege, column }) => (column === null ? privilege : `${privilege} (${column})`));
    return `${verb} ${what.join(", ")} on ${on} ${verb === "grant" ? "to" : "from"} ${role}`;
  });
}
