import { Command, Option } from "commander";
import { listAccounts } from "../../callers/account-store.ts";
import { createAccount } from "../../callers/store.ts";
import { nested } from "../../db/nested.ts";
import { UsageError } from "../../errors.ts";
import { addAccountDecisions } from "./account-decide.ts";
import { emailAddress, examples, someText, wholeNumber } from "../arguments.ts";
import { audited } from "../audited.ts";
import { paint, print, printJson, printTable, say, shortTime, snakeKeys } from "../output.ts";
import { withDatabase } from "../session.ts";

/** `roundhouse account …`: who holds keys and plans. */
export function accountCommand(): Command {
  const command = new Command("account")
    .description("accounts, which hold keys and a plan")
    .addHelpText("after", examples("account list", "account show ann@example.com"));
  command
    .command("create")
    .description("create an account, which counts as verified; nothing changes if it exists")
    .argument("<email>", "its address", emailAddress)
    .option("--json", "print a JSON object", false)
    .addHelpText("after", examples("account create ann@example.com"))
    .action((email: string, { json }: { json: boolean }) =>
      withDatabase(async ({ sql }) => {
        const outcome = await audited(
          sql,
          (tx) => createAccount(nested(tx), email),
          (made) =>
            made.ok && made.created
              ? { action: "account.create", target: `account ${made.id}`, after: { verified: true } }
              : null,
        );
        if (!outcome.ok) throw new UsageError(outcome.reason);
        const { id, created } = outcome;
        if (json) return printJson({ id, email, created });
        await print(created ? `made the account ${email}` : `the account ${email} is there already`);
      }),
    );
  command
    .command("list")
    .description("list accounts, newest first, with plan, active keys and last call")
    .option("--search <text>", "a part of the address, an id, or the last four characters of a key", someText)
    .addOption(new Option("--state <state>", "those in one state").choices(["active", "suspended"]))
    .option("--limit <n>", "at most this many", wholeNumber(1, 10_000), 50)
    .option("--json", "print a JSON array", false)
    .addHelpText("after", examples("account list", "account list --state suspended --json"))
    .action(list);
  addAccountDecisions(command);
  return command;
}

interface ListArguments {
  search?: string;
  state?: "active" | "suspended";
  limit: number;
  json: boolean;
}

async function list({ search = "", state, limit, json }: ListArguments): Promise<void> {
  await withDatabase(async ({ sql }) => {
    const isSuspended = state === undefined ? null : state === "suspended";
    const wanted = { text: search, isSuspended, sort: "created", isDown: true } as const;
    const { rows, total } = await listAccounts(sql, wanted, { page: 1, perPage: limit });
    if (json) return printJson(rows.map(snakeKeys));
    await printTable(
      ["id", "e-mail", "state", "plan", "until", "keys", "made at", "last call"],
      rows.map((row) => [
        row.id,
        row.email,
        row.suspendedAt === null ? paint.green("active") : paint.red("suspended"),
        row.plan,
        shortTime(row.planEndsAt),
        row.keys,
        shortTime(row.createdAt),
        shortTime(row.lastUsedAt),
      ]),
    );
    if (total > rows.length) say(`${rows.length} of ${total}; --limit shows more`);
  });
}
