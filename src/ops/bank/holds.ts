import { z } from "zod";
import { parseRate } from "../../topups/bank/statements/amount.ts";
import { approveReturn, requestReturn, holdLine, stopReturn } from "../../topups/bank/hold.ts";
import { findLine } from "../../topups/bank/line-store.ts";
import { reason } from "../payloads/listing.ts";
import { lineAction } from "./line-action.ts";

const id = z
  .string()
  .regex(/^\d{1,18}$/, "expected an id")
  .transform(BigInt);

const holdForm = z.object({ rate: z.string().trim().max(40).default(""), reason });

/** Puts a line into suspense. */
export const holdLineAction = lineAction({
  name: "bank.line.hold",
  path: "/bank/lines/:id/hold",
  isDangerous: false,
  form: holdForm,
  async decide(tx, by, lineId, { rate, reason: why }) {
    const line = await findLine(tx, lineId);
    if (line === null) return { ok: false, problem: `there is no bank line ${lineId}` };
    const read = parseRate(rate, line.currency);
    return read.ok ? holdLine(tx, by, { lineId, rateE8: read.value, reason: why }) : read;
  },
});

const askForm = z.object({ reason });

/** Records that the bank returned the money of a line; another person has to confirm it. */
export const requestReturnAction = lineAction({
  name: "bank.return.ask",
  path: "/bank/lines/:id/return",
  isDangerous: false,
  form: askForm,
  decide: (tx, by, lineId, form) => requestReturn(tx, by, { lineId, reason: form.reason }),
});

const approveForm = z.object({ return: id });

/** Confirms a return that another person recorded. */
export const approveReturnAction = lineAction({
  name: "bank.return.approve",
  title: "Approve return",
  path: "/bank/lines/:id/return/approve",
  isDangerous: true,
  needsTwoFactor: true,
  form: approveForm,
  decide: (tx, by, lineId, form, { settings }) =>
    approveReturn(tx, by, { lineId, returnId: form.return, isOnePerson: settings.BANK_ONE_PERSON }),
});

const stopForm = z.object({ return: id, reason });

/** Cancels a return: the money was not sent. */
export const stopReturnAction = lineAction({
  name: "bank.return.stop",
  path: "/bank/lines/:id/return/stop",
  isDangerous: false,
  form: stopForm,
  decide: (tx, by, lineId, form) => stopReturn(tx, by, { lineId, returnId: form.return, reason: form.reason }),
});
