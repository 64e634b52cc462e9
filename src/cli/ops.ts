import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { makeLocalLink } from "../accounts/local-operator.ts";
import type { Settings } from "../config.ts";
import type { Sql } from "../db/client.ts";
import { keepPassword } from "../embedded/password.ts";
import { reasonOf, UsageError } from "../errors.ts";
import { LINK_SECONDS } from "../ops/sign-in/limits.ts";
import { say } from "./output.ts";

/** Connections of `/ops`, apart from the API's: whatever its pages read, callers never wait for one. */
export const OPS_CONNECTIONS = 6;
/** Connections of `/console`, for the same reason. */
export const CONSOLE_CONNECTIONS = 6;

/**
 * What signs cookies and encrypts second factors: AUTH_SECRET, or one that the data folder keeps.
 * @throws UsageError where neither can be had.
 */
export async function authSecret({ AUTH_SECRET, DATA_DIR }: Settings): Promise<string> {
  if (AUTH_SECRET !== undefined) return AUTH_SECRET;
  try {
    await mkdir(DATA_DIR, { recursive: true, mode: 0o711 });
    const { password } = await keepPassword(join(DATA_DIR, "auth-secret"));
    return password;
  } catch (error) {
    throw new UsageError(`set AUTH_SECRET: the folder ${DATA_DIR} cannot keep a secret of its own: ${reasonOf(error)}`);
  }
}

/** A link that signs the local operator in, once; null, and said why, where none can be made. */
export async function localLink(sql: Sql, url: string): Promise<string | null> {
  try {
    return `${url}/ops/link?token=${await makeLocalLink(sql, LINK_SECONDS)}`;
  } catch (error) {
    say(`no link for the operator of this machine: ${reasonOf(error)}`);
    return null;
  }
}
