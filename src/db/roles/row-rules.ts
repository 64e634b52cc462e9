import { hash } from "node:crypto";
import { type Part, ROLES, withSchema } from "./role-grants.ts";

/** Rows that a role may touch in a table with row security; for a part and command that is not here there are none. */
export interface RowRule {
  part: Part;
  command: "select" | "insert" | "update" | "delete" | "all";
  /** Rows that it sees; not of an insert. */
  using?: string;
  /** Rows that it may leave behind; as `using` where not given. */
  check?: string;
}

const ownPerson = (part: "console" | "ops", column: string): RowRule => ({
  part,
  command: "all",
  using: `exists (select from auth.users u where u.id = ${column} and u.surface = '${part}')`,
});
const ownSurface: RowRule[] = (["console", "ops"] as const).map((part) => ({
  part,
  command: "all",
  using: `surface = '${part}'`,
}));
const readBy = (...parts: Part[]): RowRule[] => parts.map((part) => ({ part, command: "select", using: "true" }));
const ended: RowRule[] = (["select", "delete"] as const).map((command) => ({
  part: "worker",
  command,
  using: "expires_at < clock_timestamp()",
}));
/** The console and operators may end a plan earlier, and no role later. */
const shortening: Omit<RowRule, "part"> = {
  command: "update",
  using: "true",
  check: "coalesce(ends_at, 'infinity') <= entitlement_end(id)",
};

/**
 * Alerts about houses, tables and processes. The others name accounts, amounts or addresses, or give the reason of any
 * error; those of a new kind are hidden until it is added.
 */
const PUBLIC_ALERTS = [
  "backlog",
  "calibration",
  "calibration_failed",
  "clock_skew",
  "disk",
  "house_offline",
  "log",
  "log_behind",
  "no_leader",
  "not_polled",
  "partitions",
  "payload_differs",
  "proof mismatch",
  "redis_lost",
  "responses_unreadable",
  "scoring",
  "table_damaged",
  "unscored",
  "usage_behind",
];

/**
 * Row security: the rows that a role may access, if not all. The console accesses only account holders, the operations
 * pages only operators; no role extends what was bought, and each writes into the audit log in its own name. The owner of
 * the schema is exempt.
 */
const ROWS: Record<string, readonly RowRule[]> = {
  "auth.users": [
    { part: "console", command: "all", using: "surface = 'console'" },
    ...readBy("ops"),
    { part: "ops", command: "insert", check: "surface = 'ops'" },
    { part: "ops", command: "update", using: "surface = 'ops'" },
  ],
  "auth.accounts": [ownPerson("console", "user_id"), ownPerson("ops", "user_id")],
  "auth.two_factors": [ownPerson("console", "user_id"), ownPerson("ops", "user_id")],
  "auth.used_codes": [ownPerson("console", "user_id"), ownPerson("ops", "user_id")],
  "auth.verifications": [...ownSurface, ...ended],
  "auth.sessions": [...ownSurface, ...ended],
  operators: [
    ...readBy("ops"),
    { part: "ops", command: "insert", check: "role <> 'admin'" },
    { part: "ops", command: "update", using: "true", check: "role <> 'admin' or is_admin(user_id)" },
  ],
  entitlements: [
    ...readBy("api", "console", "ops", "worker"),
    { part: "console", command: "insert", check: "purchase_id is not null" },
    { part: "console", ...shortening },
    { part: "console", command: "delete", using: "true" },
    { part: "ops", ...shortening },
    { part: "worker", command: "update", using: "true" },
  ],
  quotas: [
    ...readBy("api", "console", "ops", "worker"),
    {
      part: "worker",
      command: "delete",
      using: "length(period) = 10 and period < to_char(now() - interval '60 days', 'YYYY-MM-DD')",
    },
  ],
  usage_counts: [
    ...readBy("api", "console", "ops", "worker"),
    { part: "worker", command: "delete", using: "day < current_date - 60" },
  ],
  alerts: [
    ...readBy("api"), // kinds alone, by its grant
    { part: "ops", command: "all", using: "true" },
    { part: "worker", command: "all", using: "true" },
    { part: "read", command: "select", using: `kind in (${PUBLIC_ALERTS.map((kind) => `'${kind}'`).join(", ")})` },
  ],
  audit_log: [
    { part: "console", command: "all", using: "surface = 'console'" },
    ...readBy("ops"),
    { part: "ops", command: "insert", check: "surface = 'ops'" },
    { part: "worker", command: "all", using: "surface = 'system'" },
  ],
};

/** A row rule as PostgreSQL keeps it; the name carries a hash of the rule, so that a changed one has another name. */
export interface Policy {
  table: string;
  name: string;
  statement: string;
}

/** The policies of {@link ROWS}. */
export function wantedPolicies(): Policy[] {
  return Object.entries(ROWS).flatMap(([name, rules]) =>
    rules.map(({ part, command, using, check }): Policy => {
      const table = withSchema(name);
      const rule = [
        `for ${command} to ${ROLES[part]}`,
        ...(using === undefined ? [] : [`using (${using})`]),
        ...(check === undefined ? [] : [`with check (${check})`]),
      ].join(" ");
      const policy = `${part}_${command}_${hash("sha256", rule).slice(0, 8)}`;
      return { table, name: policy, statement: `create policy ${policy} on ${table} ${rule}` };
    }),
  );
}
