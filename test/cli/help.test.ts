import type { Command } from "commander";
import { describe, expect, it } from "vitest";
import { accountCommand } from "../../src/cli/account.ts";
import { accuracyCommand } from "../../src/cli/accuracy.ts";
import { apiCommand } from "../../src/cli/api.ts";
import { auditCommand } from "../../src/cli/audit.ts";
import { calibrateCommand } from "../../src/cli/calibrate.ts";
import { calibrationCommand } from "../../src/cli/calibration.ts";
import { demoHouseCommand } from "../../src/cli/demo-house.ts";
import { doctorCommand } from "../../src/cli/doctor.ts";
import { exportCommand } from "../../src/cli/export.ts";
import { houseCommand } from "../../src/cli/house.ts";
import { importCommand } from "../../src/cli/import.ts";
import { keyCommand } from "../../src/cli/key.ts";
import { conflictCommand } from "../../src/cli/conflict.ts";
import { gapCommand } from "../../src/cli/gap.ts";
import { noticeCommand } from "../../src/cli/notice.ts";
import { payloadCommand } from "../../src/cli/payload.ts";
import { quarantineCommand } from "../../src/cli/quarantine.ts";
import { roundCommand } from "../../src/cli/round.ts";
import { migrateCommand } from "../../src/cli/migrate.ts";
import { opsUserCommand } from "../../src/cli/ops-user.ts";
import { planCommand } from "../../src/cli/plan.ts";
import { queueCommand } from "../../src/cli/queue.ts";
import { tableCommand } from "../../src/cli/table.ts";
import { upCommand } from "../../src/cli/up.ts";
import { verifyCommand } from "../../src/cli/verify.ts";
import { workerCommand } from "../../src/cli/worker.ts";
import { roundhouse } from "./world.ts";

const commands = [
  upCommand(),
  apiCommand(),
  workerCommand(),
  migrateCommand(),
  demoHouseCommand(() => ({ dataDir: "", host: "" })),
  doctorCommand(),
  houseCommand(),
  tableCommand(),
  queueCommand(),
  payloadCommand(),
  quarantineCommand(),
  conflictCommand(),
  roundCommand(),
  gapCommand(),
  noticeCommand(),
  calibrateCommand(),
  calibrationCommand(),
  accuracyCommand(),
  auditCommand(),
  verifyCommand(),
  importCommand(),
  exportCommand(),
  opsUserCommand(),
  accountCommand(),
  keyCommand(),
  planCommand(),
];

/** Commands that do something, with the words they are called by. */
function leaves(command: Command, before: string[] = []): [words: string, command: Command][] {
  const words = [...before, command.name()];
  if (command.commands.length === 0) return [[words.join(" "), command]];
  return command.commands.flatMap((one) => leaves(one, words));
}

describe("every command", () => {
  it.each(commands.flatMap((command) => leaves(command)))("explains itself with an example: %s", (words, command) => {
    let help = "";
    command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
    expect(command.description()).not.toBe("");
    expect(help).toMatch(new RegExp(`^Examples:\n {2}roundhouse ${words}`, "m"));
  });
});

describe("the program", () => {
  it("lists every command when asked for help, and its version", async () => {
    const { code, stdout, stderr } = await roundhouse(["--help"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    for (const command of commands) expect(stdout).toMatch(new RegExp(`^ {2}${command.name()}\\b`, "m"));
    expect(await roundhouse(["--version"])).toMatchObject({ code: 0, stdout: "0.1.0\n" });
  });

  it.each([
    [["hous"], "Did you mean house?"],
    [["house", "lst"], "Did you mean list?"],
    [["house", "list", "--jsn"], "Did you mean --json?"],
    [["house", "pause", "acme"], "required option '--reason <text>'"],
    [["queue", "failed", "--limit", "many"], "expected a whole number from 1 to 10000"],
    [["plan", "set", "Pro", "--houses", "a,,b"], "expected names with a comma between"],
    [["table", "list", "more"], "too many arguments"],
    [[], "Usage: roundhouse"],
  ])("ends with 2 and a hint on wrong usage: %j", async (args, hint) => {
    const { code, stdout, stderr } = await roundhouse(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(hint);
  });

  it("lists every wrong variable at once, without their values", async () => {
    const env = { DATABASE_URL: "mysql://secret@here", PORT: "99999", LOG_LEVEL: "loud" };
    const { code, stderr } = await roundhouse(["table", "list"], { env });
    expect(code).toBe(2);
    for (const name of ["DATABASE_URL", "PORT", "LOG_LEVEL"]) expect(stderr).toContain(`  ${name}: `);
    expect(stderr).not.toContain("secret");
  });

  it("has no colors in a pipe", async () => {
    const { stdout } = await roundhouse(["doctor"], { env: { DATA_DIR: "/nowhere/at/all", CI: "1" } });
    expect(stdout).toContain("houses file");
    expect(stdout).not.toContain("\u001B");
  });
});
