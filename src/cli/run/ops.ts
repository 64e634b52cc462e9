import { authSecret } from "../../config/auth-secret.ts";
import { makeLocalLink } from "../../accounts/operators/local-operator.ts";
import { carryOverFactors } from "../../accounts/identity/secret-change-store.ts";
import type { Settings } from "../../config/environment.ts";
import type { Sql } from "../../db/client.ts";
import { reasonOf } from "../../errors.ts";
import type { Log } from "../../log.ts";
import { LINK_SECONDS } from "../../ops/sign-in/limits.ts";
import { say } from "../output.ts";

/**
 * Re-encrypts two-factor secrets after AUTH_SECRET was changed; AUTH_SECRET_PREVIOUS is the old value.
 * @param surfaces connections of `/ops` and of the console: each can read only its own users' secrets
 */
export async function carryOverSecret(surfaces: readonly Sql[], settings: Settings, log: Log): Promise<void> {
  const { AUTH_SECRET_PREVIOUS: previous } = settings;
  if (previous === undefined) return;
  const secret = await authSecret(settings);
  const each = await Promise.all(surfaces.map((sql) => carryOverFactors(sql, secret, previous)));
  const carried = each.reduce((sum, one) => sum + one.carried, 0);
  const unreadable = each.reduce((sum, one) => sum + one.unreadable, 0);
  log.info(
    `${carried} second factors are encrypted with the new AUTH_SECRET; unset AUTH_SECRET_PREVIOUS once every api process has it`,
  );
  if (unreadable > 0) {
    log.warn(`${unreadable} second factors can be read with neither secret; their holders turn them off and on again`);
  }
}

/** A link that signs the local operator in, once; null, after printing the reason, if none can be made. */
export async function localLink(sql: Sql, url: string): Promise<string | null> {
  try {
    return `${url}/ops/link?token=${await makeLocalLink(sql, LINK_SECONDS)}`;
  } catch (error) {
    say(`no link for the operator of this machine: ${reasonOf(error)}`);
    return null;
  }
}
