import { Command } from "commander";
import { giveUpGap, openGapAgain } from "../../corrections/close-gap.ts";
import { listGaps, type GapState } from "../../rounds/gaps/gap-list-store.ts";
import { examples } from "../arguments.ts";
import { oneId } from "../ids.ts";
import { inState, listCommand, ofTables } from "../list-command.ts";
import { shortTime } from "../output.ts";
import { decisionCommand, type Given } from "../decision.ts";

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
  const close = command
    .command("close")
    .description("abandon an open gap: its rounds are not requested again")
    .argument("<id>", "its id, as `gap list` shows it", oneId)
    .addHelpText("after", examples('gap close 12 --reason "the house lost them"'));
  decisionCommand(close, {
    action: "gap.close",
    isPublished: true,
    decide: (tx, { subject, by, reason }: Given<bigint>) => giveUpGap(tx, subject, { by, reason }),
    json: gapJson,
  });
}

function addOpen(command: Command): void {
  const open = command
    .command("open")
    .description("reopen an abandoned gap, to be requested immediately")
    .argument("<id>", "its id, as `gap list` shows it", oneId)
    .addHelpText("after", examples('gap open 12 --reason "they have a history now"'));
  decisionCommand(open, {
    action: "gap.open",
    isPublished: true,
    decide: (tx, { subject }: Given<bigint>) => openGapAgain(tx, subject),
    json: gapJson,
  });
}

function gapJson({ table, state }: { table: string; state: GapState["state"] }, { subject: id }: Given<bigint>) {
  return { id, table, state };
}
