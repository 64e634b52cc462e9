import { Command, InvalidArgumentError } from "commander";
import { parseMultiplier } from "../../houses/reading/multiplier.ts";
import { reviseRound, resultText } from "../../corrections/revision.ts";
import { type ListedRevision, listRevisions } from "../../corrections/revision-store.ts";
import { examples, someText, tableName, wholeNumber } from "../arguments.ts";
import { operator } from "../operator.ts";
import { print, printJson, printTable, shortTime, snakeKeys } from "../output.ts";
import { applyDecision, decisionJson, decisionText, multiplierOf } from "./revision-output.ts";
import { withDatabase } from "../session.ts";
import { findTableByName } from "../table-name.ts";

interface ReviseArguments {
  table: string;
  round: string;
  to: { hundredths: bigint | null };
  reason: string;
  json: boolean;
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
  command
    .command("revise")
    .description(
      "correct the result of a round, or void it; manual runs use the correction, and forecasts of the round are not counted",
    )
    .requiredOption("--table <house/game/market>", "the table", tableName)
    .requiredOption("--round <id>", "the round, by the house's own id")
    .requiredOption("--to <multiplier|void>", "what it was, such as 2.04, or void", multiplierOrVoid)
    .requiredOption("--reason <text>", "why", someText)
    .option("--json", "print one JSON object", false)
    .addHelpText(
      "after",
      examples(
        'round revise --table bustabit/crash/global --round 812 --to 2.04 --reason "the house corrected it"',
        'round revise --table bustabit/crash/global --round 813 --to void --reason "test round" --json',
      ),
    )
    .action(({ table: name, round: roundId, to, reason, json }: ReviseArguments) =>
      withDatabase(async ({ sql, settings }) => {
        const table = await findTableByName(sql, name);
        const entry = { action: "round.revise", reason };
        const decided = await applyDecision({ sql, level: settings.LOG_LEVEL }, entry, (tx) =>
          reviseRound(tx, { tableId: table.id, roundId }, { to: to.hundredths, by: operator(), reason }),
        );
        await (json ? printJson(decisionJson(decided)) : print(decisionText(decided)));
      }),
    );
}

function addRevisions(command: Command): void {
  command
    .command("revisions")
    .description("list manual corrections of rounds, newest first")
    .option("--table <house/game/market>", "those of one table", tableName)
    .option("--round <id>", "those of one round")
    .option("--limit <n>", "at most this many", wholeNumber(1, 10_000), 50)
    .option("--json", "print a JSON array", false)
    .addHelpText("after", examples("round revisions", "round revisions --table bustabit/crash/global --json"))
    .action((given: { table?: string; round?: string; limit: number; json: boolean }) =>
      withDatabase(async ({ sql }) => {
        const table = given.table === undefined ? null : await findTableByName(sql, given.table);
        const asked = { tableId: table?.id ?? null, roundId: given.round ?? null, limit: given.limit };
        const rows = await listRevisions(sql, asked);
        if (given.json) return printJson(rows.map(revisionJson));
        await printTable(
          ["id", "table", "round", "from", "to", "at", "by", "reason"],
          rows.map((row) => [
            row.id,
            row.table,
            row.roundId,
            resultText(row.from),
            resultText(row.to),
            shortTime(row.at),
            row.by,
            row.reason,
          ]),
        );
      }),
    );
}

function revisionJson({ from, to, ...row }: ListedRevision): object {
  return { ...snakeKeys(row), from: multiplierOf(from), to: multiplierOf(to) };
}

/** In an object, since commander ignores a parser that returns null. */
function multiplierOrVoid(text: string): ReviseArguments["to"] {
  if (text === "void") return { hundredths: null };
  const read = parseMultiplier(text, { scale: 1, instant: [] });
  if (read.ok) return { hundredths: BigInt(read.hundredths) };
  throw new InvalidArgumentError(`${read.reason}.`);
}
