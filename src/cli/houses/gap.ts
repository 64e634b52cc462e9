import { Command } from "commander";
import { giveUpGap, openGapAgain, type GapOutcome } from "../../corrections/close-gap.ts";
import { listGaps } from "../../rounds/gaps/gap-list-store.ts";
import { announce } from "../announce.ts";
import { examples, someText } from "../arguments.ts";
import { auditedOrThrow } from "../audited.ts";
import { oneId } from "../ids.ts";
import { inState, listCommand, ofTables } from "../list-command.ts";
import { operator } from "../operator.ts";
import { print, printJson, shortTime } from "../output.ts";
import { type Session, withDatabase } from "../session.ts";

/** `roundhouse gap …`: rounds that are missing. */
export function gapCommand(): Command {
  const command = new Command("gap")
    .description("rounds that exist and were not received")
    .addHelpText("after", examples("gap list --state open", 'gap close 12 --reason "the house lost them"'));
  addList(command);
  addClose(command);
  addOpen(command);
  return command;
}

function addList(command: Command): void {
  listCommand(command, {
    description: "list gaps, newest first: missing rounds, attempts, and the next attempt",
    filters: { ...ofTables(), state: inState("open", "filled", "given_up") },
    hasLimit: true,
    examples: ["gap list --state open", "gap list --house bustabit --json"],
    read: ({ sql }, values, newest) => listGaps(sql, values, newest),
    columns: [
      ["id", (gap) => gap.id],
      ["table", (gap) => gap.table],
      ["state", (gap) => gap.state],
      ["from", (gap) => gap.from],
      ["to", (gap) => gap.to],
      ["missing", (gap) => gap.missing],
      ["filled", (gap) => gap.filled],
      ["attempts", (gap) => gap.attempts],
      ["next attempt", (gap) => shortTime(gap.nextAttemptAt)],
      ["reason", (gap) => gap.reason],
    ],
  });
}

function addClose(command: Command): void {
  command
    .command("close")
    .description("abandon an open gap: its rounds are not requested again")
    .argument("<id>", "its id, as `gap list` shows it", oneId)
    .requiredOption("--reason <text>", "why", someText)
    .option("--json", "print one JSON object", false)
    .addHelpText("after", examples('gap close 12 --reason "the house lost them"'))
    .action((id: bigint, { reason, json }: { reason: string; json: boolean }) =>
      withDatabase((session) =>
        change(session, { id, action: "gap.close", reason, json }, (tx) =>
          giveUpGap(tx, id, { by: operator(), reason }),
        ),
      ),
    );
}

function addOpen(command: Command): void {
  command
    .command("open")
    .description("reopen an abandoned gap, to be requested immediately")
    .argument("<id>", "its id, as `gap list` shows it", oneId)
    .requiredOption("--reason <text>", "why", someText)
    .option("--json", "print one JSON object", false)
    .addHelpText("after", examples('gap open 12 --reason "they have a history now"'))
    .action((id: bigint, { reason, json }: { reason: string; json: boolean }) =>
      withDatabase((session) =>
        change(session, { id, action: "gap.open", reason, json }, (tx) => openGapAgain(tx, id)),
      ),
    );
}

async function change(
  { sql, settings }: Session,
  { id, action, reason, json }: { id: bigint; action: string; reason: string; json: boolean },
  work: (tx: Parameters<typeof giveUpGap>[0]) => Promise<GapOutcome>,
): Promise<void> {
  const done = await auditedOrThrow(sql, work, ({ table, before, after }) => {
    return { action, target: `gap ${id} of ${table}`, before, after, reason };
  });
  await announce(sql, settings.LOG_LEVEL);
  const { table, after } = done;
  await (json
    ? printJson({ id, table, state: after.state })
    : print(`gap ${id} of ${table} is ${after.state.replace("_", " ")}`));
}
