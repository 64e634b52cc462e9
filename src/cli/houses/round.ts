import { Command, InvalidArgumentError } from "commander";
import { parseMultiplier } from "../../houses/reading/multiplier.ts";
import { reviseRound, resultText } from "../../corrections/revision.ts";
import { type ListedRevision, listRevisions } from "../../corrections/revision-store.ts";
import { examples, tableName } from "../arguments.ts";
import { filter, listCommand, ofTable } from "../list-command.ts";
import { shortTime, snakeKeys } from "../output.ts";
import { decisionJson, multiplierOf } from "./revision-output.ts";
import { decisionCommand, type Given } from "../decision.ts";
import { findTableByName } from "../table-name.ts";

interface ReviseOptions {
  table: string;
  round: string;
  to: { hundredths: bigint | null };
}

/** `roundhouse round …`: manual corrections. */
export function roundCommand(): Command {
  const command = new Command("round")
    .description("manual corrections of rounds; the first result stays stored")
    .addHelpText(
      "after",
      examples(
        "round revisions",
        'round revise --table bustabit/crash/global --round 812 --to void --reason "test round"',
      ),
    );
  addRevise(command);
  addRevisions(command);
  return command;
}

function addRevise(command: Command): void {
  const reviseCommand = command
    .command("revise")
    .description(
      "correct the result of a round, or void it; manual runs use the correction, and forecasts of the round are not counted",
    )
    .requiredOption("--table <house/game/market>", "the table", tableName)
    .requiredOption("--round <id>", "the round, by the house's own id")
    .requiredOption("--to <multiplier|void>", "what it was, such as 2.04, or void", multiplierOrVoid)
    .addHelpText(
      "after",
      examples(
        'round revise --table bustabit/crash/global --round 812 --to 2.04 --reason "the house corrected it"',
        'round revise --table bustabit/crash/global --round 813 --to void --reason "test round" --json',
      ),
    );
  decisionCommand(reviseCommand, {
    action: "round.revise",
    isPublished: true,
    async decide(tx, { table, round: roundId, to, by, reason }: Given<undefined, ReviseOptions>) {
      const { id: tableId } = await findTableByName(tx, table);
      return reviseRound(tx, { tableId, roundId }, { to: to.hundredths, by, reason });
    },
    json: decisionJson,
  });
}

function addRevisions(command: Command): void {
  listCommand(command, {
    name: "revisions",
    description: "list manual corrections of rounds, newest first",
    filters: {
      table: ofTable("those of one table"),
      round: filter("--round <id>", "those of one round", String),
    },
    hasLimit: true,
    examples: ["round revisions", "round revisions --table bustabit/crash/global --json"],
    read: ({ sql }, { tableIds, round: roundId }, { limit }) =>
      listRevisions(sql, { tableId: tableIds?.[0] ?? null, roundId, limit }),
    columns: [
      ["id", (revision) => revision.id],
      ["table", (revision) => revision.table],
      ["round", (revision) => revision.roundId],
      ["from", (revision) => resultText(revision.from)],
      ["to", (revision) => resultText(revision.to)],
      ["at", (revision) => shortTime(revision.at)],
      ["by", (revision) => revision.by],
      ["reason", (revision) => revision.reason],
    ],
    toJson: revisionJson,
  });
}

function revisionJson({ from, to, ...row }: ListedRevision): object {
  return { ...snakeKeys(row), from: multiplierOf(from), to: multiplierOf(to) };
}

/** In an object, since commander ignores a parser that returns null. */
function multiplierOrVoid(text: string): ReviseOptions["to"] {
  if (text === "void") return { hundredths: null };
  const read = parseMultiplier(text, { scale: 1, instant: [] });
  if (read.ok) return { hundredths: BigInt(read.hundredths) };
  throw new InvalidArgumentError(`${read.reason}.`);
}
