import { Command, CommanderError } from "commander";
import { reasonOf, UsageError } from "../errors.ts";
import { VERSION } from "../version.ts";
import { COMMANDS } from "./commands.ts";
import { addHelp, allCommands } from "./help.ts";
import { ReaderGone, say } from "./output.ts";

/** Ended as asked: 0. Failed: 1. Asked for in a wrong way (arguments, environment, houses file): 2. */
const FAILED = 1;
const WRONG_USAGE = 2;

/**
 * Runs the program with the words behind its name and returns the exit code: 0 done, 1 failed, 2 wrong usage. It never
 * throws: an error is printed to stderr, with `--json` as one line of JSON. A command may leave connections that still
 * retry: end the process afterwards.
 */
export async function runProgram(words: readonly string[]): Promise<number> {
  const isJson = words.includes("--json");
  try {
    const program = await makeProgram(words, isJson);
    await program.parseAsync(words, { from: "user" });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    return exitCodeFor(error, isJson);
  }
}

async function makeProgram(words: readonly string[], isJson: boolean): Promise<Command> {
  const program = new Command("roundhouse")
    .description("verified rounds and calibrated forecasts of crash games, polled from houses and served to callers")
    .version(VERSION)
    .enablePositionalOptions() // what comes after a command is its own: `verify` and `verify rounds` both have --table
    .addHelpText(
      "after",
      "\n`roundhouse COMMAND --help` shows what a command does, with an example. Results go to stdout, progress and questions to stderr;\n" +
        "with --json an error is one line of JSON there. Exit codes: 0 done, 1 failed, 2 wrong usage.\n" +
        "Completion: `roundhouse complete bash|zsh|fish` prints a script for your shell.",
    );
  for (const [purpose, commands] of Object.entries(COMMANDS)) {
    program.commandsGroup(purpose);
    for (const [name, load] of Object.entries(commands)) {
      if (needsCommand(words, name)) program.addCommand(await load());
    }
  }
  program.commandsGroup("This program:");
  if (!isKnown(words[0])) (await import("@bomb.sh/tab/commander")).default(program);
  addHelp(program);
  for (const command of allCommands(program)) {
    command.exitOverride().showHelpAfterError("(add --help to see how it is used)");
    if (isJson) command.configureOutput({ writeErr: () => undefined }); // printed as JSON instead
    refuseRepeats(command);
  }
  return program;
}

/** Refuses a second value of an option that has one: commander would ignore the first. */
function refuseRepeats(command: Command): void {
  for (const option of command.options) {
    if (option.variadic || option.isBoolean()) continue;
    let isGiven = false;
    command.on(`option:${option.name()}`, (value: string | null) => {
      if (isGiven) command.error(`error: expected ${option.long} once, found it again: ${value}`);
      isGiven = true;
    });
  }
}

function isKnown(name = ""): boolean {
  return Object.values(COMMANDS).some((commands) => Object.hasOwn(commands, name));
}

/** Whether a call needs this command. Loading all of them takes half a second, which each Tab would wait for. */
function needsCommand([asked = "", second = "", third = "", ...rest]: readonly string[], name: string): boolean {
  if (isKnown(asked)) return name === asked;
  if (["-V", "--version"].includes(asked) || (asked === "complete" && second !== "--")) return false;
  if (asked === "help" && isKnown(second)) return name === second;
  if (asked === "complete" && rest.length > 0 && isKnown(third)) return name === third;
  return true;
}

function exitCodeFor(thrown: unknown, isJson: boolean): number {
  if (thrown instanceof ReaderGone) return 0;
  if (thrown instanceof CommanderError) {
    if (thrown.exitCode === 0) return 0; // help that was asked for
    // without --json, commander has printed the problem already
    const message = thrown.code === "commander.help" ? "expected a command" : thrown.message.replace(/^error: /, "");
    if (isJson) report(isJson, "usage", message);
    return WRONG_USAGE;
  }
  if (thrown instanceof UsageError) {
    report(isJson, "usage", thrown.message, thrown.problems);
    return WRONG_USAGE;
  }
  const isBug = [TypeError, RangeError, ReferenceError, SyntaxError].some((kind) => thrown instanceof kind);
  report(isJson, isBug ? "bug" : "failed", reasonOf(thrown));
  if (isBug && !isJson && thrown instanceof Error) say(`this is a bug: ${thrown.stack}`);
  return FAILED;
}

/** Prints an error to stderr: one line of JSON with --json, otherwise a sentence. */
function report(
  isJson: boolean,
  code: "usage" | "failed" | "bug",
  message: string,
  problems: UsageError["problems"] = [],
): void {
  say(isJson ? JSON.stringify({ error: { code, message, problems } }) : `roundhouse: ${message}`);
}
