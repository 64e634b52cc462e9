import { Command, CommanderError } from "commander";
import { describe, expect, it } from "vitest";
import { COMMANDS } from "../../src/cli/commands.ts";
import { addHelp, allCommands } from "../../src/cli/help.ts";
import { roundhouse } from "./world.ts";

const HELP_WIDTH = 110;

/** Every command, of which no error or help ends the process or reaches the terminal. */
async function programOf(): Promise<{ program: Command; written: () => string }> {
  const program = new Command("roundhouse").enablePositionalOptions();
  for (const load of Object.values(COMMANDS).flatMap((group) => Object.values(group))) program.addCommand(await load());
  addHelp(program);
  let text = "";
  for (const command of allCommands(program)) {
    command
      .exitOverride()
      .showHelpAfterError("(add --help to see how it is used)")
      .configureOutput({
        writeOut: (part) => (text += part),
        writeErr: (part) => (text += part),
        getOutHelpWidth: () => HELP_WIDTH,
      });
  }
  return {
    program,
    written() {
      const all = text;
      text = "";
      return all.trimEnd();
    },
  };
}

const wordsOf = (command: Command): string[] =>
  command.parent === null ? [] : [...wordsOf(command.parent), command.name()];

/** What the program says of arguments that it refuses before any command begins. */
async function refused({ program, written }: Awaited<ReturnType<typeof programOf>>, args: string[]): Promise<string> {
  await expect(program.parseAsync(args, { from: "user" })).rejects.toThrow(CommanderError);
  return `$ roundhouse ${args.join(" ")}\n${written()}`;
}

describe("what commands say, as it is recorded beside this test (`npm run record` writes it)", () => {
  it("explains the program and each group of commands; docs/cli.md has the commands themselves", async () => {
    const { program, written } = await programOf();
    const groups = program.commands.filter((command) => command.commands.length > 0);
    const texts = groups.map((group) => {
      group.outputHelp();
      return `$ roundhouse ${group.name()} --help\n${written()}`;
    });
    const { stdout } = await roundhouse(["--help"]);
    const all = [`$ roundhouse --help\n${stdout.trimEnd()}`, ...texts].join("\n\n");
    await expect(`${all}\n`).toMatchFileSnapshot("recorded/help.txt");
  });

  it("refuses an unknown option and a missing argument of each command", async () => {
    const { program } = await programOf();
    const commands = allCommands(program).filter((one) => one.commands.length === 0 && one.name() !== "help");
    const texts: string[] = [];
    for (const words of commands.map(wordsOf)) {
      // a commander that has parsed remembers it
      texts.push(await refused(await programOf(), [...words, "--no-such-option"]));
      const command = allCommands(program).find((one) => wordsOf(one).join(" ") === words.join(" "));
      const needs =
        command?.registeredArguments.some(({ required }) => required) === true ||
        command?.options.some(({ mandatory, defaultValue }) => mandatory && defaultValue === undefined) === true;
      if (needs) texts.push(await refused(await programOf(), words));
    }
    expect(texts.length).toBeGreaterThan(commands.length);
    await expect(`${texts.join("\n\n")}\n`).toMatchFileSnapshot("recorded/refused.txt");
  });
});
