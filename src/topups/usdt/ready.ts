import type { Settings } from "../../config/environment.ts";
import type { Sql } from "../../db/client.ts";
import { reasonOf, UsageError } from "../../errors.ts";
import type { Log } from "../../log.ts";
import { listFingerprints } from "./address-store.ts";
import { saveEndpoints } from "./endpoints/endpoint-store.ts";
import { type Usdt, usdtOf } from "../../config/usdt.ts";
import { xpubFingerprint } from "../../config/xpub.ts";

/** A slow endpoint must not delay the start; the watcher checks it again. */
const WITHIN_MS = 5_000;

/** The result of checking an endpoint against the configuration. */
export type Checked = { host: string; state: "ok" | "wrong" | "away"; text: string };

/**
 * Checks before the start that the key is the one that addresses were derived from, and that chain, token and decimals
 * are as configured. An endpoint that does not respond is a warning, since the watcher checks it again before reading.
 * @throws UsageError on a difference, since money would be sent to a wrong address or counted wrong.
 */
export async function requireUsdt(sql: Sql, settings: Settings, log: Log): Promise<void> {
  const usdt = usdtOf(settings);
  if (usdt === null) return;
  const problem = (await settingProblem(usdt)) ?? (await keyProblem(sql, usdt));
  if (problem !== null) throw new UsageError(problem);
  await saveEndpoints(
    sql,
    usdt,
    usdt.rpcUrls.map((url, at) => ({ place: at + 1, host: new URL(url).host })),
  );
  for (const { state, text } of await checkEndpoints(usdt)) {
    if (state === "wrong") throw new UsageError(`USDT is not as it is configured: ${text}`);
    if (state === "away") log.warn(`an endpoint of ${usdt.chain.name} is not checked yet: ${text}`);
  }
}

/**
 * Returns the problem with the settings that only arithmetic shows: the token's checksum, the key's point on the curve.
 */
export async function settingProblem({ chain, xpub }: Usdt): Promise<string | null> {
  const [{ tokenProblem }, { addressAt }] = await Promise.all([
    import("./endpoints/endpoint.ts"),
    import("./derive.ts"),
  ]);
  const problem = tokenProblem(chain.token);
  if (problem !== null) return `USDT_TOKEN: ${problem}`;
  try {
    addressAt(xpub, 0);
    return null;
  } catch {
    return "USDT_XPUB: expected an extended public key from which addresses can be derived";
  }
}

/** Returns the problem if addresses were derived from another key than the configured one; null if not. */
export async function keyProblem(sql: Sql, { xpub }: Usdt): Promise<string | null> {
  const fingerprint = xpubFingerprint(xpub);
  const others = (await listFingerprints(sql)).filter((one) => one !== fingerprint);
  return others.length === 0
    ? null
    : `USDT_XPUB: expected the key that the addresses of accounts were made of (fingerprint ${others.join(", ")}), got one with fingerprint ${fingerprint}; addresses are permanent, so set the former key again`;
}

/** Checks whether every endpoint has the configured chain, token and decimals. */
export async function checkEndpoints(usdt: Usdt): Promise<Checked[]> {
  const { openEndpoints } = await import("./endpoints/endpoint.ts");
  const endpoints = openEndpoints(usdt.chain, usdt.rpcUrls, AbortSignal.timeout(WITHIN_MS));
  return Promise.all(
    endpoints.map(async (endpoint): Promise<Checked> => {
      const { host } = endpoint;
      try {
        const text = await endpoint.verify();
        return text === null ? { host, state: "ok", text: host } : { host, state: "wrong", text };
      } catch (error) {
        return { host, state: "away", text: reasonOf(error) };
      }
    }),
  );
}
