import { z } from "zod";
import {
  countMails,
  type ListedMail,
  findMail,
  findSendFailure,
  findUntouchedText,
  listMails,
  type MailState,
  wasMailTried,
} from "../../mail/list-store.ts";
import { unsealText } from "../../mail/seal.ts";
import { audited } from "../../audit/store.ts";
import { auditEntry } from "../audit-entry.ts";
import { opsPage, type Visitor } from "../contract.ts";
import { idOf } from "../../frame/path-id.ts";
import { excerptOf, listing, pageOf, PER_PAGE } from "../payloads/listing.ts";
import { MOST_RETRIED } from "./retry.ts";

const STATES: readonly (readonly [MailState | "", string])[] = [
  ["", "any"],
  ["pending", "pending"],
  ["printed", "printed"],
  ["sent", "sent"],
  ["given-up", "given up"],
];

const listQuery = z.object({
  after: listing.after,
  recipient: z.string().trim().max(254).default(""),
  kind: z.string().trim().max(60).default(""),
  state: z.enum(["", "pending", "printed", "sent", "given-up"]).default(""),
  sort: z.enum(["newest", "oldest"]).default("newest"),
});

/** Mails to people and their states. Their texts are not shown. */
export const mailsPage = opsPage({
  path: "/mails",
  nav: { label: "Mails", order: 41, group: "Administration" },
  query: listQuery,
  async show({ sql, settings }, { query }) {
    const [found, counts, failure, wasTried] = await Promise.all([
      listMails(
        sql,
        { state: query.state === "" ? null : query.state, recipient: query.recipient, kind: query.kind },
        { after: idOf(query.after), oldestFirst: query.sort === "oldest", limit: PER_PAGE + 1 },
      ),
      countMails(sql),
      findSendFailure(sql),
      wasMailTried(sql),
    ]);
    const { rows, next } = pageOf(found, ({ id }) => String(id));
    const shown = rows.map((row) => ({ ...row, lastError: row.lastError === null ? null : excerptOf(row.lastError) }));
    const hasServer = settings.SMTP_URL !== undefined;
    const data = {
      rows: shown,
      next,
      perPage: PER_PAGE,
      query,
      counts,
      failure,
      hasServer,
      wasTried,
      states: STATES,
      most: MOST_RETRIED,
    };
    return { template: "mails/mails", title: "Mails", data };
  },
});

/**
 * One mail. An admin also sees its text if no mail server is set that could deliver it. Reading it is recorded, since a link
 * in it may grant access to an account.
 */
export const mailPage = opsPage({
  path: "/mails/:id",
  async show({ sql, settings, mailKeys }, { params, visitor }) {
    const id = idOf(params["id"]);
    const mail = id === null ? null : await findMail(sql, id);
    if (mail === null) return null;
    const hasServer = settings.SMTP_URL !== undefined;
    const isForMe = visitor.role === "admin" && !hasServer;
    const untouched = isForMe ? await findUntouchedText(sql, mail.id) : null;
    const text = untouched && (unsealText(mailKeys, untouched) ?? untouched.body);
    if (text !== null) {
      const entry = auditEntry(visitor, { action: "mail.read", target: `mail ${mail.id}` });
      await audited(sql, () => Promise.resolve({ result: null, entry }));
    }
    const data = { mail, text, hidden: text === null ? whyHidden(mail, visitor, hasServer) : null };
    return {
      template: "mails/mail",
      title: mail.subject,
      header: { badges: [{ text: `mail ${mail.id}`, tone: "quiet" as const }] },
      data,
      crumbs: [{ label: "Mails", href: "/ops/mails" }],
    };
  },
});

function whyHidden({ state }: ListedMail, { role }: Visitor, hasServer: boolean): string {
  if (state === "sent") return "The text was deleted when the mail was sent.";
  if (state === "given-up") return "The text is kept so that the mail can be sent again. It is not shown.";
  if (hasServer) return "Texts of mails are not shown, since their links may grant access.";
  if (role !== "admin")
    return "No mail server is set, so the mail is pending. Admins can read its text until a first mail was sent.";
  return "Mails have been sent from here before, so texts are not shown.";
}
