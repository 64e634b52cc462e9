import { Command, Option } from "commander";
import { type Overlap, OVERLAPS, rotateKey } from "../../callers/rotation-store.ts";
import { createKey, type ListedKey, listKeys, revokeKey } from "../../callers/key-store.ts";
import { nested } from "../../db/nested.ts";
import { examples, knownAddress, someText, wholeNumber } from "../arguments.ts";
import { filter, listCommand } from "../list-command.ts";
import { paint, print, printJson, say, shortTime, snakeKeys } from "../output.ts";
import { decide, decisionCommand, type Given } from "../decision.ts";
import { withDatabase } from "../session.ts";

/** `roundhouse key …`: making, listing, rotating and revoking API keys. */
export function keyCommand(): Command {
  const command = new Command("key")
    .description("API keys")
    .addHelpText("after", examples("key list", "key create --account ann@example.com --plan Pro"));
  addCreate(command);
  addList(command);
  addRotate(command);
  addRevoke(command);
  return command;
}

function addCreate(command: Command): void {
  command
    .command("create")
    .description("create a key and print it once; an account without a plan gets that plan without an end")
    .requiredOption("--account <email>", "the owner of the key", knownAddress)
    .requiredOption("--plan <name>", "the plan it is for")
    .option("--name <text>", "the name of the key, for the account's holder", someText, "default")
    .option("--days <days>", "days until it expires; without it the key does not expire", wholeNumber(1))
    .option("--json", "print a JSON object", false)
    .addHelpText("after", examples("key create --account ann@example.com --plan Pro"))
    .action((options: { account: string; plan: string; name: string; days?: number; json: boolean }) =>
      withDatabase(async (session) => {
        const { account, plan, name, days = null, json } = options;
        const made = await decide(session, { action: "key.create" }, (tx) =>
          createKey(nested(tx), { email: account, plan, name, days }),
        );
        const { id, key } = made;
        if (json) return printJson({ id, key, account, plan: made.plan, name });
        await print(key);
        say(made.message);
      }),
    );
}

function addList(command: Command): void {
  listCommand(command, {
    description: "list all keys, or those of an account; only the last four characters of a key are stored",
    filters: {
      account: filter("--account <email>", "only those of this account", knownAddress),
    },
    examples: ["key list", "key list --account ann@example.com --json"],
    read: ({ sql }, { account }) => listKeys(sql, account),
    columns: [
      ["id", (key) => key.id],
      ["account", (key) => key.account],
      ["name", (key) => key.name],
      ["key", (key) => `…${key.last4}`],
      ["state", (key) => STATES[key.state]],
      ["plan", (key) => key.plan],
      ["made at", (key) => shortTime(key.createdAt)],
      ["last used at", (key) => shortTime(key.lastUsedAt)],
      ["expires at", (key) => shortTime(key.expiresAt)],
      ["replaced by", (key) => key.replacedBy],
    ],
    toJson: keyJson,
  });
}

function addRotate(command: Command): void {
  command
    .command("rotate")
    .description("replace a key by a new one and print it once; the old key works until the overlap ends")
    .argument("<key>", "its id, its last four characters, or the key itself")
    .addOption(
      new Option("--overlap <time>", "how long the old one still works").choices(Object.keys(OVERLAPS)).default("24h"),
    )
    .option("--json", "print a JSON object", false)
    .addHelpText("after", examples("key rotate 42", "key rotate x9Qz --overlap 7d"))
    .action((which: string, { overlap, json }: { overlap: Overlap; json: boolean }) =>
      withDatabase(async (session) => {
        const { id, key, account, name, replaced, message } = await decide(session, { action: "key.rotate" }, (tx) =>
          rotateKey(nested(tx), which, overlap),
        );
        if (json) return printJson({ id, key, account, name, replaced });
        await print(key);
        say(message);
        say(`key ${replaced.id} ${overlap === "0" ? "has ended" : `works until ${shortTime(replaced.expires_at)}`}`);
      }),
    );
}

function addRevoke(command: Command): void {
  const revoke = command
    .command("revoke")
    .description("revoke a key immediately")
    .argument("<key>", "its id, its last four characters, or the key itself")
    .option("--reason <text>", "why, for the audit log", someText)
    .addHelpText("after", examples("key revoke 42", 'key revoke x9Qz --reason "it was in a public repository"'));
  decisionCommand(revoke, {
    action: "key.revoke",
    decide: (tx, { subject }: Given<string>) => revokeKey(nested(tx), subject),
    json: ({ id, last4 }) => ({ id, last4, state: "revoked" }),
  });
}

/** A key as JSON shows it. */
export function keyJson(key: ListedKey): object {
  return snakeKeys({ ...key, accountId: undefined, revokedAt: undefined, replacedByLast4: undefined });
}

const STATES: Record<ListedKey["state"], string> = {
  active: paint.green("active"),
  expiring: paint.yellow("expiring"),
  expired: paint.red("expired"),
  revoked: paint.red("revoked"),
};
