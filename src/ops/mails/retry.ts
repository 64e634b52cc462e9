import { z } from "zod";
import type { Transaction } from "../../db/client.ts";
import { retryMails } from "../../mail/list-store.ts";
import { auditedAction, type Change } from "../audited-action.ts";
import { idsOf, reason } from "../payloads/listing.ts";

/** The most mails that one click retries. */
export const MOST_RETRIED = 500;

const chosen = z.object({ ids: idsOf(MOST_RETRIED, "choose at least one mail"), reason });
const all = z.object({ reason });

/** Retries the selected mails that were given up. */
export const retryMailsAction = auditedAction({
  name: "mail.retry",
  path: "/mails/retry",
  roles: ["operator"],
  isDangerous: false,
  form: chosen,
  change: (tx, { form }) => retry(tx, form.ids),
});

/** Retries all of them, as after an outage of the mail server. */
export const retryAllMailsAction = auditedAction({
  name: "mail.retry-all",
  path: "/mails/retry-all",
  roles: ["operator"],
  isDangerous: false,
  form: all,
  change: (tx) => retry(tx, null),
});

async function retry(tx: Transaction, ids: readonly bigint[] | null): Promise<Change> {
  const retried = await retryMails(tx, ids, MOST_RETRIED);
  if (retried.length === 0) return { ok: false, problem: "none of these mails is given up any more; reload the list" };
  return {
    ok: true,
    target: `${retried.length === 1 ? "mail" : "mails"} ${retried.join(", ")}`,
    before: "given up",
    after: "pending",
    message: `${retried.length === 1 ? "1 mail is" : `${retried.length} mails are`} pending again`,
    location: "/ops/mails?state=pending",
  };
}
