import { z } from "zod";
import { appendAudit } from "../../audit/store.ts";
import { retryMails } from "../../mail/list-store.ts";
import { auditEntry } from "../audit-entry.ts";
import type { Done, OpsAction, OpsParts, Sent } from "../contract.ts";
import { idsOf, reason } from "../payloads/listing.ts";

/** Mails that one click has sent again. */
export const MOST_RETRIED = 500;

const chosen = z.object({ ids: idsOf(MOST_RETRIED, "choose at least one mail"), reason });
const all = z.object({ reason });

/** Has chosen mails sent again that were given up. */
export const retryMailsAction: OpsAction<z.infer<typeof chosen>> = {
  name: "mail.retry",
  path: "/mails/retry",
  roles: ["operator"],
  isDangerous: false,
  form: chosen,
  run: (parts, sent) => retry(parts, sent, "mail.retry", sent.form.ids),
};

/** Has all of them sent again, as after the mail server was away for days. */
export const retryAllMailsAction: OpsAction<z.infer<typeof all>> = {
  name: "mail.retry-all",
  path: "/mails/retry-all",
  roles: ["operator"],
  isDangerous: false,
  form: all,
  run: (parts, sent) => retry(parts, sent, "mail.retry-all", null),
};

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
      const told = { action, target, before: "given up", after: "waiting", reason: form.reason };
      await appendAudit(tx, auditEntry(visitor, told));
    }
    return done;
  });
  if (retried.length === 0) return { ok: false, problem: "none of them is given up now; look at the list again" };
  const message = `${retried.length === 1 ? "1 mail is" : `${retried.length} mails are`} tried again, from now on`;
  return { ok: true, message, location: "/ops/mails?state=waiting" };
}
