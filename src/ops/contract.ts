import { z } from "zod";
import type { Settings } from "../config/environment.ts";
import type { Sql } from "../db/client.ts";
import type { FileInput } from "../frame/body.ts";
import type { Shown } from "../frame/view.ts";
import type { Log } from "../log.ts";
import type { MailKey } from "../mail/seal.ts";
import type { Queues } from "../queue/runs/inspect.ts";

/**
 * The role of a person at `/ops`. A viewer sees the pages and changes nothing, an operator acts on houses, queues, rounds and
 * payments, data staff act on calibrations, an admin may do everything and manages people.
 */
export type Role = "viewer" | "operator" | "data" | "admin";

/** The person of a request and its origin, as the audit log stores them. */
export interface Visitor {
  operatorId: string;
  email: string;
  role: Role;
  address: string;
  requestId: string;
}

/** What pages and actions use. */
export interface OpsParts {
  sql: Sql;
  /** Null if this process has no Redis: pages report that instead of failing. */
  queues: Queues | null;
  /** The window within which a house counts as live, in seconds. */
  liveWindowSeconds: number;
  settings: Settings;
  log: Log;
  /** The keys that links in pending mails may be encrypted with. */
  mailKeys: readonly MailKey[];
}

/** A page that changes nothing. All signed-in staff may see it, unless it names `roles`. */
export interface OpsPage<Query = unknown> {
  /** Below `/ops`, as Express reads it: `/houses/:house`. */
  path: string;
  /** Its place in the navigation; a page without one is reached by links. */
  nav?: { label: string; order: number; group: string };
  /** The roles that may see it; every role if not given. */
  roles?: readonly Role[];
  /** What its parameters may be; filter, sort and page live in the URL, so that a view can be shared. */
  query: z.ZodType<Query>;
  show(parts: OpsParts, request: PageRequest<Query>): Promise<Shown | null>;
}

/** A page for the list of all pages; `query` of its `show` has the type of its schema. Without one it takes no parameters. */
export function opsPage<Query>(page: Omit<OpsPage<Query>, "query"> & { query?: z.ZodType<Query> }): OpsPage {
  return { query: z.object({}), ...page };
}

/** A request for a page: `params` are of its path. */
export interface PageRequest<Query> {
  visitor: Visitor;
  params: Readonly<Record<string, string>>;
  query: Query;
}

/** An action that a form performs. It is refused to every role that is not listed, and recorded in the audit log. */
export interface OpsAction<Form = unknown> {
  /** Its name in the audit log: `queue.pause`. */
  name: string;
  /** Below `/ops`, as Express reads it: `/queues/:queue/pause`. */
  path: string;
  /** The roles that may perform it, in addition to admins. */
  roles: readonly Exclude<Role, "viewer" | "admin">[];
  /** As the page that asks for the password again names it: `Change role`; the name if not given. */
  title?: string;
  /** Requires a sign-in, or a confirmed password, of the last ten minutes. */
  isDangerous: boolean;
  /** Also requires that the person uses two-factor authentication; only with `isDangerous`. */
  needsTwoFactor?: true;
  form: z.ZodType<Form>;
  /** The text file that its form may have; none if not given. */
  file?: FileInput;
  run(parts: OpsParts, sent: Sent<Form>): Promise<Done>;
}

/** An action for the list of all actions; `form` of its `run` has the type of its schema. Without one it takes no fields. */
export function opsAction<Form>(action: Omit<OpsAction<Form>, "form"> & { form?: z.ZodType<Form> }): OpsAction {
  return { form: z.object({}), ...action };
}

/** A form from a person whose role permits the action. */
export interface Sent<Form> {
  visitor: Visitor;
  params: Readonly<Record<string, string>>;
  form: Form;
}

/**
 * The outcome of an action: the next page (below `/ops`) with a message, or a problem (shown with the typed values). `once` is
 * shown instead of a redirect, for a value that must not be stored, such as a new password. With `didNothing` nothing was
 * changed, as by a form that was sent twice, so the audit log has no entry.
 */
export type Done =
  { ok: true; message: string; location: string; once?: Shown; didNothing?: true } | { ok: false; problem: string };
