import { Command, CommanderError } from "commander";
import { COMMANDS } from "./cli/commands.ts";
import { addHelp, allCommands } from "./cli/help.ts";
import { say } from "./cli/output.ts";
import { codeOf, reasonOf, UsageError } from "./errors.ts";
import { VERSION } from "./version.ts";

/** Ended as asked: 0. Failed: 1. Asked for in a wrong way (arguments, environment, houses file): 2. */
const FAILED = 1;
const WRONG_USAGE = 2;

const isJson = process.argv.includes("--json");
const program = new Command("roundhouse")
  .description("verified rounds of crash games, polled from their houses and served to callers")
  .version(VERSION)
  .enablePositionalOptions() // what comes after a command is its own: `verify` and `verify rounds` both have --table
  .addHelpText(
    "after",
    "\n`roundhouse COMMAND --help` shows what a command does, with an example. Facts go to stdout, talk to stderr;\n" +
      "with --json an error is one line of JSON there. Exit codes: 0 done, 1 failed, 2 wrong usage.\n" +
      "Completion: `roundhouse complete bash|zsh|fish` prints a script for your shell.",
  );
const asked = process.argv[2] ?? "";
const isKnown = Object.values(COMMANDS).some((commands) => Object.hasOwn(commands, asked));
for (const [purpose, commands] of Object.entries(COMMANDS)) {
  program.commandsGroup(purpose);
  for (const [name, load] of Object.entries(commands)) {
    if (!isKnown || name === asked) program.addCommand(await load());
  }
}
program.commandsGroup("This program:");
if (!isKnown) (await import("@bomb.sh/tab/commander")).default(program);
addHelp(program);
for (const command of allCommands(program)) {
  command.exitOverride().showHelpAfterError("(add --help to see how it is used)");
  if (isJson) command.configureOutput({ writeErr: () => undefined }); // printed below as JSON
}

// A reader that stops early, such as `| head`, and a closed terminal are no failures.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error) => {
    if (!isReaderGone(error)) throw error;
  });
}

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = exitCodeFor(error);
}
// Everything is printed and closed. A connection that still retries must not keep the process alive.
process.exit();

function exitCodeFor(thrown: unknown): number {
  if (isReaderGone(thrown)) return 0;
  if (thrown instanceof CommanderError) {
    if (thrown.exitCode === 0) return 0; // help that was asked for
    // without --json, commander has printed the problem already
    if (isJson)
      report("usage", thrown.code === "commander.help" ? "expected a command" : thrown.message.replace(/^error: /, ""));
    return WRONG_USAGE;
  }
  if (thrown instanceof UsageError) {
    report("usage", thrown.message, thrown.problems);
    return WRONG_USAGE;
  }
  const isBug = [TypeError, RangeError, ReferenceError, SyntaxError].some((kind) => thrown instanceof kind);
  report(isBug ? "bug" : "failed", reasonOf(thrown));
  if (isBug && !isJson && thrown instanceof Error) say(`this is a bug: ${thrown.stack}`);
  return FAILED;
}

/** Prints an error to stderr: one line of JSON with --json, otherwise a sentence. */
function report(code: "usage" | "failed" | "bug", message: string, problems: UsageError["problems"] = []): void {
  say(isJson ? JSON.stringify({ error: { code, message, problems } }) : `roundhouse: ${message}`);
}

function isReaderGone(error: unknown): boolean {
  return ["EPIPE", "EIO"].includes(codeOf(error));
}
