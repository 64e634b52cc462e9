import { takeDeposit, takeSmallDeposits } from "./credit.ts";
import { amountOf } from "./amount.ts";
import { type FoundDeposit, saveDeposits } from "./deposit-store.ts";
import { addressAt } from "./derive.ts";
import { saveEndpoints, savePoll } from "./endpoints/endpoint-store.ts";
import { type CreditedState, listCredited, saveCreditedStates } from "./credited-store.ts";
import { creditedState, decideDeposit } from "./decide-deposit.ts";
import { createEvidenceReader, type Evidence, type ReadEvidence } from "./read-evidence.ts";
import { pollEndpoint, RECEIPTS_AT_ONCE, type Watch } from "./endpoints/poll-endpoint.ts";
import type { Head } from "./endpoints/on-chain.ts";
import { listPending, type PendingDeposit, saveChecked, saveOrphaned } from "./pending-store.ts";
import { batches, confirmationsOf } from "./endpoints/ranges.ts";
import type { Usdt } from "../../config/usdt.ts";

/** Deposits that are decided on in one poll: see {@link listPending} for their order. */
const MOST_PENDING = 200;

/** Credited deposits that are checked again in one poll. */
const MOST_CREDITED = 20;

/** The counts of a poll. `unread` endpoints did not respond, or not correctly; `gone` deposits were credited before. */
export type Seen = Record<"found" | "credited" | "small" | "orphaned" | "disputed" | "unread" | "gone", number>;

/**
 * Polls a chain: reads what every endpoint has that is not settled, and decides on pending deposits.
 *
 * Each endpoint is read separately and keeps its own position, so one that was down or withholds logs hides nothing
 * that the other shows. Deposits are decided on only while every endpoint is read up to its newest block. Every step may be lost or repeated:
 * positions advance after the deposits are stored, and a deposit is credited in one transaction under its own key.
 */
export async function watchDeposits(watch: Watch): Promise<Seen> {
  const { sql, usdt, endpoints } = watch;
  await saveEndpoints(sql, usdt, endpoints);
  const polls = await Promise.all(endpoints.map((endpoint) => pollEndpoint(watch, endpoint)));
  const seen: Seen = { found: 0, credited: 0, small: 0, orphaned: 0, disputed: 0, unread: 0, gone: 0 };
  for (const { found } of polls) seen.found += found;
  const heads = polls.flatMap(({ head }) => head ?? []);
  if (heads.length === polls.length) {
    const readEvidence = createEvidenceReader(polls, heads, watch.signal);
    const deciding: Deciding = { watch, heads, seen, disputes: new Map(), readEvidence };
    await decide(deciding);
    await checkCredited(deciding);
  }
  for (const { endpoint, head, rangeBlocks, error } of polls) {
    if (error !== null) seen.unread += 1;
    await savePoll(sql, usdt, { place: endpoint.place, rangeBlocks, isRead: head !== null, error });
  }
  return seen;
}

/** The inputs and results of deciding. */
interface Deciding {
  watch: Watch;
  heads: readonly Head[];
  seen: Seen;
  disputes: Map<bigint, string>;
  readEvidence: ReadEvidence;
}

async function decide(deciding: Deciding): Promise<void> {
  const { watch, seen, readEvidence } = deciding;
  const { sql, usdt, signal } = watch;
  const pending = await listPending(sql, usdt, MOST_PENDING);
  const checked: bigint[] = [];
  for (const few of batches(pending, RECEIPTS_AT_ONCE)) {
    signal.throwIfAborted();
    const evidence = await Promise.all(few.map((deposit) => readEvidence(deposit)));
    for (const [at, deposit] of few.entries()) {
      const given = evidence[at];
      if (given === undefined || given === null) continue;
      checked.push(deposit.id);
      await decideOn(deciding, deposit, given);
    }
  }
  seen.disputed = deciding.disputes.size;
  if (checked.length > 0) await saveChecked(sql, checked, deciding.disputes);
  seen.credited += await takeSmallDeposits(sql, usdt);
}

/** Checks recently credited deposits again, since a reorganization deeper than the confirmations removes them. */
async function checkCredited(deciding: Deciding): Promise<void> {
  const { watch, heads, seen, readEvidence } = deciding;
  const { sql, usdt, signal } = watch;
  const states = new Map<bigint, CreditedState>();
  for (const few of batches(await listCredited(sql, usdt, MOST_CREDITED), RECEIPTS_AT_ONCE)) {
    signal.throwIfAborted();
    const evidence = await Promise.all(few.map((deposit) => readEvidence(deposit)));
    for (const [at, deposit] of few.entries()) {
      const views = evidence[at]?.map(({ view }) => view);
      if (views !== undefined) states.set(deposit.id, creditedState(deposit, views, heads));
    }
  }
  seen.gone = [...states.values()].filter((state) => state === "gone").length;
  await saveCreditedStates(sql, states);
}

async function decideOn(deciding: Deciding, deposit: PendingDeposit, evidence: readonly Evidence[]): Promise<void> {
  const { watch, heads, seen, disputes } = deciding;
  const { sql, usdt } = watch;
  const views = evidence.map(({ view }) => view);
  const decision = decideDeposit(deposit, views, isDeep(usdt, heads, deposit.blockNumber));
  switch (decision.kind) {
    case "wait":
      break;
    case "dispute":
      disputes.set(deposit.id, decision.text);
      break;
    case "orphan":
      if (await saveOrphaned(sql, deposit)) seen.orphaned += 1;
      // store what the transaction did instead: settled blocks are not read again for it
      seen.found += await saveDeposits(sql, usdt, transfersOf(usdt, deposit, evidence));
      break;
    case "move": {
      const { blockHash, blockNumber, transfer } = decision;
      const amount = amountOf(transfer.units, usdt.chain.decimals);
      if (amount === null) disputes.set(deposit.id, `it is of ${transfer.units} units now, which is more than exists`);
      else await saveDeposits(sql, usdt, [{ ...transfer, ...amount, txHash: deposit.txHash, blockHash, blockNumber }]);
      break;
    }
    case "credit": {
      if (addressAt(usdt.xpub, deposit.addressIndex) !== deposit.address) {
        const text = `its address, ${deposit.addressIndex}, is not of the key in USDT_XPUB: set the former key again`;
        disputes.set(deposit.id, text);
        break;
      }
      const taken = await takeDeposit(sql, usdt, deposit);
      if (taken === "credited") seen.credited += 1;
      if (taken === "below_min") seen.small += 1;
    }
  }
}

/** Returns every transfer of the token that the endpoints have in a deposit's transaction. */
function transfersOf({ chain }: Usdt, { txHash }: PendingDeposit, evidence: readonly Evidence[]): FoundDeposit[] {
  const found = new Map<number, FoundDeposit>(); // a statement cannot change a row twice
  const receipts = evidence.flatMap(({ receipt }) => receipt ?? []);
  for (const { blockHash, blockNumber, transfers } of receipts) {
    for (const transfer of transfers) {
      const amount = amountOf(transfer.units, chain.decimals);
      if (amount !== null) found.set(transfer.position, { ...transfer, ...amount, txHash, blockHash, blockNumber });
    }
  }
  return [...found.values()];
}

/** Whether a block is deep enough for every endpoint: by number of blocks, or because the chain reports it as final. */
function isDeep({ chain }: Usdt, heads: readonly Head[], block: bigint): boolean {
  return heads.every(
    ({ number, finalized }) =>
      confirmationsOf(block, number) >= chain.confirmations || (finalized !== null && block <= finalized),
  );
}
