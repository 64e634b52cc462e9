import { Command } from "commander";
import { createAccount, listAccounts } from "../../callers/account-store.ts";
import { nested } from "../../db/nested.ts";
import { addAccountDecisions } from "./account-decide.ts";
import { emailAddress, examples, someText } from "../arguments.ts";
import { filter, inState, listCommand } from "../list-command.ts";
import { paint, print, printJson, shortTime } from "../output.ts";
import { decide } from "../decision.ts";
import { withDatabase } from "../session.ts";

/** `roundhouse account …`: who holds keys and plans. */
export function accountCommand(): Command {
  const command = new Command("account")
    .description("accounts, which hold keys and a plan")
    .addHelpText("after", examples("account list", "account show ann@example.com"));
  command
    .command("create")
    .description("create an account, which counts as verified, or verify one that exists")
    .argument("<email>", "its address", emailAddress)
    .option("--json", "print a JSON object", false)
    .addHelpText("after", examples("account create ann@example.com"))
    .action((email: string, { json }: { json: boolean }) =>
      withDatabase(async (session) => {
        const { id, created, message } = await decide(session, { action: "account.create" }, (tx) =>
          createAccount(nested(tx), email),
        );
        return json ? printJson({ id, email, created }) : print(message);
      }),
    );
  addList(command);
  addAccountDecisions(command);
  return command;
}

function addList(command: Command): void {
  const search = "a part of the address, an id, or the last four characters of a key";
  listCommand(command, {
    description: "list accounts, newest first, with plan, active keys and last call",
    filters: {
      search: filter("--search <text>", search, someText),
      state: inState("active", "suspended"),
    },
    hasLimit: true,
    examples: ["account list", "account list --state suspended --json"],
    read: ({ sql }, { search: text, state }, { limit }) =>
      listAccounts(
        sql,
        { text: text ?? "", isSuspended: state && state === "suspended", sort: "created", isDown: true },
        { page: 1, perPage: limit },
      ),
    columns: [
      ["id", (account) => account.id],
      ["e-mail", (account) => account.email],
      ["state", ({ suspendedAt }) => (suspendedAt === null ? paint.green("active") : paint.red("suspended"))],
      ["plan", (account) => account.plan],
      ["until", (account) => shortTime(account.planEndsAt)],
      ["keys", (account) => account.keys],
      ["made at", (account) => shortTime(account.createdAt)],
      ["last call", (account) => shortTime(account.lastUsedAt)],
    ],
  });
}
