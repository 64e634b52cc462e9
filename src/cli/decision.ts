import type { Command } from "commander";
import type { Decided, Made } from "../audit/decision.ts";
import type { Transaction } from "../db/client.ts";
import { UsageError } from "../errors.ts";
import { announce } from "./announce.ts";
import { someText } from "./arguments.ts";
import { audited } from "./audited.ts";
import { operator } from "./operator.ts";
import { print, printJson } from "./output.ts";
import { type Session, withDatabase } from "./session.ts";

/** What a decision adds to its audit entry, and whether what API processes publish changes. */
interface DecisionFacts {
  action: string;
  reason?: string | null | undefined;
  isPublished?: true | undefined;
}

/**
 * Makes a decision and writes its audit entry in one transaction, then notifies the API processes if it is published.
 * @throws Error with the problem of a refusal, UsageError if what it was about does not exist
 */
export async function decide<More extends object>(
  { sql, settings }: Pick<Session, "sql" | "settings">,
  { action, reason = null, isPublished }: DecisionFacts,
  work: (tx: Transaction) => Promise<Decided<More>>,
): Promise<Made<More>> {
  const done = await audited(sql, work, (decided) =>
    decided.ok && decided.didNothing !== true ? { ...decided, action, reason } : null,
  );
  if (!done.ok) throw done.isUnknown === true ? new UsageError(done.problem) : new Error(done.problem);
  if (isPublished === true) await announce(sql, settings.LOG_LEVEL);
  return done;
}

/** What a decision is made from: the first argument of its command, the options, and the user of this machine. */
export type Given<Subject, Options = object> = Options & { subject: Subject; reason: string; by: string };

interface Declared<Subject, Options, More extends object> {
  action: string | ((given: Given<Subject, Options>) => string);
  isPublished?: true;
  decide: (tx: Transaction, given: Given<Subject, Options>) => Promise<Decided<More>>;
  json: (done: Made<More>, given: Given<Subject, Options>) => unknown;
}

/** Lets a command make a decision with `--reason`, which prints its message or, with `--json`, an object. */
export function decisionCommand<Subject, Options, More extends object>(
  command: Command,
  { action, isPublished, decide: work, json }: Declared<Subject, Options, More>,
): Command {
  const lacks = (option: string) => command.options.every(({ long }) => long !== option);
  if (lacks("--reason")) command.requiredOption("--reason <text>", "why", someText);
  if (lacks("--json")) command.option("--json", "print one JSON object", false);
  return command.action(() =>
    withDatabase(async (session) => {
      const options = command.opts<Options & { reason: string; json: boolean }>();
      const given = { ...options, subject: command.processedArgs[0] as Subject, by: operator() };
      const facts = {
        action: typeof action === "string" ? action : action(given),
        reason: options.reason,
        isPublished,
      };
      const done = await decide(session, facts, (tx) => work(tx, given));
      await (options.json ? printJson(json(done, given)) : print(done.message));
    }),
  );
}
