import { toString as toSvg } from "qrcode";
import { ACCOUNT_CLOSED } from "../../callers/lock-store.ts";
import { PageError } from "../../frame/errors.ts";
import { thousands, usd } from "../../money.ts";
import { addressOf } from "../../topups/usdt/address.ts";
import { chainOfId } from "../../config/usdt-chains.ts";
import { type Deposit, listDeposits, smallMicros } from "../../topups/usdt/deposit-list-store.ts";
import { type EndpointState, listEndpoints } from "../../topups/usdt/endpoints/endpoint-store.ts";
import { confirmationsOf } from "../../topups/usdt/endpoints/ranges.ts";
import { type Usdt, usdtOf } from "../../config/usdt.ts";
import { consolePage } from "../contract.ts";

const MOST_DEPOSITS = 50;
const REFRESH_SECONDS = 10;
/** One failed query is repeated soon; the page reports a failure that lasts longer. */
const AWAY_MS = 60_000;
const crumbs = [{ label: "Top up", href: "/console/top-up" }];

/** The holder's USDT address, and deposits to it with their confirmations. */
export const usdtPage = consolePage({
  path: "/top-up/usdt",
  async show({ sql, settings, log }, { holder: { accountId } }) {
    const usdt = usdtOf(settings);
    if (usdt === null) return null;
    const found = await addressOf(sql, usdt, accountId);
    if (!found.ok && found.reason === "closed") throw new PageError(403, ACCOUNT_CLOSED);
    if (!found.ok && found.reason === "other-key") {
      log.error(
        "USDT_XPUB differs from the key of the issued addresses, so no address is shown; set USDT_XPUB to that key",
      );
    }
    const [endpoints, deposits, small] = await Promise.all([
      listEndpoints(sql, usdt),
      listDeposits(sql, { accountId, state: null, before: null, limit: MOST_DEPOSITS + 1 }),
      smallMicros(sql, usdt, accountId),
    ]);
    const data = {
      found,
      qr: found.ok ? await qrOf(found.address) : null,
      chain: usdt.chain,
      least: thousands(usd(usdt.minMicros)),
      small: small === 0n ? null : thousands(usd(small)),
      isCut: deposits.length > MOST_DEPOSITS,
      deposits: deposits.slice(0, MOST_DEPOSITS).map((deposit) => shownDeposit(usdt, endpoints, deposit)),
      awaySince: awaySince(endpoints, new Date()),
    };
    return { template: "top-up/usdt", title: "USDT on-chain", data, crumbs, refreshSeconds: REFRESH_SECONDS };
  },
});

/** Encodes the address only: all wallets read it, few read a payment URI. */
async function qrOf(address: string): Promise<string> {
  const svg = await toSvg(address, { type: "svg", margin: 4 });
  return `data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}`;
}

function shownDeposit({ chain }: Usdt, endpoints: readonly EndpointState[], deposit: Deposit) {
  const { name, explorer } = deposit.chainId === chain.id ? chain : chainOfId(deposit.chainId);
  const head = deposit.chainId === chain.id ? lowestHead(endpoints) : null;
  const confirmed = head === null ? 0 : Math.min(confirmationsOf(deposit.blockNumber, head), chain.confirmations);
  return {
    ...deposit,
    network: name,
    href: explorer === null ? null : `${explorer}${deposit.txHash}`,
    confirmations: `${confirmed} of ${chain.confirmations} confirmations`,
  };
}

/** The lowest block of all endpoints: a deposit is credited when every endpoint has enough confirmations. */
function lowestHead(endpoints: readonly EndpointState[]): bigint | null {
  const heads = endpoints.flatMap(({ head }) => head ?? []);
  return heads.length < endpoints.length || heads.length === 0 ? null : heads.reduce((a, b) => (b < a ? b : a));
}

function awaySince(endpoints: readonly EndpointState[], now: Date): Date | null {
  const since = endpoints
    .flatMap(({ failingSince }) => failingSince ?? [])
    .toSorted((a, b) => a.getTime() - b.getTime());
  const [first] = since;
  return first !== undefined && now.getTime() - first.getTime() > AWAY_MS ? first : null;
}
