import { z } from "zod";
import { parseRate } from "../../topups/bank/statements/amount.ts";
import { findLine } from "../../topups/bank/line-store.ts";
import { approveMatch, matchLine, rejectMatch, takeBackMatch } from "../../topups/bank/match.ts";
import { reason } from "../payloads/listing.ts";
import { lineAction } from "./line-action.ts";

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
export const matchLineAction = lineAction({
  name: "bank.line.match",
  path: "/bank/lines/:id/match",
  isDangerous: false,
  form: matchForm,
  async decide(tx, by, lineId, { to, account, rate, note }) {
    const line = await findLine(tx, lineId);
    if (line === null) return { ok: false, problem: `there is no bank line ${lineId}` };
    const read = line.rateE8 === null ? parseRate(rate, line.currency) : ({ ok: true, value: line.rateE8 } as const);
    if (!read.ok) return read;
    return matchLine(tx, by, { lineId, to, accountId: account, rateE8: read.value, note });
  },
});

const approveForm = z.object({ match: id });

/** Credits what another person matched. */
export const approveMatchAction = lineAction({
  name: "bank.match.approve",
  title: "Approve transfer",
  path: "/bank/lines/:id/approve",
  isDangerous: true,
  needsTwoFactor: true,
  form: approveForm,
  decide: (tx, by, lineId, { match }, { settings }) =>
    approveMatch(tx, by, { lineId, matchId: match, isOnePerson: settings.BANK_ONE_PERSON }),
});

const reasonForm = z.object({ match: id, reason });

/** Withdraws a match that is not approved. */
export const takeBackMatchAction = lineAction({
  name: "bank.match.take-back",
  path: "/bank/lines/:id/unmatch",
  isDangerous: false,
  form: reasonForm,
  decide: (tx, by, lineId, { match, reason: why }) => takeBackMatch(tx, by, { lineId, matchId: match, reason: why }),
});

/** Rejects a transfer. */
export const rejectMatchAction = lineAction({
  name: "bank.match.reject",
  path: "/bank/lines/:id/reject",
  isDangerous: false,
  form: reasonForm,
  decide: (tx, by, lineId, { match, reason: why }) => rejectMatch(tx, by, { lineId, matchId: match, reason: why }),
});
