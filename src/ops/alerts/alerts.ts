import { z } from "zod";
import { appendAudit } from "../../audit/store.ts";
import { auditEntry } from "../audit-entry.ts";
import { readBoard } from "../board/facts.ts";
import { findProblems, groupProblems, type Problem } from "../board/problems.ts";
import { maySnooze, MOST_SNOOZED, problemKey, SNOOZES, splitSnoozed } from "../board/snooze.ts";
import { deleteSnooze, listClosedAlerts, saveSnoozes } from "../board/snooze-store.ts";
import { opsAction, opsPage } from "../contract.ts";
import { PER_PAGE, reason } from "../payloads/listing.ts";

const LIST = "/ops/alerts";
const ROLES = ["operator"] as const;

const query = z.object({
  state: z.enum(["open", "snoozed", "closed"]).default("open"),
  page: z.coerce.number().int().min(1).max(100_000).default(1),
});

/** Everything that is wrong now, what staff have snoozed, and the alerts that are over. */
export const alertsPage = opsPage({
  path: "/alerts",
  nav: { label: "Alerts", order: 10.5, group: "Live" },
  query,
  async show(parts, { visitor, query: { state, page } }) {
    const facts = await readBoard(parts);
    const { open, snoozed } = splitSnoozed(findProblems(facts), facts.snoozes, facts.now);
    const closed = await listClosedAlerts(parts.sql, { page: state === "closed" ? page : 1, perPage: PER_PAGE });
    const tab = (name: typeof state, label: string, count: number) => {
      return { label, href: `${LIST}${name === "open" ? "" : `?state=${name}`}`, isCurrent: state === name, count };
    };
    const tabs = [
      tab("open", "Open", open.length),
      tab("snoozed", "Snoozed", snoozed.length),
      tab("closed", "Closed", closed.total),
    ];
    const data = {
      state,
      problems: groupProblems(open),
      snoozed: snoozed.map((one) => ({ ...one, key: problemKey(one) })),
      closed: closed.rows,
      paging: { page: closed.page, perPage: PER_PAGE, total: closed.total },
      maySnooze: maySnooze(visitor.role),
      keyOf: problemKey,
      most: MOST_SNOOZED,
    };
    return { template: "alerts/alerts", title: "Alerts", data, header: { tabs }, refreshSeconds: 10 };
  },
});

const key = z
  .string()
  .max(400)
  .regex(/^[\w-]+( [\s\S]*)?$/, "expected a problem as a form of this page has it");
const keys = z
  .union([key, z.array(key).max(MOST_SNOOZED, `expected at most ${MOST_SNOOZED} problems`)])
  .transform((given) => [given].flat());
const snoozeForm = z.object({
  problem: keys,
  for: z.enum(["1h", "8h", "change"]),
  reason,
  back: z.enum(["board", "alerts"]).default("alerts"),
});

/** Hides problems from the board for some time, with a reason. They stay on the page of alerts. */
export const snoozeAction = opsAction({
  name: "alert.snooze",
  path: "/alerts/snooze",
  roles: ROLES,
  isDangerous: false,
  form: snoozeForm,
  async run(parts, { visitor, form }) {
    const wanted = new Set(form.problem);
    const found = findProblems(await readBoard(parts)).filter((problem) => wanted.has(problemKey(problem)));
    const problems = [...new Map(found.map((problem) => [problemKey(problem), problem])).values()];
    if (problems.length === 0) return { ok: false, problem: "none of these problems is open any more" };
    const hours = SNOOZES[form.for];
    const snooze = { hours, endsOnChange: form.for === "change", by: visitor.email, reason: form.reason };
    await parts.sql.begin(async (tx) => {
      await saveSnoozes(tx, problems, snooze);
      const after = { for: form.for, problems: problems.map(({ subject, what }) => `${subject}: ${what}`) };
      const entry = { action: "alert.snooze", target: targetOf(problems), after, reason: form.reason };
      await appendAudit(tx, auditEntry(visitor, entry));
    });
    const how = form.for === "change" ? "until it changes" : `for ${hours} h`;
    const message = `Snoozed ${problems.length === 1 ? "1 problem" : `${problems.length} problems`} ${how}.`;
    return { ok: true, message, location: form.back === "board" ? "/ops" : LIST };
  },
});

const endForm = z.object({ problem: key });

/** Ends a snooze: the problem is on the board again. */
export const endSnoozeAction = opsAction({
  name: "alert.end-snooze",
  path: "/alerts/end-snooze",
  roles: ROLES,
  isDangerous: false,
  form: endForm,
  async run({ sql }, { visitor, form }) {
    const [kind = "", ...rest] = form.problem.split(" ");
    const subject = rest.join(" ");
    const ended = await sql.begin(async (tx) => {
      if (!(await deleteSnooze(tx, { kind, subject }))) return false;
      const entry = { action: "alert.end-snooze", target: targetOf([{ kind, subject }]) };
      await appendAudit(tx, auditEntry(visitor, entry));
      return true;
    });
    const location = `${LIST}?state=snoozed`;
    if (!ended) return { ok: true, message: "This snooze has ended already.", location, didNothing: true };
    return { ok: true, message: "The problem is open again.", location };
  },
});

/** The target of an audit entry: the first problems, and how many more. */
function targetOf(problems: readonly Pick<Problem, "kind" | "subject">[]): string {
  const [first, ...more] = problems;
  const name = first === undefined ? "none" : `${first.kind} of ${first.subject}`;
  return `problem ${name}${more.length === 0 ? "" : ` and ${more.length} more`}`;
}
