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
import type { OpsPage, Visitor } from "../contract.ts";
import { excerptOf, idOf, listing, pageOf, PER_PAGE } from "../payloads/listing.ts";
import { MOST_RETRIED } from "./retry.ts";

const STATES: readonly (readonly [MailState | "", string])[] = [
  ["", "any"],
  ["waiting", "waiting"],
  ["sent", "sent"],
  ["given-up", "given up"],
];

const listQuery = z.object({
  after: listing.after,
  recipient: z.string().trim().max(254).default(""),
  kind: z.string().trim().max(60).default(""),
  state: z.enum(["", "waiting", "sent", "given-up"]).default(""),
  sort: z.enum(["newest", "oldest"]).default("newest"),
});

/** Mails to people, and what became of them; never what is in them. */
export const mailsPage: OpsPage<z.infer<typeof listQuery>> = {
  path: "/mails",
  nav: { label: "Mails", order: 41, group: "Administration" },
  query: listQuery,
  async show({ sql, settings }, { query }) {
    const [found, counts, trouble, wasTried] = await Promise.all([
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
      trouble,
      hasServer,
      wasTried,
      states: STATES,
      most: MOST_RETRIED,
    };
    return { template: "mails/mails", title: "Mails", data };
  },
};

const nothing = z.object({});

/**
 * One mail; its text too for an admin, while there is no mail server that could bring it to whoever it is for. Reading it is
 * written down, since a link in it may open somebody's account.
 */
export const mailPage: OpsPage<z.infer<typeof nothing>> = {
  path: "/mails/:id",
  query: nothing,
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
      title: `Mail ${mail.id}`,
      data,
      crumbs: [{ label: "Mails", href: "/ops/mails" }],
    };
  },
};

function whyHidden({ state }: ListedMail, { role }: Visitor, hasServer: boolean): string {
  if (state === "sent") return "Its text was forgotten when it was sent.";
  if (state === "given-up") return "Its text is kept so that it can be sent again, and shown to nobody.";
  if (hasServer) return "Texts of mails are shown to nobody, since they may hold links that open something.";
  if (role !== "admin") return "No mail server is set, so it waits; admins may see its text while none was ever tried.";
  return "Mails have been tried from here before, so texts are shown to nobody.";
}
