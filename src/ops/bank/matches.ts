import { z } from "zod";
import { parseRate } from "../../topups/bank/statements/amount.ts";
import { findLine } from "../../topups/bank/line-store.ts";
import { approveMatch, matchLine, rejectMatch, takeBackMatch } from "../../topups/bank/match.ts";
import { opsAction } from "../contract.ts";
import { reason } from "../payloads/listing.ts";
import { decide, roles } from "./decide.ts";

const id = z
  .string()
  .regex(/^\d{1,18}$/, "expected an id")
  .transform(BigInt);
const typed = z.string().trim().max(300);

const matchForm = z.object({
  to: typed.min(1, "expected a reference, or an account's id or e-mail address"),
  /** The account that was shown with it. */
  account: id,
  rate: z.string().trim().max(40).default(""),
  note: typed.default(""),
});

/** Matches a line with an account. */
export const matchLineAction = opsAction({
  name: "bank.line.match",
  path: "/bank/lines/:id/match",
  roles,
  isDangerous: false,
  form: matchForm,
  run: (parts, sent) =>
    decide(parts, sent, {
      name: "bank.line.match",
      async work(tx, by, lineId, { to, account, rate, note }) {
        const line = await findLine(tx, lineId);
        if (line === null) return { ok: false, problem: `there is no bank line ${lineId}` };
        const read =
          line.rateE8 === null ? parseRate(rate, line.currency) : ({ ok: true, value: line.rateE8 } as const);
        if (!read.ok) return read;
        return matchLine(tx, by, { lineId, to, accountId: account, rateE8: read.value, note });
      },
    }),
});

const approveForm = z.object({ match: id });

/** Credits what another person matched. */
export const approveMatchAction = opsAction({
  name: "bank.match.approve",
  title: "Approve transfer",
  path: "/bank/lines/:id/approve",
  roles,
  isDangerous: true,
  needsTwoFactor: true,
  form: approveForm,
  run: (parts, sent) =>
    decide(parts, sent, {
      name: "bank.match.approve",
      work: (tx, by, lineId, { match }) =>
        approveMatch(tx, by, { lineId, matchId: match, isOnePerson: parts.settings.BANK_ONE_PERSON }),
    }),
});

const reasonForm = z.object({ match: id, reason });

/** Withdraws a match that is not approved. */
export const takeBackMatchAction = opsAction({
  name: "bank.match.take-back",
  path: "/bank/lines/:id/unmatch",
  roles,
  isDangerous: false,
  form: reasonForm,
  run: (parts, sent) =>
    decide(parts, sent, {
      name: "bank.match.take-back",
      reason: sent.form.reason,
      work: (tx, by, lineId, { match, reason: why }) => takeBackMatch(tx, by, { lineId, matchId: match, reason: why }),
    }),
});

/** Rejects a transfer. */
export const rejectMatchAction = opsAction({
  name: "bank.match.reject",
  path: "/bank/lines/:id/reject",
  roles,
  isDangerous: false,
  form: reasonForm,
  run: (parts, sent) =>
    decide(parts, sent, {
      name: "bank.match.reject",
      reason: sent.form.reason,
      work: (tx, by, lineId, { match, reason: why }) => rejectMatch(tx, by, { lineId, matchId: match, reason: why }),
    }),
});
