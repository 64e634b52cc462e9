import { z } from "zod";
import {
  type Change,
  changeDisabled,
  changeRole,
  createOperator,
  endAllSessions,
  makeHashedPassword,
  resetPassword,
  resetTwoFactor,
} from "../../accounts/operators/manage.ts";
import { findOperator, listOperators } from "../../accounts/operators/operator-store.ts";
import { OPERATOR_ROLES } from "../../accounts/operators/roles.ts";
import { appendAudit } from "../../audit/store.ts";
import type { Transaction } from "../../db/client.ts";
import { auditEntry } from "../audit-entry.ts";
import { type Done, type OpsAction, opsAction, type OpsPage, opsPage, type Sent, type Visitor } from "../contract.ts";
import { PageError } from "../../frame/errors.ts";

const LIST = "/ops/people";
/** Roles that `/ops` gives: the database lets its login make no admin. */
const GIVEN_ROLES = OPERATOR_ROLES.filter((role) => role !== "admin");
const givenRole = z.enum(GIVEN_ROLES, "expected viewer, operator or data; an admin is made with `roundhouse ops-user`");
const nothing = z.strictObject({});
const reason = z.string().trim().min(3, "expected a reason of at least 3 characters").max(500);
const withReason = z.strictObject({ reason });

const peoplePage = opsPage({
  path: "/people",
  nav: { label: "People", order: 40, group: "Administration" },
  query: nothing,
  async show({ sql }) {
    const data = { operators: await listOperators(sql), roles: GIVEN_ROLES };
    return { template: "people/people", title: "People", data };
  },
});

const personPage = opsPage({
  path: "/people/:id",
  query: nothing,
  async show({ sql }, { params }) {
    const operator = await findOperator(sql, { id: params["id"] ?? "" });
    if (operator === null) return null;
    const crumbs = [{ label: "People", href: LIST }];
    return { template: "people/person", title: operator.email, data: { operator, roles: GIVEN_ROLES }, crumbs };
  },
});

const create: OpsAction = opsAction({
  name: "operator.create",
  title: "Add member of staff",
  path: "/people",
  roles: [],
  isDangerous: true,
  form: z.strictObject({ email: z.email().max(254), role: givenRole }),
  async run({ sql }, { visitor, form }) {
    const { password, passwordHash } = await makeHashedPassword();
    const made = await sql.begin(async (tx) => {
      const change = await createOperator(tx, { ...form, passwordHash, by: visitor.email });
      await note(tx, visitor, create.name, change, null);
      return change;
    });
    if (!made.ok) return { ok: false, problem: made.reason };
    const message = `${made.email} is ${form.role} now`;
    return { ok: true, message, location: LIST, once: shownOnce(made.email, password) };
  },
});

const role: OpsAction = opsAction({
  name: "operator.role",
  title: "Change role",
  path: "/people/:id/role",
  roles: [],
  isDangerous: true,
  form: z.strictObject({ role: givenRole, was: z.string().max(20), reason }),
  run: (parts, sent) =>
    changing(parts, sent, {
      name: role.name,
      outcome: `is ${sent.form.role} now`,
      change: (tx, who, by) => changeRole(tx, who, { role: sent.form.role, was: sent.form.was, by }),
    }),
});

const disable = simple(
  { name: "operator.disable", title: "Disable sign-in", path: "disable", outcome: "cannot sign in any more" },
  (tx, who) => changeDisabled(tx, who, true),
);
const enable = simple(
  { name: "operator.enable", title: "Enable sign-in", path: "enable", outcome: "can sign in again" },
  (tx, who) => changeDisabled(tx, who, false),
);
const endThem = simple(
  { name: "operator.end-sessions", title: "End sign-ins", path: "end-sessions", outcome: "is signed out everywhere" },
  endAllSessions,
);
const dropFactor = simple(
  {
    name: "operator.reset-two-factor",
    title: "Turn off two-factor authentication",
    path: "reset-two-factor",
    outcome: "has no second factor any more",
  },
  resetTwoFactor,
);

const newPassword: OpsAction = opsAction({
  name: "operator.reset-password",
  title: "Reset password",
  path: "/people/:id/reset-password",
  roles: [],
  isDangerous: true,
  form: withReason,
  async run(parts, sent) {
    const { password, passwordHash } = await makeHashedPassword();
    let email = "";
    const done = await changing(parts, sent, {
      name: newPassword.name,
      outcome: "has a new password",
      async change(tx, who, by) {
        const change = await resetPassword(tx, who, passwordHash, by);
        if (change.ok) email = change.email;
        return change;
      },
    });
    return done.ok ? { ...done, once: shownOnce(email, password) } : done;
  },
});

/** Pages about operators. */
export const peoplePages: readonly OpsPage[] = [peoplePage, personPage];
/** Actions of admins on operators. Each is dangerous, since it decides who may act. */
export const peopleActions: readonly OpsAction[] = [create, role, disable, enable, endThem, dropFactor, newPassword];

function shownOnce(email: string, password: string) {
  return { template: "people/password-once", title: "A new password", data: { email, password } };
}

function simple(
  { path, outcome, ...named }: { name: string; title: string; path: string; outcome: string },
  change: (tx: Transaction, who: { id: string }, by: string) => Promise<Change>,
): OpsAction<{ reason: string }> {
  return {
    ...named,
    path: `/people/:id/${path}`,
    roles: [],
    isDangerous: true,
    form: withReason,
    run: (parts, sent) => changing(parts, sent, { name: named.name, outcome, change }),
  };
}

/** Changes the operator that the path names, and adds the audit entry in the same transaction. */
async function changing(
  { sql }: { sql: Parameters<OpsAction["run"]>[0]["sql"] },
  { visitor, params, form }: Sent<{ reason: string }>,
  act: { name: string; outcome: string; change(tx: Transaction, who: { id: string }, by: string): Promise<Change> },
): Promise<Done> {
  const id = params["id"] ?? "";
  const change = await sql.begin(async (tx) => {
    const outcome = await act.change(tx, { id }, visitor.email);
    await note(tx, visitor, act.name, outcome, form.reason);
    return outcome;
  });
  if (change.ok)
    return { ok: true, message: `${change.email} ${act.outcome}`, location: `${LIST}/${encodeURIComponent(id)}` };
  if (change.reason === "there is no such operator") throw new PageError(404, change.reason);
  return { ok: false, problem: change.reason };
}

async function note(tx: Transaction, visitor: Visitor, action: string, change: Change, why: string | null) {
  if (!change.ok) return;
  const { email, before, after } = change;
  await appendAudit(tx, auditEntry(visitor, { action, target: `operator ${email}`, before, after, reason: why }));
}
