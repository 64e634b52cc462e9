import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Command } from "commander";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { findPasswordHash, listOperators } from "../../src/accounts/operators/operator-store.ts";
import { isPassword } from "../../src/accounts/identity/password.ts";
import { searchAudit } from "../../src/audit/store.ts";
import { accountCommand } from "../../src/cli/accounts/account.ts";
import { calibrateCommand } from "../../src/cli/data/calibrate.ts";
import { houseCommand } from "../../src/cli/houses/house.ts";
import { importCommand } from "../../src/cli/import/import.ts";
import { keyCommand } from "../../src/cli/accounts/key.ts";
import { opsUserCommand } from "../../src/cli/accounts/ops-user.ts";
import { planCommand } from "../../src/cli/accounts/plan.ts";
import { queueCommand } from "../../src/cli/houses/queue.ts";
import { verifyCommand } from "../../src/cli/data/verify.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { reasonOf, UsageError } from "../../src/errors.ts";
import { createDatabase, createRedis } from "../support/database.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { houseEntry } from "../support/houses.ts";
import { makeFile } from "./world.ts";

let sql: Sql;
let env: Record<string, string>;
beforeAll(async () => {
  const database = await createDatabase();
  env = { DATABASE_URL: database.url, REDIS_URL: (await createRedis()).url };
  sql = connect(database.url, { name: "test", max: 2 });
  return async () => {
    await sql.end();
    await database.drop();
  };
});

const COMMANDS: Record<string, () => Command> = {
  account: accountCommand,
  calibrate: calibrateCommand,
  house: houseCommand,
  import: importCommand,
  key: keyCommand,
  "ops-user": opsUserCommand,
  plan: planCommand,
  queue: queueCommand,
  verify: verifyCommand,
};

/** A command in this process, which is many times faster than one of its own: what it printed, and how it ended. */
async function run(name: string, ...args: string[]) {
  const output = { stdout: "", stderr: "" };
  const spies = (["stdout", "stderr"] as const).map((stream) =>
    vi.spyOn(process[stream], "write").mockImplementation((chunk, ...more) => {
      output[stream] += String(chunk);
      const taken = more.find((one) => typeof one === "function");
      taken?.(null);
      return true;
    }),
  );
  for (const [variable, value] of Object.entries(env)) vi.stubEnv(variable, value);
  let code: number;
  try {
    await COMMANDS[name]!().parseAsync(args, { from: "user" });
    code = Number(process.exitCode ?? 0);
  } catch (error) {
    code = error instanceof UsageError ? 2 : 1;
    output.stderr += `roundhouse: ${reasonOf(error)}\n`;
  } finally {
    process.exitCode = 0;
    vi.unstubAllEnvs();
    for (const spy of spies) spy.mockRestore();
  }
  return { code, ...output };
}

/** A command that is given something on stdin. */
async function runWith(input: string, ...args: string[]) {
  const start = join(import.meta.dirname, "../../src/start.js");
  const { PATH = "", HOME = "" } = process.env;
  const child = spawn(process.execPath, [start, ...args], { env: { PATH, HOME, ...env } });
  child.stdin.end(input);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { code: code as number, stdout, stderr };
}

async function isPasswordOf(email: string, password: string): Promise<boolean> {
  const one = (await listOperators(sql)).find((operator) => operator.email === email);
  return isPassword(password, (await findPasswordHash(sql, { userId: one!.id }))!);
}

const told = async () => {
  const nothing = { actor: "", action: "", target: "", text: "", from: null, to: null };
  const { entries } = await searchAudit(sql, nothing, { before: null, limit: 100 });
  return entries.toReversed();
};

describe("ops-user", () => {
  it("makes the first admin with a password from stdin that is shown nowhere, and refuses a common one", async () => {
    const made = await runWith("five rare green kettles\n", "ops-user", "create", "Ann@example.com", "--role", "admin");
    expect(made).toEqual({ code: 0, stdout: "", stderr: "ann@example.com is admin now\n" });
    expect(await isPasswordOf("ann@example.com", "five rare green kettles")).toBe(true);
    const weak = await runWith("password123\n", "ops-user", "create", "bob@example.com", "--role", "viewer");
    expect([weak.code, weak.stdout]).toEqual([2, ""]);
    expect(weak.stderr).toContain("easy to guess");
    expect((await runWith("", "ops-user", "create", "bob@example.com", "--role", "viewer")).code).toBe(2);
  });

  it("changes operators, keeps an admin, and writes all of it to the audit log with the user of the machine", async () => {
    const made = await run("ops-user", "create", "bob@example.com", "--role", "viewer", "--generate", "--json");
    const { password } = JSON.parse(made.stdout) as { password: string };
    expect(await isPasswordOf("bob@example.com", password)).toBe(true);
    const steps = [
      ["create", "bob@example.com", "--role", "data", "--generate"],
      ["set-role", "bob@example.com", "--role", "operator", "--reason", "night shift"],
      ["disable", "ann@example.com"],
      ["disable", "bob@example.com"],
      ["enable", "bob@example.com", "--json"],
      ["reset-two-factor", "bob@example.com"],
      ["set-role", "nobody@example.com", "--role", "data"],
    ];
    const outcomes: Awaited<ReturnType<typeof run>>[] = [];
    for (const step of steps) outcomes.push(await run("ops-user", ...step));
    expect(outcomes.map(({ code, stderr }) => [code, stderr.trim()])).toEqual([
      [1, "roundhouse: bob@example.com is an operator already"],
      [0, "bob@example.com is operator now"],
      [1, "roundhouse: ann@example.com is the last admin; make another first"],
      [0, "bob@example.com cannot sign in any more"],
      [0, ""],
      [1, "roundhouse: bob@example.com has no second factor"],
      [2, "roundhouse: there is no operator nobody@example.com"],
    ]);
    const list = JSON.parse((await run("ops-user", "list", "--json")).stdout) as object[];
    expect(list).toMatchObject([
      { email: "ann@example.com", role: "admin", disabled_at: null, has_two_factor: false },
      { email: "bob@example.com", role: "operator", disabled_at: null, sessions: 0 },
    ]);
    const entries = await told();
    expect(entries.map(({ action, target, reason }) => [action, target, reason])).toEqual([
      ["operator.create", "operator ann@example.com", null],
      ["operator.create", "operator bob@example.com", null],
      ["operator.role", "operator bob@example.com", "night shift"],
      ["operator.disable", "operator bob@example.com", null],
      ["operator.enable", "operator bob@example.com", null],
    ]);
    for (const { surface, actor, role } of entries)
      expect({ surface, actor: actor !== "", role }).toEqual({ surface: "cli", actor: true, role: null });
    expect(
      JSON.stringify(entries, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value)),
    ).not.toContain(password);
  });
});

describe("every command that changes something", () => {
  it("is in the audit log, once, and what failed is not", async () => {
    await applyHouses(sql, [houseEntry({ id: "acme" })]);
    const before = (await told()).length;
    const file = await makeFile("rounds.csv", "round_id,multiplier\n1,1.50\n2,2.50\n");
    const steps: string[][] = [
      ["house", "pause", "acme", "--reason", "they asked us to wait"],
      ["house", "pause", "amce", "--reason", "no such house"],
      ["house", "resume", "acme", "--reason", "they are back"],
      ["queue", "pause", "backfill-gap", "--reason", "slow house"],
      ["queue", "resume", "backfill-gap"],
      ["queue", "retry", "backfill-gap"],
      ["account", "create", "cal@example.com"],
      ["account", "create", "cal@example.com"],
      ["key", "create", "--account", "cal@example.com", "--plan", "Pro", "--json"],
      ["key", "rotate", "1", "--overlap", "24h"],
      ["key", "revoke", "1"],
      ["plan", "set", "Pro", "--day", "4711"],
      ["import", "--table", "acme/crash/global", "--file", file, "--dry-run"],
      ["import", "--table", "acme/crash/global", "--file", file],
      ["calibrate", "--table", "acme/crash/global", "--promote", "--reason", "first of its kind"],
    ];
    const outcomes: [string, number | null][] = [];
    let secrets = "";
    for (const step of steps) {
      const { code, stdout } = await run(step[0]!, ...step.slice(1));
      if (step[0] === "key") secrets += stdout;
      outcomes.push([step.slice(0, 2).join(" "), code]);
    }
    expect(outcomes.filter(([, code]) => code !== 0)).toEqual([["house pause", 2]]);
    const entries = (await told()).slice(before);
    expect(entries.map(({ action, target }) => `${action} ${target}`)).toEqual([
      "house.pause house acme",
      "house.resume house acme",
      "queue.pause queue backfill-gap",
      "queue.resume queue backfill-gap",
      "queue.retry queue backfill-gap",
      "account.create account 1",
      "key.create key 1 of account 1",
      "key.rotate key 1 of account 1",
      "key.revoke key 1 of account 1",
      "plan.set plan Pro",
      "import.begin table acme/crash/global",
      "import.end table acme/crash/global",
      "calibration.start run 1 of acme/crash/global",
      "calibration.promote calibration 1 of acme/crash/global",
    ]);
    expect(entries.find(({ action }) => action === "plan.set")).toMatchObject({
      before: { day_limit: "100000" },
      after: { day_limit: "4711" },
    });
    expect(entries.find(({ action }) => action === "import.end")?.after).toMatchObject({ inserted: 2, skipped: 0 });
    for (const [key] of secrets.matchAll(/rh_live_\w+/g)) {
      expect(
        JSON.stringify(entries, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value)),
      ).not.toContain(key);
    }
  });

  it("is in the chain that verify checks, which detects a change", async () => {
    const whole = await run("verify", "--json");
    const { checked } = JSON.parse(whole.stdout) as { checked: { audit_entries: number } };
    expect([whole.code, checked.audit_entries]).toEqual([0, (await told()).length]);
    await sql.begin(async (tx) => {
      await tx`alter table audit_log disable trigger user`;
      await tx`update audit_log set reason = 'never said' where seq = 3`;
      await tx`alter table audit_log enable trigger user`;
    });
    const changed = await run("verify", "--json");
    expect(changed.code).toBe(1);
    expect(JSON.parse(changed.stdout)).toMatchObject({ ok: false, first_failure: { kind: "audit_log", id: "3" } });
    expect((await run("verify")).stdout).toContain("the entry of the audit log 3 is not what its facts give");
  });
});
