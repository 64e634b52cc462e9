import { z } from "zod";
import { appendAudit } from "../../audit/store.ts";
import type { Transaction } from "../../db/client.ts";
import { askHouseNow, type HouseOutcome, startHouse, stopHouse } from "../../houses/polling/control-store.ts";
import { auditEntry } from "../audit-entry.ts";
import { type Done, opsAction, type OpsParts, type Sent } from "../contract.ts";
import { PageError } from "../../frame/errors.ts";
import { reason, tellReaders } from "../payloads/listing.ts";
import { resetNewestNumber, resetAuditEntry } from "../../corrections/reset-newest.ts";
import { readTable } from "../board/table-facts-store.ts";

const roles = ["operator"] as const;
const form = z.object({ reason });
const resumeForm = z.object({ reason, version: z.string().max(60).default("") });
type Form = z.infer<typeof form>;

/** Stops polling a house. */
export const pauseHouseAction = opsAction({
  name: "house.pause",
  path: "/houses/:house/pause",
  roles,
  isDangerous: false,
  form,
  run: (parts, sent) =>
    act(parts, sent, {
      action: "house.pause",
      message: "is paused",
      work: (tx, house) => stopHouse(tx, { house, by: sent.visitor.email, reason: sent.form.reason }),
    }),
});

/** Polls a paused house again. */
export const resumeHouseAction = opsAction({
  name: "house.resume",
  path: "/houses/:house/resume",
  roles,
  isDangerous: false,
  form: resumeForm,
  run: (parts, sent) =>
    act(parts, sent, {
      action: "house.resume",
      message: "is polled again",
      work: (tx, house) => startHouse(tx, { house, version: sent.form.version || null }),
    }),
});

/** Probes an open circuit with the next poll. */
export const probeHouseAction = opsAction({
  name: "house.probe",
  path: "/houses/:house/probe",
  roles,
  isDangerous: false,
  form,
  run: (parts, sent) =>
    act(parts, sent, {
      action: "house.probe",
      message: "is probed with its next poll",
      work: (tx, house) => askHouseNow(tx, { house, forget: false }),
    }),
});

/** Closes an open circuit. */
export const closeCircuitAction = opsAction({
  name: "house.close-circuit",
  path: "/houses/:house/close",
  roles,
  isDangerous: false,
  form,
  run: (parts, sent) =>
    act(parts, sent, {
      action: "house.close-circuit",
      message: "is polled as if nothing had failed",
      work: (tx, house) => askHouseNow(tx, { house, forget: true }),
    }),
});

const resetForm = z.object({
  reason,
  to: z
    .string()
    .regex(/^(|[0-9]{1,18})$/, "expected the number of a round")
    .default(""),
});

/** Sets the newest number of a table back. */
export const resetNewestAction = opsAction({
  name: "table.reset-newest",
  path: "/tables/:house/:game/:market/reset-newest",
  roles,
  isDangerous: false,
  form: resetForm,
  async run(parts, { visitor, params, form: { reason: why, to } }) {
    const { house = "", game = "", market = "" } = params;
    const table = await readTable(parts.sql, { house, game, market });
    if (table === null) throw new PageError(404, `there is no table ${house}/${game}/${market}`);
    const decision = { to: to === "" ? null : BigInt(to), by: visitor.email, reason: why };
    const outcome = await parts.sql.begin(async (tx) => {
      const done = await resetNewestNumber(tx, table.id, decision);
      if (done.ok) await appendAudit(tx, auditEntry(visitor, resetAuditEntry(done, why)));
      return done;
    });
    if (!outcome.ok) return outcome;
    await tellReaders(parts);
    const message = `the newest number of ${outcome.table} is ${outcome.after}, it was ${outcome.before}`;
    return { ok: true, message, location: `/ops/tables/${outcome.table}` };
  },
});

async function act<Facts>(
  parts: OpsParts,
  { visitor, params, form: given }: Sent<Form>,
  how: {
    action: string;
    message: string;
    work: (tx: Transaction, house: string) => Promise<HouseOutcome<Facts>>;
  },
): Promise<Done> {
  const house = params["house"] ?? "";
  const outcome = await parts.sql.begin(async (tx) => {
    const done = await how.work(tx, house);
    if (done.kind === "done") {
      const { before, after } = done;
      const entry = { action: how.action, target: `house ${house}`, before, after, reason: given.reason };
      await appendAudit(tx, auditEntry(visitor, entry));
    }
    return done;
  });
  if (outcome.kind === "unknown") throw new PageError(404, `there is no house ${house}`);
  if (outcome.kind === "refused") return { ok: false, problem: outcome.problem };
  await tellReaders(parts);
  return { ok: true, message: `${house} ${how.message}`, location: `/ops/houses/${house}` };
}
