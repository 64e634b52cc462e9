import { z } from "zod";
import type { Settings } from "../config/environment.ts";
import type { Sql } from "../db/client.ts";
import type { FileInParts, Shown } from "../frame/view.ts";
import type { Buckets } from "../limits/buckets.ts";
import type { Log } from "../log.ts";
import type { MailKey } from "../mail/seal.ts";

/** The signed-in holder of an account, with the origin of the request. */
export interface Holder {
  userId: string;
  accountId: bigint;
  email: string;
  isSuspended: boolean;
  address: string;
  userAgent: string;
  requestId: string;
}

/** What pages and actions of the console use. */
export interface ConsoleParts {
  sql: Sql;
  settings: Settings;
  log: Log;
  /** Limits of what one account may do, shared by all processes. */
  buckets: Buckets;
  /** The public address, without a slash at its end. */
  site: () => string;
  /** The address of this process on this machine, for calls that it makes to itself. */
  ownUrl: () => string;
  /** Encrypts links in mails. */
  mailKey: MailKey;
  /** Whether this is a demo for this machine only: it takes demo payments and shows links that it cannot mail. */
  isDemo: boolean;
}

/** A read-only page with data of the holder's account only. */
export interface ConsolePage<Query = unknown> {
  /** Express path below `/console`: `/keys`. */
  path: string;
  /** Entry in the navigation; a page without it is reached by links. */
  nav?: { label: string; order: number; group: string };
  query: z.ZodType<Query>;
  /** Null means "not found", also if it exists and belongs to another account. */
  show(
    parts: ConsoleParts,
    asked: { holder: Holder; params: Readonly<Record<string, string>>; query: Query },
  ): Promise<Shown | FileInParts | null>;
}

/** A page for the list of all pages; `query` of its `show` has the type of its schema. Without one it takes no parameters. */
export function consolePage<Query>(
  page: Omit<ConsolePage<Query>, "query"> & { query?: z.ZodType<Query> },
): ConsolePage {
  return { query: z.object({}), ...page };
}

/** What an action requires. The form is kept and sent again once the requirement is met. */
export type Need =
  /** The current terms are accepted, before or with this form. */
  | "terms"
  /** A sign-in or confirmed password of the last ten minutes, with a code if two-factor authentication is on. */
  | "fresh"
  /** As `fresh`, but only for people with two-factor authentication. */
  | "fresh-with-second-factor";

/** An action that a form sends. A change and its audit entry are in the same transaction. */
export interface ConsoleAction<Form = unknown> {
  /** Name in logs: `key.create`. */
  name: string;
  /** Title for the page that asks for a fresh proof: `Create key`. */
  title?: string;
  /** Express path below `/console`: `/keys/:key/revoke`. */
  path: string;
  needs: readonly Need[];
  form: z.ZodType<Form>;
  run(
    parts: ConsoleParts,
    sent: { holder: Holder; params: Readonly<Record<string, string>>; form: Form },
  ): Promise<ConsoleDone>;
}

/** An action for the list of all actions; `form` of its `run` has the type of its schema. Without one it takes no fields. */
export function consoleAction<Form>(
  action: Omit<ConsoleAction<Form>, "form"> & { form?: z.ZodType<Form> },
): ConsoleAction {
  return { form: z.object({}), ...action };
}

/**
 * The outcome of an action: a redirect (`location` at or below `/console`) with a message, or a problem with the form.
 * `once` is a page that is shown instead of the redirect, for secrets that are not stored, such as a new key. `didNothing`:
 * nothing changed, so no audit entry is required; without it, an action that wrote none fails. `missing` gives a 404.
 */
export type ConsoleDone =
  | { ok: true; message: string; location: string; once?: Shown; didNothing?: true }
  | { ok: false; problem: string }
  | { ok: false; missing: true };
