import { z } from "zod";
import { usd } from "../../money.ts";
import { keyProblem } from "../../topups/usdt/ready.ts";
import { chainOfId } from "../../config/usdt-chains.ts";
import { type Deposit, listAddressRows, listDeposits, sumDeposits } from "../../topups/usdt/deposit-list-store.ts";
import { type EndpointState, listEndpoints } from "../../topups/usdt/endpoints/endpoint-store.ts";
import { REREAD_DAYS } from "../../topups/usdt/endpoints/ranges.ts";
import { requestReread } from "../../topups/usdt/endpoints/request-reread.ts";
import { findUsdtProblems } from "../../topups/usdt/problem-store.ts";
import { type Usdt, usdtOf } from "../../config/usdt.ts";
import { xpubFingerprint } from "../../config/xpub.ts";
import { auditedAction } from "../audited-action.ts";
import { opsPage } from "../contract.ts";
import { idOf } from "../../frame/path-id.ts";
import { pageOf, PER_PAGE } from "../payloads/listing.ts";

const REFRESH_SECONDS = 10;
const place = z.string().max(20).regex(/^\d*$/, "expected a place in the list as a link of it has it").default("");
const listQuery = z.object({
  account: z.string().trim().max(20).regex(/^\d*$/, "expected the id of an account").default(""),
  state: z.enum(["", "pending", "below_min", "credited", "orphaned"]).default(""),
  after: place,
});

/** USDT deposits, and the state of the endpoints. */
export const depositsPage = opsPage({
  path: "/deposits",
  nav: { label: "Deposits", order: 32, group: "Money" },
  query: listQuery,
  async show({ sql, settings }, { query }) {
    const usdt = usdtOf(settings);
    const filter = {
      accountId: idOf(query.account),
      state: query.state === "" ? null : query.state,
      before: idOf(query.after),
      limit: PER_PAGE + 1,
    };
    const [deposits, sums, endpoints, failures, wrongKey] = await Promise.all([
      listDeposits(sql, filter),
      sumDeposits(sql),
      usdt === null ? [] : listEndpoints(sql, usdt),
      findUsdtProblems(sql, usdt),
      usdt === null ? null : keyProblem(sql, usdt),
    ]);
    const { rows, next } = pageOf(deposits, ({ id }) => String(id));
    const data = {
      setup: usdt === null ? null : setupOf(usdt),
      endpoints: endpoints.map(shownEndpoint),
      problems: [...(wrongKey === null ? [] : [wrongKey]), ...failures.map(({ text }) => text)],
      sums: sums.map((sum) => ({ ...sum, amount: usd(sum.micros) })),
      rows: rows.map(shownDeposit),
      query,
      next,
      perPage: PER_PAGE,
    };
    return { template: "deposits/deposits", title: "Deposits", data, refreshSeconds: REFRESH_SECONDS };
  },
});

const addressQuery = z.object({ after: place });

/** The addresses of accounts, with their indexes. */
export const depositAddressesPage = opsPage({
  path: "/deposits/addresses",
  query: addressQuery,
  async show({ sql }, { query }) {
    const after = query.after === "" ? -1 : Math.min(Number(query.after), 2 ** 31 - 1);
    const found = await listAddressRows(sql, { after, limit: PER_PAGE + 1 });
    const { rows, next } = pageOf(found, ({ index }) => String(index));
    const data = { rows: rows.map((row) => ({ ...row, amount: usd(row.micros) })), query, next, perPage: PER_PAGE };
    const crumbs = [{ label: "Deposits", href: "/ops/deposits" }];
    return { template: "deposits/addresses", title: "Deposit addresses", data, crumbs };
  },
});

const againForm = z.object({
  block: z
    .string()
    .trim()
    .regex(/^\d{1,15}$/, "expected the number of a block")
    .transform(BigInt),
});

/** Rereads blocks from which an endpoint may have omitted a deposit. */
export const readDepositsAgainAction = auditedAction({
  name: "deposits.read-again",
  path: "/deposits/read-again",
  roles: ["operator"],
  isDangerous: false,
  form: againForm,
  async change(tx, { form: { block } }, { settings }) {
    const usdt = usdtOf(settings);
    if (usdt === null) return { ok: false, problem: "USDT is not offered, so no chain is read" };
    const requested = await requestReread(tx, usdt, block);
    if (!requested.ok) return requested;
    return {
      ok: true,
      target: `chain ${usdt.chain.id}`,
      after: { block: String(block), endpoints: requested.endpoints },
      message: `The blocks from ${block} on are read again; new deposits are found and credited after them.`,
      location: "/ops/deposits",
    };
  },
});

function setupOf({ chain, xpub, minMicros, rpcUrls }: Usdt) {
  return {
    chain,
    fingerprint: xpubFingerprint(xpub),
    least: usd(minMicros),
    isCompared: rpcUrls.length > 1,
    rereadDays: REREAD_DAYS,
  };
}

function shownEndpoint(endpoint: EndpointState) {
  const { head, settledTo } = endpoint;
  return { ...endpoint, toRead: head === null || settledTo === null ? null : head - settledTo };
}

function shownDeposit(deposit: Deposit) {
  const { name, explorer } = chainOfId(deposit.chainId);
  const href = explorer === null ? null : `${explorer}${deposit.txHash}`;
  return { ...deposit, network: name, href, amount: usd(deposit.micros) };
}
