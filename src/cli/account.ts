import { Command } from "commander";
import { createAccount } from "../callers/store.ts";
import { nested } from "../db/nested.ts";
import { UsageError } from "../errors.ts";
import { addAccountDecisions } from "./account-decide.ts";
import { examples } from "./arguments.ts";
import { audited } from "./audited.ts";
import { print, printJson } from "./output.ts";
import { withDatabase } from "./session.ts";

/** `roundhouse account …`: who holds keys and plans. */
export function accountCommand(): Command {
  const command = new Command("account").description("accounts, which hold keys and a plan");
  command
    .command("create")
    .description("make an account, which counts as verified; an account that is there already is fine")
    .argument("<email>", "its address")
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
  addAccountDecisions(command);
  return command;
}
