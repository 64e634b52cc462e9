import { findNewestBackup } from "../../backup/finished-store.ts";
import { withConnections } from "../../db/with-connections.ts";
import { readRoles } from "../../db/roles/roles.ts";
import { type Finding, ok, warn } from "./finding.ts";
import { checkData } from "./data.ts";
import type { Found } from "../session.ts";

/** An older backup is a warning. */
const OLD_HOURS = 7 * 24;

/**
 * Checks the database's rows and roles, and its newest backup; nothing unless `migrations` is ok. A private database, made for
 * a trial, may have a single login.
 */
export async function checkDatabase(found: Found, migrations: Finding["status"] | undefined): Promise<Finding[]> {
  const { databaseUrl, settings } = found;
  if (databaseUrl === undefined || migrations !== "ok") return [];
  const isPrivate = settings.DATABASE_URL === undefined;
  return [
    ...(await checkData(settings.DATABASE_DIRECT_URL ?? databaseUrl)),
    await checkRoles(settings.DATABASE_DIRECT_URL ?? databaseUrl, isPrivate),
    await checkBackups(settings.DATABASE_DIRECT_URL ?? databaseUrl),
  ];
}

/** Checks that each part of the program has only the rights it needs. */
async function checkRoles(url: string, isPrivate: boolean): Promise<Finding> {
  const check = "roles";
  const { missing, lacking, beyond, rowRules, creatable, logins } = await readRoles(url);
  if (missing.length > 0) {
    const statements = missing.map((role) => `create role ${role} nologin`).join("; ");
    const advice = `let an administrator run: ${statements}; and grant each to the user that migrates; then \`roundhouse migrate\``;
    return warn(check, `the server lacks ${missing.join(", ")}: every part may do everything`, advice);
  }
  const wrong = [...lacking, ...beyond].map(({ role, privilege, object }) => `${privilege} on ${object} of ${role}`);
  const named = [...wrong, ...rowRules, ...creatable];
  if (named.length > 0) {
    const found = `${named.length} grants are not as they should be: ${named.slice(0, 5).join(", ")}`;
    return warn(check, found, "run `roundhouse migrate`, and read its output");
  }
  const whole = logins.filter(({ isSuperuser, ownsTables }) => isSuperuser || ownsTables);
  const parts = logins.map(({ part, user }) => `${part} as ${user}`).join(", ");
  const text = `granted as listed${parts === "" ? "" : `; logged in now: ${parts}`}`;
  if (whole.length === 0 || isPrivate) return ok(check, text);
  return {
    check,
    status: "ok",
    found: `${text}; ${[...new Set(whole.map(({ user }) => user))].join(", ")} may do more than the role that is taken`,
    advice:
      "log each part in as its own user that is a member of its role (docs/self-hosting.md, Database roles): what it holds then cannot be left",
  };
}

async function checkBackups(url: string): Promise<Finding> {
  const check = "backup";
  const newest = await withConnections(url, { name: "doctor", max: 1 }, findNewestBackup);
  const found = newest === null ? "none was made" : `the newest is of ${newest.snapshotAt}, ${newest.bytes} bytes`;
  if (newest !== null && newest.ageHours <= OLD_HOURS) return ok(check, found);
  return warn(
    check,
    found,
    "run `roundhouse backup --to FOLDER` each day, and keep the file elsewhere; backups by pg_dump or pgBackRest are not known here (docs/self-hosting.md, Backup and restore, lists when to use which)",
  );
}
