import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { COMMANDS } from "../../src/cli/commands.ts";
import { addHelp, allCommands } from "../../src/cli/help.ts";
import { roundhouse, startRoundhouse } from "./world.ts";

const program = new Command("roundhouse");
for (const load of Object.values(COMMANDS).flatMap((group) => Object.values(group))) program.addCommand(await load());
addHelp(program);
const commands = program.commands.filter((command) => command.name() !== "help");

/** The words that a command is called by. */
function wordsOf(command: Command): string {
  return command.parent === null ? "" : `${wordsOf(command.parent)} ${command.name()}`.trim();
}

describe("every command and group", () => {
  const explained = commands.flatMap(allCommands).filter((command) => command.name() !== "help");

  it.each(explained.map((command) => [wordsOf(command), command] as const))(
    "explains itself with an example: %s",
    (words, command) => {
      let help = "";
      command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
      expect(command.description()).not.toBe("");
      expect(help).toMatch(new RegExp(`^Examples:\n {2}roundhouse ${words}`, "m"));
    },
  );

  it("marks what it cannot do without, in its group's help too", async () => {
    const pause = await roundhouse(["house", "pause", "--help"]);
    expect(pause.stdout).toContain("the reason, shown to staff (required)");
    const house = await roundhouse(["house", "--help"]);
    expect(house.stdout).toContain("pause --reason <text> [options] <id>");
  });
});

describe("the program", () => {
  it("lists every command when asked for help, and its version", async () => {
    const { code, stdout, stderr } = await roundhouse(["--help"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    for (const command of commands) expect(stdout).toMatch(new RegExp(`^ {2}${command.name()}\\b`, "m"));
    expect(await startRoundhouse(["--version"]).ended).toMatchObject({ code: 0, stdout: "0.1.0\n" });
  });

  it.each([
    [["hous"], "Did you mean house?"],
    [["house", "lst"], "Did you mean list?"],
    [["house", "list", "--jsn"], "Did you mean --json?"],
    [["house", "pause", "acme"], "required option '--reason <text>'"],
    [["queue", "failed", "--limit", "many"], "expected a whole number from 1 to 10000"],
    [["plan", "set", "Pro", "--houses", "a,,b"], "expected names with a comma between"],
    [["table", "list", "more"], "too many arguments"],
    [["help", "nope"], "there is no command 'nope'; there are up,"],
    [["help", "house", "nope"], "there is no command 'nope'; there are list,"],
    [["house", "help", "nope"], "there is no command 'nope'"],
    [[], "Usage: roundhouse"],
  ])("ends with 2 and a hint on wrong usage: %j", async (args, hint) => {
    const { code, stdout, stderr } = await roundhouse(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(hint);
  });

  it("explains the command that `help` names", async () => {
    const { code, stdout } = await roundhouse(["help", "house", "pause"]);
    expect(code).toBe(0);
    expect(stdout).toContain("Usage: roundhouse house pause");
  });

  it.each(["bash", "zsh", "fish"])("prints the completion script of %s", async (shell) => {
    const script = await startRoundhouse(["complete", shell]).ended;
    expect({ code: script.code, stderr: script.stderr }).toEqual({ code: 0, stderr: "" });
    expect(script.stdout).toContain("roundhouse");
  });

  it.each([
    [["ba"], ["backup"]],
    [
      ["house", ""],
      ["list", "pause", "resume"],
    ],
    [["house", "pa"], ["pause"]],
    [["queue", "pause", "backf"], ["backfill-gap"]],
  ])("completes %j", async (words, completions) => {
    const { stdout } = await startRoundhouse(["complete", "--", ...words]).ended;
    for (const completion of completions) expect(stdout).toMatch(new RegExp(`^${completion}\\b`, "m"));
  });

  it("lists every wrong variable together, without secrets", async () => {
    const env = { DATABASE_URL: "mysql://hunter2@here", PORT: "99999", LOG_LEVEL: "loud" };
    const { code, stderr } = await roundhouse(["table", "list"], { env });
    expect(code).toBe(2);
    for (const name of ["DATABASE_URL", "PORT", "LOG_LEVEL"]) expect(stderr).toContain(`  ${name}: `);
    expect(stderr).not.toContain("hunter2");
  });

  it("has no colors in a pipe", async () => {
    const { stdout } = await startRoundhouse(["doctor"], { env: { DATA_DIR: "/nowhere/at/all", CI: "1" } }).ended;
    expect(stdout).toContain("houses file");
    expect(stdout).not.toContain("\u001B");
  });
});
