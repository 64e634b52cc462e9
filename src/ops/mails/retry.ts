import { z } from "zod";
import { appendAudit } from "../../audit/store.ts";
import { retryMails } from "../../mail/list-store.ts";
import { auditEntry } from "../audit-entry.ts";
import { type Done, opsAction, type OpsParts, type Sent } from "../contract.ts";
import { idsOf, reason } from "../payloads/listing.ts";

/** The most mails that one click retries. */
export const MOST_RETRIED = 500;

const chosen = z.object({ ids: idsOf(MOST_RETRIED, "choose at least one mail"), reason });
const all = z.object({ reason });

/** Retries the selected mails that were given up. */
export const retryMailsAction = opsAction({
  name: "mail.retry",
  path: "/mails/retry",
  roles: ["operator"],
  isDangerous: false,
  form: chosen,
  run: (parts, sent) => retry(parts, sent, "mail.retry", sent.form.ids),
});

/** Retries all of them, as after an outage of the mail server. */
export const retryAllMailsAction = opsAction({
  name: "mail.retry-all",
  path: "/mails/retry-all",
  roles: ["operator"],
  isDangerous: false,
  form: all,
  run: (parts, sent) => retry(parts, sent, "mail.retry-all", null),
});

async function retry(
  { sql }: OpsParts,
  { visitor, form }: Sent<{ reason: string }>,
  action: string,
  ids: readonly bigint[] | null,
): Promise<Done> {
  const retried = await sql.begin(async (tx) => {
    const done = await retryMails(tx, ids, MOST_RETRIED);
    if (done.length > 0) {
      const target = `${done.length === 1 ? "mail" : "mails"} ${done.join(", ")}`;
      const entry = { action, target, before: "given up", after: "pending", reason: form.reason };
      await appendAudit(tx, auditEntry(visitor, entry));
    }
    return done;
  });
  if (retried.length === 0) return { ok: false, problem: "none of these mails is given up any more; reload the list" };
  const message = `${retried.length === 1 ? "1 mail is" : `${retried.length} mails are`} pending again`;
  return { ok: true, message, location: "/ops/mails?state=pending" };
}
