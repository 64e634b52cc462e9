import { Command, InvalidArgumentError, Option } from "commander";
import {
  changeDisabled,
  changeRole,
  createOperator,
  endAllSessions,
  makeHashedPassword,
  type OperatorDecision,
  resetPassword,
  resetTwoFactor,
} from "../../accounts/operators/manage.ts";
import { listOperators } from "../../accounts/operators/operator-store.ts";
import { hashPassword, passwordProblem } from "../../accounts/identity/password.ts";
import { OPERATOR_ROLES, type OperatorRole } from "../../accounts/operators/roles.ts";
import type { Transaction } from "../../db/client.ts";
import { emailProblem } from "../../config/mail.ts";
import { UsageError } from "../../errors.ts";
import { examples, knownAddress, someText } from "../arguments.ts";
import { decide } from "../decision.ts";
import { operator } from "../operator.ts";
import { listCommand } from "../list-command.ts";
import { paint, print, printJson, say, shortTime } from "../output.ts";
import { askPassword } from "./ask-password.ts";
import { withDatabase } from "../session.ts";

interface Given {
  role: OperatorRole;
  generate: boolean;
  reason?: string;
  json: boolean;
}

/** `roundhouse ops-user …`: who may sign in at /ops. */
export function opsUserCommand(): Command {
  const command = new Command("ops-user")
    .description("members of staff, who sign in at /ops, and their roles")
    .addHelpText("after", examples("ops-user list", "ops-user create ann@example.com --role admin"));
  addCreate(command);
  addList(command);
  addSetRole(command);
  for (const one of CHANGES) addChange(command, one);
  addResetPassword(command);
  return command;
}

/** A command that changes a member of staff and takes nothing but the address and a reason. */
interface PlainChange {
  name: string;
  description: string;
  action: string;
  work: (tx: Transaction, who: { email: string }) => Promise<OperatorDecision>;
}

const CHANGES: readonly PlainChange[] = [
  {
    name: "disable",
    description: "sign a member of staff out and refuse new sign-ins",
    action: "operator.disable",
    work: (tx, who) => changeDisabled(tx, who, { isDisabled: true, by: operator() }),
  },
  {
    name: "enable",
    description: "allow a disabled member of staff to sign in again",
    action: "operator.enable",
    work: (tx, who) => changeDisabled(tx, who, { isDisabled: false, by: operator() }),
  },
  {
    name: "end-sessions",
    description: "sign a member of staff out everywhere",
    action: "operator.end-sessions",
    work: endAllSessions,
  },
  {
    name: "reset-two-factor",
    description: "remove the second factor of a member of staff who lost it, and sign them out",
    action: "operator.reset-two-factor",
    work: (tx, who) => resetTwoFactor(tx, who, operator()),
  },
];

const withRole = (one: Command) =>
  one.addOption(new Option("--role <role>", "what they may do").choices(OPERATOR_ROLES).makeOptionMandatory());
const withJson = (one: Command) => one.option("--json", "print a JSON object", false);
const withGenerate = (one: Command) =>
  one.option("--generate", "make a password and print it, once, instead of asking for one", false);
const withReason = (one: Command) => one.option("--reason <text>", "why, for the audit log", someText);

function addCreate(command: Command): void {
  withJson(withGenerate(withRole(command.command("create"))))
    .description(
      "create a member of staff; admins are created only here, and the address must not be that of a holder; asks for the password, or reads it from stdin without a terminal",
    )
    .argument("<email>", "their address, with which they sign in", operatorEmail)
    .addHelpText(
      "after",
      examples(
        "ops-user create ann@example.com --role admin",
        "ops-user create bob@example.com --role viewer --generate",
      ),
    )
    .action((email: string, given: Given) => create(email, given));
}

function addList(command: Command): void {
  listCommand(command, {
    description: "all members of staff",
    examples: ["ops-user list", "ops-user list --json"],
    read: ({ sql }) => listOperators(sql),
    whenEmpty: "no members of staff yet; `roundhouse ops-user create EMAIL --role admin` creates the first",
    columns: [
      ["e-mail", (one) => one.email],
      ["role", (one) => one.role],
      ["state", ({ disabledAt }) => (disabledAt === null ? paint.green("active") : paint.red("disabled"))],
      ["second factor", (one) => (one.hasTwoFactor ? "on" : "off")],
      ["sign-ins", (one) => one.sessions],
      ["last seen", (one) => shortTime(one.seenAt?.toISOString() ?? null)],
      ["made by", (one) => one.createdBy],
    ],
  });
}

function addSetRole(command: Command): void {
  withReason(
    withJson(withRole(command.command("set-role")))
      .description(
        "change the role of a member of staff, effective with the next request; the role admin is given only here",
      )
      .argument("<email>", "their address", knownAddress),
  )
    .addHelpText("after", examples("ops-user set-role ann@example.com --role operator"))
    .action((email: string, given: Given) =>
      change(email, given, "operator.role", (tx, who) =>
        changeRole(tx, who, { role: given.role, was: null, by: operator() }),
      ),
    );
}

function addChange(command: Command, { name, description, action, work }: PlainChange): void {
  withReason(
    withJson(command.command(name)).description(description).argument("<email>", "their address", knownAddress),
  )
    .addHelpText("after", examples(`ops-user ${name} ann@example.com`))
    .action((email: string, given: Given) => change(email, given, action, work));
}

function addResetPassword(command: Command): void {
  withReason(
    withJson(withGenerate(command.command("reset-password")))
      .description(
        "set a new password and sign the member of staff out; for 24 hours they cannot approve; asks for the password, or reads it from stdin",
      )
      .argument("<email>", "their address", knownAddress),
  )
    .addHelpText("after", examples("ops-user reset-password ann@example.com --generate"))
    .action(async (email: string, given: Given) => {
      const { password, passwordHash } = await newPassword(email, given.generate);
      const work: PlainChange["work"] = (tx, who) => resetPassword(tx, who, passwordHash, operator());
      await change(email, given, "operator.reset-password", work, given.generate ? password : null);
    });
}

/** Parses an address for sign-in: its domain must have a dot, so the demo account's is none. */
function operatorEmail(text: string): string {
  const problem = emailProblem(text);
  if (problem === null) return text;
  throw new InvalidArgumentError(`${problem}.`);
}

async function create(email: string, { role, generate, json }: Given): Promise<void> {
  const { password, passwordHash } = await newPassword(email, generate);
  const made = await withDatabase((session) =>
    decide(session, { action: "operator.create" }, (tx) =>
      createOperator(tx, { email, role, passwordHash, by: operator() }),
    ),
  );
  const printed = generate ? password : null;
  if (json) return printJson({ email: made.email, role, password: printed });
  if (printed !== null) await print(printed);
  say(made.message);
}

async function change(
  email: string,
  { reason, json }: Given,
  action: string,
  work: PlainChange["work"],
  password: string | null = null,
): Promise<void> {
  const done = await withDatabase((session) => decide(session, { action, reason }, (tx) => work(tx, { email })));
  if (json) return printJson({ email: done.email, ...done.after, ...(password === null ? {} : { password }) });
  if (password !== null) await print(password);
  say(done.message);
}

async function newPassword(email: string, generate: boolean): Promise<{ password: string; passwordHash: string }> {
  if (generate) return makeHashedPassword();
  const password = await askPassword(`password of ${email}: `);
  const problem = await passwordProblem(password, email);
  if (problem !== null) throw new UsageError(problem);
  return { password, passwordHash: await hashPassword(password) };
}
