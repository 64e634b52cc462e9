import { z } from "zod";
import { askHouseNow, type HouseOutcome, startHouse, stopHouse } from "../../houses/polling/control-store.ts";
import { auditedAction, type Change } from "../audited-action.ts";
import { PageError } from "../../frame/errors.ts";
import { reason } from "../payloads/listing.ts";
import { resetNewestNumber, resetAuditEntry, resetText } from "../../corrections/reset-newest.ts";
import { findTablesOf } from "../../rounds/lists/table-filter-store.ts";

const roles = ["operator"] as const;
const form = z.object({ reason });
const resumeForm = z.object({ reason, version: z.string().max(60).default("") });

/** Stops polling a house. */
export const pauseHouseAction = auditedAction({
  name: "house.pause",
  path: "/houses/:house/pause",
  roles,
  isDangerous: false,
  form,
  isPublished: true,
  async change(tx, { visitor, params: { house = "" }, form: given }) {
    return changeOf(house, "is paused", await stopHouse(tx, { house, by: visitor.email, reason: given.reason }));
  },
});

/** Polls a paused house again. */
export const resumeHouseAction = auditedAction({
  name: "house.resume",
  path: "/houses/:house/resume",
  roles,
  isDangerous: false,
  form: resumeForm,
  isPublished: true,
  async change(tx, { params: { house = "" }, form: { version } }) {
    return changeOf(house, "is polled again", await startHouse(tx, { house, version: version || null }));
  },
});

/** Probes an open circuit with the next poll. */
export const probeHouseAction = auditedAction({
  name: "house.probe",
  path: "/houses/:house/probe",
  roles,
  isDangerous: false,
  form,
  isPublished: true,
  async change(tx, { params: { house = "" } }) {
    return changeOf(house, "is probed with its next poll", await askHouseNow(tx, { house, forget: false }));
  },
});

/** Closes an open circuit. */
export const closeCircuitAction = auditedAction({
  name: "house.close-circuit",
  path: "/houses/:house/close",
  roles,
  isDangerous: false,
  form,
  isPublished: true,
  async change(tx, { params: { house = "" } }) {
    return changeOf(house, "is polled as if nothing had failed", await askHouseNow(tx, { house, forget: true }));
  },
});

function changeOf(house: string, outcome: string, done: HouseOutcome<object>): Change {
  if (done.kind === "unknown") throw new PageError(404, `there is no house ${house}`);
  if (done.kind === "refused") return { ok: false, problem: done.problem };
  const { before, after } = done;
  const location = `/ops/houses/${house}`;
  return { ok: true, target: `house ${house}`, before, after, message: `${house} ${outcome}`, location };
}

const resetForm = z.object({
  reason,
  to: z
    .string()
    .regex(/^(|[0-9]{1,18})$/, "expected the number of a round")
    .default(""),
});

/** Resets the newest number of a table, or the time of its newest round. */
export const resetNewestAction = auditedAction({
  name: "table.reset-newest",
  path: "/tables/:house/:game/:market/reset-newest",
  roles,
  isDangerous: false,
  form: resetForm,
  isPublished: true,
  async change(tx, { visitor, params, form: { reason: why, to } }) {
    const { house = "", game = "", market = "" } = params;
    const name = `${house}/${game}/${market}`;
    const [id] = (await findTablesOf(tx, name))?.ids ?? [];
    if (id === undefined) throw new PageError(404, `there is no table ${name}`);
    const decision = { to: to === "" ? null : BigInt(to), by: visitor.email, reason: why };
    const done = await resetNewestNumber(tx, id, decision);
    if (!done.ok) return done;
    return { ok: true, ...resetAuditEntry(done, why), message: resetText(done), location: `/ops/tables/${done.table}` };
  },
});
