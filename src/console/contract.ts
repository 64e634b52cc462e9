import type { z } from "zod";
import type { Settings } from "../config/environment.ts";
import type { Sql } from "../db/client.ts";
import type { Shown } from "../frame/shown.ts";
import type { Log } from "../log.ts";
import type { MailKey } from "../mail/seal.ts";

/** Who is signed in at the console: the account that pages and actions are of, and from where they are asked for. */
export interface Holder {
  userId: string;
  accountId: bigint;
  email: string;
  isSuspended: boolean;
  address: string;
  userAgent: string;
  requestId: string;
}

/** What pages and actions of the console are made of. */
export interface ConsoleParts {
  sql: Sql;
  settings: Settings;
  log: Log;
  /** The public address, without a slash at its end. */
  site: () => string;
  /** Where this process is reached from this machine: for calls that it makes to itself. */
  ownUrl: () => string;
  /** What links in mails are encrypted with. */
  mailKey: MailKey;
  /** Whether this is a demo that only this machine reaches: it takes demo payments, and shows mails that it cannot send. */
  isDemo: boolean;
}

/** A page that is only looked at. Everything on it is of the holder's account alone. */
export interface ConsolePage<Query = unknown> {
  /** Below `/console`, as Express reads it: `/keys`. */
  path: string;
  /** Its place in the navigation; a page without one is reached by links. */
  nav?: { label: string; order: number; group: string };
  query: z.ZodType<Query>;
  /** Null is "not found": also for what is there and belongs to somebody else. */
  show(
    parts: ConsoleParts,
    asked: { holder: Holder; params: Readonly<Record<string, string>>; query: Query },
  ): Promise<Shown | null>;
}

/** What must hold before an action is done. The form is kept and goes through once it does. */
export type Need =
  /** The terms that hold now were accepted, or are with the form. */
  | "terms"
  /** A sign-in, or the password given again, of the last ten minutes; where a second factor is on, its code too. */
  | "fresh"
  /** As `fresh`, but only of those who have a second factor. */
  | "fresh-with-second-factor";

/** Something that is done by sending a form. What changes something leaves an audit entry, in the same transaction. */
export interface ConsoleAction<Form = unknown> {
  /** The word of logs for it: `key.create`. */
  name: string;
  /** What it does, for people who are asked to confirm that it is them: `Create key`. */
  title?: string;
  /** Below `/console`, as Express reads it: `/keys/:key/revoke`. */
  path: string;
  needs: readonly Need[];
  form: z.ZodType<Form>;
  run(
    parts: ConsoleParts,
    sent: { holder: Holder; params: Readonly<Record<string, string>>; form: Form },
  ): Promise<ConsoleDone>;
}

/**
 * What came of it: where to go on (at or below `/console`) and what to say there, or what was wrong with it. `once` is
 * shown at once instead, for what is kept nowhere, such as a new key. `didNothing` says that nothing was changed, so that
 * there is nothing to audit; without it an action that left no entry fails. `missing` is answered as an unknown path is.
 */
export type ConsoleDone =
  | { ok: true; message: string; location: string; once?: Shown; didNothing?: true }
  | { ok: false; problem: string }
  | { ok: false; missing: true };
