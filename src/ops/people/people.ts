import { z } from "zod";
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
import { countAdmins, findOperator, listOperators } from "../../accounts/operators/operator-store.ts";
import { OPERATOR_ROLES } from "../../accounts/operators/roles.ts";
import type { Transaction } from "../../db/client.ts";
import { personOf } from "../acting-person.ts";
import { auditedAction, type Change } from "../audited-action.ts";
import { type OpsAction, type OpsPage, opsPage, type Sent, type Visitor } from "../contract.ts";

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

const create = auditedAction({
  name: "operator.create",
  title: "Add member of staff",
  path: "/people",
  roles: [],
  isDangerous: true,
  form: z.strictObject({ email: z.email().max(254), role: givenRole }),
  location: () => LIST,
  prepare: makeHashedPassword,
  async change(tx, { visitor, form }, _, { password, passwordHash }) {
    await requireAdmin(tx, visitor);
    return shownOnce(await createOperator(tx, { ...form, passwordHash, by: visitor.email }), password);
  },
});

const ofPerson = {
  roles: [],
  isDangerous: true,
  location: ({ params: { id = "" } }: Pick<Sent<unknown>, "params">) => `${LIST}/${encodeURIComponent(id)}`,
} as const;

const role = auditedAction({
  ...ofPerson,
  name: "operator.role",
  title: "Change role",
  path: "/people/:id/role",
  form: z.strictObject({ role: givenRole, was: z.string().max(20), reason }),
  async change(tx, { visitor, params: { id = "" }, form }) {
    await requireAdmin(tx, visitor);
    return changeRole(tx, { id }, { role: form.role, was: form.was, by: visitor.email });
  },
});

const disable = simple({ name: "operator.disable", title: "Disable sign-in", path: "disable" }, (tx, who, by) =>
  changeDisabled(tx, who, { isDisabled: true, by }),
);
const enable = simple({ name: "operator.enable", title: "Enable sign-in", path: "enable" }, (tx, who, by) =>
  changeDisabled(tx, who, { isDisabled: false, by }),
);
const endThem = simple({ name: "operator.end-sessions", title: "End sign-ins", path: "end-sessions" }, endAllSessions);
const dropFactor = simple(
  { name: "operator.reset-two-factor", title: "Turn off two-factor authentication", path: "reset-two-factor" },
  resetTwoFactor,
);

const newPassword = auditedAction({
  ...ofPerson,
  name: "operator.reset-password",
  title: "Reset password",
  path: "/people/:id/reset-password",
  form: withReason,
  prepare: makeHashedPassword,
  async change(tx, { visitor, params: { id = "" } }, _, { password, passwordHash }) {
    await requireAdmin(tx, visitor);
    return shownOnce(await resetPassword(tx, { id }, passwordHash, visitor.email), password);
  },
});

/** Pages about operators. */
export const peoplePages: readonly OpsPage[] = [peoplePage, personPage];
/** Actions of admins on operators. Each is dangerous, since it decides who may act. */
export const peopleActions: readonly OpsAction[] = [create, role, disable, enable, endThem, dropFactor, newPassword];

/**
 * Locks all admins first: two of them who change each other would deadlock if each began with their own row.
 * @throws PageError 403 for a visitor who was disabled or got another role since the request began
 */
async function requireAdmin(tx: Transaction, visitor: Visitor): Promise<void> {
  await countAdmins(tx);
  await personOf(tx, visitor);
}

function shownOnce(done: OperatorDecision, password: string): Change {
  if (!done.ok) return done;
  const data = { email: done.email, password };
  return { ...done, once: { template: "people/password-once", title: "A new password", data } };
}

function simple(
  { path, ...named }: { name: string; title: string; path: string },
  work: (tx: Transaction, who: { id: string }, by: string) => Promise<OperatorDecision>,
): OpsAction {
  return auditedAction({
    ...ofPerson,
    ...named,
    path: `/people/:id/${path}`,
    form: withReason,
    async change(tx, { visitor, params: { id = "" } }) {
      await requireAdmin(tx, visitor);
      return work(tx, { id }, visitor.email);
    },
  });
}
