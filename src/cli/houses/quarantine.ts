import { Command } from "commander";
import { UsageError } from "../../errors.ts";
import { decideOnItems, QUARANTINE_ACTIONS } from "../../corrections/quarantine-decisions.ts";
import { findItem, listItems, type ListedItem } from "../../rounds/lists/quarantine-list-store.ts";
import { examples } from "../arguments.ts";
import { manyIds, oneId } from "../ids.ts";
import { filter, inState, listCommand, ofTables } from "../list-command.ts";
import { print, printJson, shortTime, snakeKeys } from "../output.ts";
import { decisionCommand, type Given } from "../decision.ts";
import { withDatabase } from "../session.ts";

/** `roundhouse quarantine …`: quarantined items, each with its reason. */
export function quarantineCommand(): Command {
  const command = new Command("quarantine")
    .description("items of responses that failed validation")
    .addHelpText("after", examples("quarantine list --state open", "quarantine show 12"));
  addList(command);
  addShow(command);
  command.addCommand(decision("discard", "discarded", "discard items: they are no longer listed as open"));
  command.addCommand(
    decision(
      "release",
      "released",
      "release items: they are accepted when their payload is read again, or the house lists them again",
    ),
  );
  return command;
}

function addList(command: Command): void {
  listCommand(command, {
    description: "list items, last seen first, with the reason of each",
    filters: {
      ...ofTables(),
      state: inState("open", "released", "discarded"),
      code: filter("--code <code>", "items quarantined for one reason, such as proof_mismatch", String),
    },
    hasLimit: true,
    jsonDescription: "print a JSON array; of each item the first 240 characters, `quarantine show` has more",
    examples: ["quarantine list --state open", "quarantine list --code stuck_feed --json"],
    read: ({ sql }, values, newest) => listItems(sql, values, newest),
    columns: [
      ["id", (item) => item.id],
      ["table", (item) => item.table],
      ["round", (item) => item.roundId],
      ["code", (item) => item.code],
      ["seen", (item) => item.times],
      ["last seen", (item) => shortTime(item.lastSeenAt)],
      ["state", (item) => item.state],
      ["reason", (item) => item.reason],
    ],
    toJson: forPrograms,
  });
}

function addShow(command: Command): void {
  command
    .command("show")
    .description("show an item as received, with its reason")
    .argument("<id>", "its id, as `quarantine list` shows it", oneId)
    .option("--json", "print one JSON object", false)
    .addHelpText("after", examples("quarantine show 12", "quarantine show 12 --json"))
    .action((id: bigint, { json }: { json: boolean }) =>
      withDatabase(async ({ sql }) => {
        const item = await findItem(sql, id);
        if (item === null) throw new UsageError(`there is no item ${id} in quarantine`);
        if (json) return printJson(forPrograms(item));
        const { item: raw, ...facts } = item;
        const lines = Object.entries(snakeKeys(facts)).map(([name, value]) => `${name.padEnd(20)} ${value ?? "-"}`);
        await print(`${lines.join("\n")}\n\n${raw}`);
      }),
    );
}

function decision(name: "discard" | "release", state: "discarded" | "released", description: string): Command {
  const command = new Command(name)
    .description(description)
    .argument("<id...>", "ids, as `quarantine list` shows them", manyIds)
    .addHelpText("after", examples(`quarantine ${name} 12 13 --reason "the house confirmed it"`));
  return decisionCommand(command, {
    action: QUARANTINE_ACTIONS[state],
    isPublished: true,
    decide: (tx, { subject: ids, by, reason }: Given<bigint[]>) => decideOnItems(tx, ids, { state, by, reason }),
    json: ({ ids }) => ({ state, ids }),
  });
}

function forPrograms(item: ListedItem): object {
  const { tableId: _, stored, ...row } = item;
  return { ...snakeKeys(row), stored_hundredths: stored };
}
