import { Command, Option } from "commander";
import { listConflicts, type ListedConflict } from "../../rounds/lists/conflict-list-store.ts";
import { decideConflict, resultText } from "../../corrections/revision.ts";
import { examples, someText } from "../arguments.ts";
import { decide } from "../decision.ts";
import { manyIds } from "../ids.ts";
import { inState, listCommand, ofTables } from "../list-command.ts";
import { operator } from "../operator.ts";
import { print, printJson, shortTime } from "../output.ts";
import { decisionJson, multiplierOf } from "./revision-output.ts";
import { withDatabase } from "../session.ts";

/** `roundhouse conflict …`: rounds that were received with two results. */
export function conflictCommand(): Command {
  const command = new Command("conflict")
    .description("rounds that were received with different results")
    .addHelpText(
      "after",
      examples("conflict list --state open", 'conflict decide 7 --take kept --reason "the house withdrew the second"'),
    );
  addList(command);
  addDecide(command);
  return command;
}

function addList(command: Command): void {
  listCommand(command, {
    description: "list conflicts, newest first: the stored result and the other",
    filters: { ...ofTables(), state: inState("open", "decided") },
    hasLimit: true,
    examples: ["conflict list --state open", "conflict list --house bustabit --json"],
    read: ({ sql }, { tableIds, state }, newest) =>
      listConflicts(sql, { tableIds, isDecided: state && state === "decided" }, newest),
    columns: [
      ["id", (conflict) => conflict.id],
      ["table", (conflict) => conflict.table],
      ["round", (conflict) => conflict.roundId],
      ["kept", (conflict) => resultText(conflict.kept)],
      ["other", (conflict) => resultText(conflict.other)],
      ["times", (conflict) => conflict.times],
      ["last seen", (conflict) => shortTime(conflict.lastSeenAt)],
      ["decided", ({ decidedAt, to }) => (decidedAt === null ? null : resultText(to))],
      ["by", (conflict) => conflict.decidedBy],
    ],
    toJson: forPrograms,
  });
}

function addDecide(command: Command): void {
  command
    .command("decide")
    .description("keep the stored result, or accept the other; forecasts of the round are void in both cases")
    .argument("<id...>", "ids, as `conflict list` shows them", manyIds)
    .addOption(
      new Option("--take <which>", "the result that is right").choices(["kept", "other"]).makeOptionMandatory(),
    )
    .requiredOption("--reason <text>", "why", someText)
    .option("--json", "print a JSON array", false)
    .addHelpText(
      "after",
      examples(
        'conflict decide 7 --take kept --reason "the house withdrew the second"',
        'conflict decide 8 9 --take other --reason "scale was wrong" --json',
      ),
    )
    .action((ids: bigint[], { take, reason, json }: { take: "kept" | "other"; reason: string; json: boolean }) =>
      withDatabase(async (session) => {
        const decided: object[] = [];
        try {
          for (const id of ids) {
            const one = await decide(session, { action: "conflict.decide", reason, isPublished: true }, (tx) =>
              decideConflict(tx, id, { take, by: operator(), reason }),
            );
            if (json) decided.push(decisionJson(one));
            else await print(one.message);
          }
        } finally {
          // each decision has its own transaction: those made before a failure are reported
          if (json) await printJson(decided);
        }
      }),
    );
}

function forPrograms(row: ListedConflict): object {
  return {
    id: row.id,
    table: row.table,
    round_id: row.roundId,
    kept: multiplierOf(row.kept),
    other: multiplierOf(row.other),
    other_raw: row.otherRaw,
    times: row.times,
    further: row.further,
    first_seen_at: row.firstSeenAt,
    last_seen_at: row.lastSeenAt,
    kept_received_at: row.keptReceivedAt,
    other_received_at: row.otherReceivedAt,
    decided_at: row.decidedAt,
    decided_by: row.decidedBy,
    reason: row.decision,
    to: multiplierOf(row.to),
  };
}
