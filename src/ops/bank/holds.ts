import { z } from "zod";
import { parseRate } from "../../topups/bank/statements/amount.ts";
import { approveReturn, requestReturn, holdLine, stopReturn } from "../../topups/bank/hold.ts";
import { findLine } from "../../topups/bank/line-store.ts";
import { opsAction } from "../contract.ts";
import { reason } from "../payloads/listing.ts";
import { decide, roles } from "./decide.ts";

const id = z
  .string()
  .regex(/^\d{1,18}$/, "expected an id")
  .transform(BigInt);

const holdForm = z.object({ rate: z.string().trim().max(40).default(""), reason });

/** Puts a line into suspense. */
export const holdLineAction = opsAction({
  name: "bank.line.hold",
  path: "/bank/lines/:id/hold",
  roles,
  isDangerous: false,
  form: holdForm,
  run: (parts, sent) =>
    decide(parts, sent, {
      name: "bank.line.hold",
      reason: sent.form.reason,
      async work(tx, by, lineId, { rate, reason: why }) {
        const line = await findLine(tx, lineId);
        if (line === null) return { ok: false, problem: `there is no bank line ${lineId}` };
        const read = parseRate(rate, line.currency);
        return read.ok ? holdLine(tx, by, { lineId, rateE8: read.value, reason: why }) : read;
      },
    }),
});

const askForm = z.object({ reason });

/** Records that the bank returned the money of a line; another person has to confirm it. */
export const requestReturnAction = opsAction({
  name: "bank.return.ask",
  path: "/bank/lines/:id/return",
  roles,
  isDangerous: false,
  form: askForm,
  run: (parts, sent) =>
    decide(parts, sent, {
      name: "bank.return.ask",
      reason: sent.form.reason,
      work: (tx, by, lineId, { reason: why }) => requestReturn(tx, by, { lineId, reason: why }),
    }),
});

const approveForm = z.object({ return: id });

/** Confirms a return that another person recorded. */
export const approveReturnAction = opsAction({
  name: "bank.return.approve",
  title: "Approve return",
  path: "/bank/lines/:id/return/approve",
  roles,
  isDangerous: true,
  needsTwoFactor: true,
  form: approveForm,
  run: (parts, sent) =>
    decide(parts, sent, {
      name: "bank.return.approve",
      work: (tx, by, lineId, form) =>
        approveReturn(tx, by, { lineId, returnId: form.return, isOnePerson: parts.settings.BANK_ONE_PERSON }),
    }),
});

const stopForm = z.object({ return: id, reason });

/** Cancels a return: the money was not sent. */
export const stopReturnAction = opsAction({
  name: "bank.return.stop",
  path: "/bank/lines/:id/return/stop",
  roles,
  isDangerous: false,
  form: stopForm,
  run: (parts, sent) =>
    decide(parts, sent, {
      name: "bank.return.stop",
      reason: sent.form.reason,
      work: (tx, by, lineId, form) => stopReturn(tx, by, { lineId, returnId: form.return, reason: form.reason }),
    }),
});
