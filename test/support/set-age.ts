import { readFile } from "node:fs/promises";
import { connect } from "../../src/db/client.ts";

/** The guards that refuse a set which is stored more than a second after its issue. */
const GUARDS = ["check_new_sets", "check_committed_set"];

/**
 * Puts both guards in force as the migration has them, except for the age up to which a set is stored. A busy machine can
 * take longer than a second from the issue of a set to its commit, so the databases of tests allow a minute.
 */
export async function allowSetAge(url: string, age: "1 second" | "1 minute"): Promise<void> {
  const migration = await readFile(new URL("../../sql/0010_guards.sql", import.meta.url), "utf8");
  const sql = connect(url, { name: "test", max: 1 });
  try {
    for (const name of GUARDS) {
      const [guard = ""] = new RegExp(`create function ${name}\\(\\)[^]*?\\nend \\$\\$;\\n`).exec(migration) ?? [];
      const [before = "", after, ...others] = guard.split("interval '1 second'");
      if (after === undefined || others.length > 0) throw new Error(`expected one second in ${name}`);
      await sql.unsafe(`${before.replace("create", "create or replace")}interval '${age}'${after}`);
    }
  } finally {
    await sql.end();
  }
}
