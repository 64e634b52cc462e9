import type { z } from "zod";
import type { Settings } from "../config/environment.ts";
import type { Sql } from "../db/client.ts";
import type { Shown } from "../frame/shown.ts";
import type { Log } from "../log.ts";
import type { MailKey } from "../mail/seal.ts";
import type { Queues } from "../queue/inspect.ts";

/**
 * What somebody at `/ops` may do: a viewer sees everything and changes nothing, an operator acts on houses, queues and
 * rounds, data staff act on calibrations, an admin does all of it and decides who may sign in.
 */
export type Role = "viewer" | "operator" | "data" | "admin";

/** Who is looking, and from where: what the audit log keeps of an action. */
export interface Visitor {
  operatorId: string;
  email: string;
  role: Role;
  address: string;
  requestId: string;
}

/** What pages and actions are made of. */
export interface OpsParts {
  sql: Sql;
  /** Null where this process was given no Redis: pages say so instead of failing. */
  queues: Queues | null;
  /** The window within which a house counts as live, in seconds. */
  liveWindowSeconds: number;
  settings: Settings;
  log: Log;
  /** What links in waiting mails may be encrypted with. */
  mailKeys: readonly MailKey[];
}

/** A page that is only looked at. Everybody who is signed in may see every page. */
export interface OpsPage<Query = unknown> {
  /** Below `/ops`, as Express reads it: `/houses/:house`. */
  path: string;
  /** Its place in the navigation; a page without one is reached by links. */
  nav?: { label: string; order: number; group: string };
  /** What its parameters may be; filter, sort and page live in the URL, so that a view can be shared. */
  query: z.ZodType<Query>;
  show(parts: OpsParts, asked: Asked<Query>): Promise<Shown | null>;
}

/** A request for a page: `params` are of its path. */
export interface Asked<Query> {
  visitor: Visitor;
  params: Readonly<Record<string, string>>;
  query: Query;
}

/** Something that is done by sending a form. It is refused to every role that is not listed, and written to the audit log. */
export interface OpsAction<Form = unknown> {
  /** The audit log's word for it: `queue.pause`. */
  name: string;
  /** Below `/ops`, as Express reads it: `/queues/:queue/pause`. */
  path: string;
  /** Who may besides an admin. */
  roles: readonly Exclude<Role, "viewer" | "admin">[];
  /** Wants a sign-in of the last ten minutes. */
  isDangerous: boolean;
  form: z.ZodType<Form>;
  run(parts: OpsParts, sent: Sent<Form>): Promise<Done>;
}

/** A form that was sent by somebody who may. */
export interface Sent<Form> {
  visitor: Visitor;
  params: Readonly<Record<string, string>>;
  form: Form;
}

/**
 * What came of it: where to go on (below `/ops`) and what to say there, or what was wrong with it (shown with what was
 * typed). `once` is shown at once instead, for what must be kept nowhere, such as a new password.
 */
export type Done = { ok: true; message: string; location: string; once?: Shown } | { ok: false; problem: string };
