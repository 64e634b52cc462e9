import { Command, CommanderError } from "commander";
import { say } from "./cli/output.ts";
import { loadSettings } from "./config.ts";
import { codeOf, reasonOf, UsageError } from "./errors.ts";
import { VERSION } from "./version.ts";

/** Ended as asked: 0. Failed: 1. Asked for in a wrong way (arguments, environment, houses file): 2. */
const FAILED = 1;
const WRONG_USAGE = 2;

type Load = () => Promise<Command>;

/** Every command, by what one uses it for. Each is loaded when it is asked for: all of them together take half a second. */
const COMMANDS: Record<string, Record<string, Load>> = {
  "Running:": {
    up: async () => (await import("./cli/up.ts")).upCommand(),
    api: async () => (await import("./cli/api.ts")).apiCommand(),
    worker: async () => (await import("./cli/worker.ts")).workerCommand(),
    migrate: async () => (await import("./cli/migrate.ts")).migrateCommand(),
    "demo-house": async () => (await import("./cli/demo-house.ts")).demoHouseCommand(demoSettings),
  },
  "Looking after it:": {
    doctor: async () => (await import("./cli/doctor.ts")).doctorCommand(),
    house: async () => (await import("./cli/house.ts")).houseCommand(),
    table: async () => (await import("./cli/table.ts")).tableCommand(),
    queue: async () => (await import("./cli/queue.ts")).queueCommand(),
    payload: async () => (await import("./cli/payload.ts")).payloadCommand(),
    quarantine: async () => (await import("./cli/quarantine.ts")).quarantineCommand(),
    conflict: async () => (await import("./cli/conflict.ts")).conflictCommand(),
    round: async () => (await import("./cli/round.ts")).roundCommand(),
    gap: async () => (await import("./cli/gap.ts")).gapCommand(),
    notice: async () => (await import("./cli/notice.ts")).noticeCommand(),
    calibrate: async () => (await import("./cli/calibrate.ts")).calibrateCommand(),
    calibration: async () => (await import("./cli/calibration.ts")).calibrationCommand(),
    accuracy: async () => (await import("./cli/accuracy.ts")).accuracyCommand(),
    audit: async () => (await import("./cli/audit.ts")).auditCommand(),
    verify: async () => (await import("./cli/verify.ts")).verifyCommand(),
  },
  "Data:": {
    backup: async () => (await import("./cli/backup.ts")).backupCommand(),
    restore: async () => (await import("./cli/restore.ts")).restoreCommand(),
    import: async () => (await import("./cli/import.ts")).importCommand(),
    export: async () => (await import("./cli/export.ts")).exportCommand(),
    log: async () => (await import("./cli/log.ts")).logCommand(),
    witness: async () => (await import("./cli/log.ts")).witnessCommand(),
  },
  "Operators:": {
    "ops-user": async () => (await import("./cli/ops-user.ts")).opsUserCommand(),
  },
  "Callers:": {
    account: async () => (await import("./cli/account.ts")).accountCommand(),
    key: async () => (await import("./cli/key.ts")).keyCommand(),
    plan: async () => (await import("./cli/plan.ts")).planCommand(),
    ledger: async () => (await import("./cli/ledger.ts")).ledgerCommand(),
  },
};

const program = new Command("roundhouse")
  .description("verified rounds of crash games, polled from their houses and served to callers")
  .version(VERSION)
  .enablePositionalOptions() // what comes after a command is its own: `verify` and `verify rounds` both have --table
  .addHelpText(
    "after",
    "\n`roundhouse COMMAND --help` shows what a command does, with an example. Facts go to stdout, talk to stderr.\n" +
      "Exit codes: 0 done, 1 failed, 2 wrong usage.",
  );
const asked = process.argv[2] ?? "";
const isKnown = Object.values(COMMANDS).some((commands) => Object.hasOwn(commands, asked));
for (const [purpose, commands] of Object.entries(COMMANDS)) {
  program.commandsGroup(purpose);
  for (const [name, load] of Object.entries(commands)) {
    if (!isKnown || name === asked) program.addCommand(await load());
  }
}
for (const command of allCommands(program)) {
  command.exitOverride().showHelpAfterError("(add --help to see how it is used)");
}

// A reader that has seen enough, as `| head`, and a terminal that was closed are no failures.
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
// Everything is said and undone. A connection that still tries to reach a server that is gone must not keep us.
process.exit();

function demoSettings(): { dataDir: string; host: string } {
  const { DATA_DIR, HOST } = loadSettings();
  return { dataDir: DATA_DIR, host: HOST };
}

function exitCodeFor(thrown: unknown): number {
  // commander has said already what is wrong; help that was asked for has exit code 0
  if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : WRONG_USAGE;
  if (isReaderGone(thrown)) return 0;
  if (thrown instanceof UsageError) {
    say(`roundhouse: ${thrown.message}`);
    return WRONG_USAGE;
  }
  const isBug = [TypeError, RangeError, ReferenceError, SyntaxError].some((kind) => thrown instanceof kind);
  say(`roundhouse: ${reasonOf(thrown)}`);
  if (isBug && thrown instanceof Error) say(`this is a bug: ${thrown.stack}`);
  return FAILED;
}

function isReaderGone(error: unknown): boolean {
  return ["EPIPE", "EIO"].includes(codeOf(error));
}

function allCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allCommands)];
}
