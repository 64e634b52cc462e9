import { z } from "zod";
import { askHouseNow, startHouse, stopHouse } from "../../houses/polling/control-store.ts";
import { auditedAction } from "../audited-action.ts";
import type { Sent } from "../contract.ts";
import { PageError } from "../../frame/errors.ts";
import { reason } from "../payloads/listing.ts";
import { resetNewestNumber } from "../../corrections/reset-newest.ts";
import { findTablesOf } from "../../rounds/lists/table-filter-store.ts";

const decision = { roles: ["operator"], isDangerous: false, isPublished: true } as const;
const form = z.object({ reason });
const resumeForm = z.object({ reason, version: z.string().max(60).default("") });
const location = ({ params }: { params: Sent<unknown>["params"] }) => `/ops/houses/${params["house"]}`;

/** Stops polling a house. */
export const pauseHouseAction = auditedAction({
  ...decision,
  name: "house.pause",
  path: "/houses/:house/pause",
  form,
  location,
  change: (tx, { visitor, params: { house = "" }, form: given }) =>
    stopHouse(tx, { house, by: visitor.email, reason: given.reason }),
});

/** Polls a paused house again. */
export const resumeHouseAction = auditedAction({
  ...decision,
  name: "house.resume",
  path: "/houses/:house/resume",
  form: resumeForm,
  location,
  change: (tx, { params: { house = "" }, form: { version } }) => startHouse(tx, { house, version: version || null }),
});

/** Probes an open circuit with the next poll. */
export const probeHouseAction = auditedAction({
  ...decision,
  name: "house.probe",
  path: "/houses/:house/probe",
  form,
  location,
  change: (tx, { params: { house = "" } }) => askHouseNow(tx, { house, forget: false }),
});

/** Closes an open circuit. */
export const closeCircuitAction = auditedAction({
  ...decision,
  name: "house.close-circuit",
  path: "/houses/:house/close",
  form,
  location,
  change: (tx, { params: { house = "" } }) => askHouseNow(tx, { house, forget: true }),
});

const resetForm = z.object({
  reason,
  to: z
    .string()
    .regex(/^(|[0-9]{1,18})$/, "expected the number of a round")
    .default(""),
});

/** Resets the newest number of a table, or the time of its newest round. */
export const resetNewestAction = auditedAction({
  ...decision,
  name: "table.reset-newest",
  path: "/tables/:house/:game/:market/reset-newest",
  form: resetForm,
  location: ({ params: { house, game, market } }) => `/ops/tables/${house}/${game}/${market}`,
  async change(tx, { visitor, params, form: { reason: why, to } }) {
    const { house = "", game = "", market = "" } = params;
    const name = `${house}/${game}/${market}`;
    const [id] = (await findTablesOf(tx, name))?.ids ?? [];
    if (id === undefined) throw new PageError(404, `there is no table ${name}`);
    return resetNewestNumber(tx, id, { to: to === "" ? null : BigInt(to), by: visitor.email, reason: why });
  },
});
