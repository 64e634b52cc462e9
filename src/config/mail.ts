import { z } from "zod";
import { isHttpUrl } from "./values.ts";

/** The sender of e-mail. */
export interface Sender {
  name: string;
  address: string;
}

const LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
/** HTML's pattern of an e-mail address: no character of it is invisible or looks like another, and none is SMTP syntax. */
const ADDRESS = new RegExp(`^[a-z0-9.!#$%&'*+/=?^_\`{|}~-]+@${LABEL}(?:\\.${LABEL})*$`, "i");
const LONGEST_ADDRESS = 254;
const LONGEST_WEBHOOK = 2000;
/** The most addresses of staff of one installation. */
const MOST_ADDRESSES = 10;
/** The sender's name if only an address is set. */
export const SENDER_NAME = "Roundhouse";

/** `someone@example.com`, or `Some Name <someone@example.com>`. */
function readSender(text: string): Sender | null {
  const [, name = "", address = text.trim()] = /^([^<>"\p{Cc}]*)<([^<>]+)>\s*$/u.exec(text) ?? [];
  return isEmailAddress(address) ? { name: name.trim() || SENDER_NAME, address } : null;
}

/** A sender in the form in which `MAIL_FROM` sets it. */
export function senderText({ name, address }: Sender): string {
  return `${name} <${address}>`;
}

/** The account of the key that `up` prints. */
export const DEMO_ACCOUNT = "demo@localhost";

/** Whether a mail can be sent to it; servers of a network have domains without a dot. */
export function isEmailAddress(text: string): boolean {
  return text.length <= LONGEST_ADDRESS && ADDRESS.test(text);
}

/** Why a person cannot have an address, whose domain must have a dot; null if they can. */
export function emailProblem(text: string): string | null {
  if (isEmailAddress(text) && /@.+\./.test(text)) return null;
  const [other] = /[^\x20-\x7e]/u.exec(text) ?? [];
  if (other === undefined) return "expected an e-mail address such as ann@example.com";
  const code = other.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0");
  const advice = /[\p{C}\p{Z}]/u.test(other) ? "; if it was pasted, type it instead" : "";
  return `expected an address of visible ASCII characters, found U+${code}${advice}`;
}

function isMailServer(text: string): boolean {
  return URL.canParse(text) && ["smtp:", "smtps:"].includes(new URL(text).protocol) && new URL(text).hostname !== "";
}

/** The variables of the environment that mail is about. */
export const mailVariables = {
  SMTP_URL: z
    .string()
    .refine(isMailServer, "expected a URL such as smtp://user:password@mail.example:587 or smtps://mail.example")
    .optional(),
  MAIL_FROM: z
    .string()
    .transform((text, context): Sender => {
      const sender = readSender(text);
      if (sender !== null) return sender;
      context.addIssue("expected an e-mail address, or one with a name before it: Rounds <hello@example.com>");
      return z.NEVER;
    })
    .optional(),
  STAFF_WEBHOOK_URL: z
    .string()
    .refine(
      (text) => text.length <= LONGEST_WEBHOOK && isHttpUrl(text),
      `expected a URL such as https://hooks.slack.com/services/T000/B000/XXXX, at most ${LONGEST_WEBHOOK} characters`,
    )
    .optional(),
  ALERT_EMAIL: z
    .string()
    .default("")
    .transform((text) => [...new Set(text.split(",").map((one) => one.trim()))].filter((one) => one !== ""))
    .refine(
      (list) => list.length <= MOST_ADDRESSES && list.every(isEmailAddress),
      `expected e-mail addresses with commas between, ${MOST_ADDRESSES} at most`,
    ),
};
