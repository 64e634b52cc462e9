import pg from "pg";
import { withPgClient } from "../connections/pg-client.ts";
import { type Part, ROLES } from "./role-grants.ts";

/** How a process connects: with the role of its part, or with the rights of its login, and why. */
export interface Taken {
  url: string;
  /** Why it connects with the rights of its login; null if it takes the role, or has no other rights. */
  why: string | null;
  /** Whether the login has all rights without the role. */
  isOwner: boolean;
}

/**
 * Returns the URL with which a part of the program connects: every connection then takes the role of the part and has no
 * other rights. If that is not possible, returns the URL unchanged with the reason: the server lacks the roles, or the
 * login may not take this one.
 * @throws the driver's error if the database cannot be reached.
 */
export async function withRoleOf(part: Part, url: string): Promise<Taken> {
  const role = ROLES[part];
  return withPgClient(url, "roles", async (client) => {
    const { rows } = await client.query<{
      user: string;
      isThere: boolean;
      mayTake: boolean;
      isGranted: boolean;
      isOwner: boolean;
    }>(MAY_TAKE(await takingOf(client)), [role]);
    const { user = "", isThere = false, mayTake = false, isGranted = false, isOwner = false } = rows[0] ?? {};
    const refused = (why: string) => ({ url, isOwner, why: `connected with all rights of ${user}, since ${why}` });
    if (!isThere) return refused(`the server has no role ${role}; run \`roundhouse migrate\` and follow its output`);
    if (!mayTake) return refused(`it may not take the role ${role}; run \`grant ${role} to ${quoted(user)}\``);
    if (!isGranted) return refused(`the role ${role} has no grants yet; run \`roundhouse migrate\``);
    return { url: withRole(url, role), isOwner, why: null };
  });
}

/** A URL that makes every connection take a role as it begins, before its first statement. */
export function withRole(url: string, role: string): string {
  const taken = new URL(url);
  taken.searchParams.set("role", role);
  return taken.href;
}

/** Options for a driver that does not read the role from the URL as the other one does. */
export function roleOption(url: string): string {
  const role = new URL(url).searchParams.get("role");
  return role === null ? "" : `-c role=${role}`;
}

/** Who is logged in for which part of the program, and whether that user may do everything. */
export interface Login {
  part: string;
  user: string;
  isSuperuser: boolean;
  ownsTables: boolean;
}

/** The users with which our processes are logged in now. */
export async function listLogins(client: pg.Client): Promise<Login[]> {
  const { rows } = await client.query<Login>(`
    select distinct
      substr(a.application_name, length('roundhouse ') + 1) as part,
      r.rolname as user,
      r.rolsuper as "isSuperuser",
      r.oid = (select relowner from pg_class where oid = 'public.rounds'::regclass) as "ownsTables"
    from pg_stat_activity a
    join pg_roles r on r.oid = a.usesysid
    where a.datname = current_database()
      and a.application_name in ('roundhouse api', 'roundhouse console', 'roundhouse ops', 'roundhouse worker')
    order by 1, 2`);
  return rows;
}

/** A name, quoted for a statement. */
export function quoted(name: string): string {
  return pg.escapeIdentifier(name);
}

/** The right that taking a role requires: before PostgreSQL 16, membership. */
export async function takingOf(client: pg.Client): Promise<"SET" | "MEMBER"> {
  const { rows } = await client.query<{ version: number }>(
    "select current_setting('server_version_num')::integer as version",
  );
  return (rows[0]?.version ?? 0) >= 160_000 ? "SET" : "MEMBER";
}

const MAY_TAKE = (taking: "SET" | "MEMBER") => `
  select
    session_user as user,
    r.oid is not null as "isThere",
    coalesce(pg_has_role(session_user, r.oid, '${taking}'), false) as "mayTake",
    coalesce(has_table_privilege(r.oid, 'public.migrations', 'select'), false) as "isGranted",
    (select rolsuper from pg_roles where rolname = session_user)
      or pg_has_role(session_user, (select relowner from pg_class where oid = 'public.rounds'::regclass), 'USAGE')
      as "isOwner"
  from (values ($1::text)) asked (name)
  left join pg_roles r on r.rolname = asked.name`;
