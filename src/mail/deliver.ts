import { createTransport } from "nodemailer";
import { z } from "zod";
import { reasonOf } from "../errors.ts";
import { isLoopback } from "../this-machine.ts";
import { within } from "../within.ts";
import { oneLine } from "./letter.ts";
import { SENT_WITHIN_MS } from "./limits.ts";
import type { Sender } from "../config/mail.ts";

/** A mail as it goes out. */
export interface Outgoing {
  recipient: string;
  subject: string;
  body: string;
  /** A UUID. */
  messageId: string;
}

/**
 * The mail server's response to a mail: sent; refused, for now or permanently; or the server itself fails (unreachable, silent,
 * a wrong certificate, or it rejects our password), as it would for every other mail.
 */
export type Delivery = { outcome: "sent" } | { outcome: "later" | "never" | "server-failure"; reason: string };

/** A connection to the mail server, opened with the first mail. */
export interface MailServer {
  /** Sends one mail. Ends within 45 s (or `withinMs`), whatever the server does, and never throws. */
  deliver(mail: Outgoing, signal: AbortSignal): Promise<Delivery>;
  close(): void;
}

/** Milliseconds for each step: a healthy server takes far less. */
const PATIENCE = { dnsTimeout: 5_000, connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 20_000 };
const LONGEST_REASON = 500;

/**
 * Prepares the connection to the mail server of SMTP_URL. `smtps:` uses TLS from the first byte; `smtp:` upgrades to it if the
 * server offers it, and requires it if a password is sent to another machine. An invalid certificate is accepted only with
 * `?tls.rejectUnauthorized=false` in the URL.
 */
export function openMailServer(url: string, from: Sender, { withinMs = SENT_WITHIN_MS } = {}): MailServer {
  const pool = { pool: true as const, maxConnections: 1, maxMessages: Infinity, maxRequeues: 1 };
  const transport = createTransport({ ...mailServerOptions(url), ...pool });
  return {
    async deliver({ recipient, subject, body, messageId }, signal) {
      const domain = from.address.slice(from.address.lastIndexOf("@") + 1);
      const patience = AbortSignal.timeout(withinMs);
      try {
        await transport.sendMail({
          from,
          to: { name: "", address: recipient },
          envelope: { from: from.address, to: [recipient] },
          subject,
          text: body,
          messageId: `<${messageId}@${domain}>`,
          headers: { "Auto-Submitted": "auto-generated" },
          disableFileAccess: true,
          disableUrlAccess: true,
          signal: AbortSignal.any([signal, patience]),
        });
        return { outcome: "sent" };
      } catch (error) {
        if (signal.aborted) return { outcome: "later", reason: "the worker stopped while it was being sent" };
        if (patience.aborted) {
          return { outcome: "server-failure", reason: `the mail server did not take it within ${withinMs / 1_000} s` };
        }
        return deliveryOf(error);
      }
    },
    close: () => transport.close(),
  };
}

/** Connects to the mail server of SMTP_URL, signs in and leaves. @throws Error with the reason if that fails. */
export async function tryMailServer(url: string): Promise<void> {
  const transport = createTransport(mailServerOptions(url));
  const late = () => new Error("it did not end the greeting within 20 s");
  try {
    await within(PATIENCE.socketTimeout, late, transport.verify());
  } finally {
    transport.close();
  }
}

/** Options of nodemailer for a URL: its timeouts, and TLS if a password is sent to another machine. */
export function mailServerOptions(url: string) {
  const { password, hostname, protocol, searchParams } = new URL(url);
  const mustEncrypt =
    protocol === "smtp:" && password !== "" && !isLoopback(hostname) && !searchParams.has("requireTLS");
  return { url, ...PATIENCE, ...(mustEncrypt && { requireTLS: true }) };
}

/** What an error of nodemailer means: `code` is the step that failed, `responseCode` the server's response to it. */
function deliveryOf(error: unknown): Delivery {
  const { code, command, responseCode } = factsOf.parse(error);
  const reason = oneLine(reasonOf(error), LONGEST_REASON);
  // refused by nodemailer itself: no server would take such an address
  if (code === "EENVELOPE" && command === "API") return { outcome: "never", reason };
  const isOfThisMail = code === "EENVELOPE" || code === "EMESSAGE";
  // a sender that is not taken is our setting, 421 is a server that closes, 503 a session that went wrong
  if (!isOfThisMail || command === "MAIL FROM" || [0, 421, 503].includes(responseCode)) {
    return { outcome: "server-failure", reason };
  }
  return { outcome: responseCode >= 500 ? "never" : "later", reason };
}

/** What nodemailer adds to an error. */
const factsOf = z.object({
  code: z.string().catch(""),
  command: z.string().catch(""),
  responseCode: z.int().catch(0),
});
