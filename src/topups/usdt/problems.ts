import { type Chain, chainOfId } from "../../config/usdt-chains.ts";
import type { EndpointState } from "./endpoints/endpoint-store.ts";
import type { LeftOut } from "./endpoints/left-out-store.ts";

/** A problem for people to check, as an alert shows it. */
export interface Problem {
  subject: string;
  text: string;
}

const MINUTE_MS = 60_000;
/** A poll begins every ten seconds and waits at most twenty for a silent endpoint. */
const UNWATCHED_MS = 50_000;
/** Two polls: an alert within a minute of the first failed request, which may take twenty seconds to fail. */
const AWAY_MS = 20_000;
/** No supported chain makes fewer than four blocks per minute. */
const STILL_MS = 15 * MINUTE_MS;

/** Returns the problem with an endpoint at a time; null if there is none, or not for long enough. */
export function endpointProblem(chain: string, endpoint: EndpointState, now: Date): Problem | null {
  const { place, host, lookedAt, failingSince, isRead, lastError, headAt } = endpoint;
  const age = (at: Date) => now.getTime() - at.getTime();
  const subject = `endpoint ${place}`;
  const until = "no deposit is credited until then, and none is lost";
  if (age(lookedAt) > UNWATCHED_MS) {
    const text = `${chain} was not polled through ${host} since ${time(lookedAt)}: see whether a worker runs and watch-deposits is not paused; ${until}`;
    return { subject, text };
  }
  if (failingSince !== null && age(failingSince) > AWAY_MS) {
    const [how, then] = isRead
      ? [" completely", "deposits can be credited late until then, and none is lost"]
      : ["", until];
    const text = `${chain} cannot be read${how} since ${time(failingSince)}: ${lastError ?? host}; wait, or set USDT_RPC_URLS to an endpoint that responds; ${then}`;
    return { subject, text };
  }
  if (failingSince === null && headAt !== null && age(headAt) > STILL_MS) {
    const text = `${host} knows no block of ${chain} that is newer than ${time(headAt)}: wait, or set USDT_RPC_URLS to an endpoint that follows the chain; ${until}`;
    return { subject, text };
  }
  return null;
}

/** The problem of a deep deposit on which endpoints differ, or whose receipt is missing. */
export function disputeProblem(deposit: { txHash: string; position: number; since: Date; text: string }): Problem {
  const { txHash, position, since, text } = deposit;
  return {
    subject: `${txHash} ${position}`,
    text: `the deposit in ${txHash} at ${position} is not credited since ${time(since)}: ${text}; look it up at an explorer, and replace the endpoint that is wrong`,
  };
}

/** The problem of deposits that are deep enough and on which no poll decides. */
export function undecidedProblem({
  n,
  reached,
  amount,
  since,
}: {
  n: number;
  /** How many of them reach the minimum. */
  reached: number;
  amount: string;
  since: Date;
}): Problem {
  return {
    subject: "deposits not decided",
    text: `${n} deposits, together ${amount} USD, ${reached} of them of at least the minimum, have been deep enough for minutes and are not decided on, the first since ${time(since)}: more arrive than a poll decides on, or the endpoints are not read; see /ops/deposits; none is lost, and those of at least the minimum are decided on first`,
  };
}

/** The problem of a credited deposit that no endpoint has on the chain any more. */
export function reorganizedProblem(deposit: {
  txHash: string;
  position: number;
  amount: string;
  accountId: bigint;
  since: Date;
}): Problem {
  const { txHash, position, amount, accountId, since } = deposit;
  return {
    subject: `credited ${txHash} ${position}`,
    text: `the deposit in ${txHash} at ${position}, credited to account ${accountId} (/ops/callers/${accountId}) with ${amount} USD, is no longer on the chain since ${time(since)}: a reorganization replaced its block; look it up at an explorer, and propose a reversal of its top-up if it does not come back`,
  };
}

/** The problem of deposits that were seen before another chain or token was configured, or none (null). */
export function strandedProblem(
  now: Chain | null,
  { chainId, token, n, amount }: { chainId: bigint; token: string; n: number; amount: string },
): Problem {
  const [state, variables] =
    now === null
      ? ["USDT is not configured", "USDT_XPUB, USDT_CHAIN and USDT_RPC_URLS"]
      : [`${now.name} (token ${now.token}) is configured`, "USDT_CHAIN and USDT_RPC_URLS"];
  const what = n === 1 ? `1 deposit of ${amount} USD` : `${n} deposits, together ${amount} USD`;
  return {
    subject: `chain ${chainId} ${token}`,
    text: `${what} on ${chainOfId(chainId).name} (token ${token}) cannot be credited while ${state}: set ${variables} back until they are credited or found to be below the minimum`,
  };
}

/** The problem of blocks that were left out for an account's address; another block opens another alert. */
export function leftOutProblem({ chainId, accountId, address, blocks, n, since }: LeftOut): Problem {
  const { name } = chainOfId(chainId);
  const more = n > blocks.length ? ` and ${n - blocks.length} more` : "";
  return {
    subject: `left out of account ${accountId}, chain ${chainId}, newest block ${blocks[0]}`,
    text: `${name} has more transfers to ${address} of account ${accountId} (/ops/callers/${accountId}) in one block than an endpoint can list, last seen at ${time(since)}: ${n === 1 ? "block" : "blocks"} ${blocks.join(", ")}${more}; other deposits are credited; look the address up at an explorer, and enter a deposit in these blocks at /ops/bank if it is not listed at /ops/deposits`,
  };
}

function time(at: Date): string {
  return `${at.toISOString().slice(0, 19).replace("T", " ")}Z`;
}
