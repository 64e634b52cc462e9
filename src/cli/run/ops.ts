import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { makeLocalLink } from "../../accounts/local-operator.ts";
import { carryOverFactors } from "../../accounts/secret-change-store.ts";
import type { Settings } from "../../config/environment.ts";
import type { Sql } from "../../db/client.ts";
import { keepPassword } from "../../embedded/password.ts";
import { reasonOf, UsageError } from "../../errors.ts";
import type { Log } from "../../log.ts";
import { LINK_SECONDS } from "../../ops/sign-in/limits.ts";
import { say } from "../output.ts";

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

/**
 * Encrypts second factors anew after AUTH_SECRET was changed, where AUTH_SECRET_PREVIOUS says what it was.
 * @param sql of `/ops`, which may write them
 */
export async function carryOverSecret(sql: Sql, settings: Settings, log: Log): Promise<void> {
  const { AUTH_SECRET_PREVIOUS: previous } = settings;
  if (previous === undefined) return;
  const { carried, unreadable } = await carryOverFactors(sql, await authSecret(settings), previous);
  log.info(
    `${carried} second factors are encrypted with the new AUTH_SECRET; unset AUTH_SECRET_PREVIOUS once every api process has it`,
  );
  if (unreadable > 0) {
    log.warn(`${unreadable} second factors can be read with neither secret; their holders turn them off and on again`);
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
