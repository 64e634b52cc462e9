import pg from "pg";
import { codeOf } from "../errors.ts";

/** Codes of the system and of this folder for a server that could not be reached or did not respond. */
const UNREACHABLE = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EAI_AGAIN",
  "CONNECTION_LOST",
]);

/**
 * The connection to PostgreSQL ended, was never made, or did not respond in time. A statement that was sent may have been
 * carried out or not.
 */
export class ConnectionLostError extends Error {
  override name = "ConnectionLostError";
  readonly code = "CONNECTION_LOST";
  /** The connection stayed open and nothing came: other connections made before may be silent as well. */
  readonly isSilent: boolean;

  constructor(message: string, { cause, isSilent = false }: { cause?: unknown; isSilent?: boolean } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.isSilent = isSilent;
  }
}

/** True when PostgreSQL is starting, stopping or out of reach: trying again later can help. */
export function isConnectionError(error: unknown): boolean {
  const code = codeOf(error);
  return /^(57P0|08|53)/.test(code) || UNREACHABLE.has(code);
}

/** True for a connection error, and for any error that was caused by one. */
export function isOutage(error: unknown): boolean {
  return isConnectionError(error) || (error instanceof Error && error.cause !== undefined && isOutage(error.cause));
}

/** True when the server ended a statement, as it does after the statement timeout; the connection stays open. */
export function isStatementEnded(error: unknown): boolean {
  return codeOf(error) === "57014";
}

/** True when another session had the lock of a row for too long, or both waited for each other. */
export function isLockError(error: unknown): boolean {
  return ["55P03", "40P01"].includes(codeOf(error));
}

/** True when the server closes the connection after this error: it stops, or an operator ended it. */
export function isConnectionClosing(error: unknown): boolean {
  return codeOf(error).startsWith("57P0");
}

/** The name of the constraint that refused a statement; null for any other error. */
export function violatedConstraint(error: unknown): string | null {
  return error instanceof pg.DatabaseError ? (error.constraint ?? null) : null;
}

/** True when a prepared statement no longer fits the schema, as after a migration: it must be prepared again. */
export function isStalePlan(error: unknown): boolean {
  return (
    error instanceof pg.DatabaseError &&
    ((error.code === "0A000" && error.routine === "RevalidateCachedQuery") || error.code === "26000")
  );
}
