import type { Queryable, Transaction } from "../db/client.ts";
import { whyNoApproval } from "../accounts/operators/operator-change-store.ts";
import { queueMail } from "../mail/outbox-store.ts";
import { reversedLetter } from "./letters.ts";
import type { Leg, LedgerSide } from "./posting.ts";
import { post } from "./store.ts";

/** A proposal to reverse a transaction, as operators see it. */
export interface Proposal {
  id: bigint;
  transactionId: bigint;
  reason: string;
  state: "proposed" | "approved" | "declined";
  proposedBy: string;
  /** E-mail address of the operator; so is `decider`. */
  proposer: string;
  proposedAt: Date;
  decider: string | null;
  decidedAt: Date | null;
  decidedWhy: string | null;
  reversalId: bigint | null;
}

/** The outcome of a proposal or decision; if it is refused, nothing was changed. */
export type Decided<Result> =
  | ({ ok: true } & Result)
  | {
      ok: false;
      reason: string;
      /** The transaction whose reversal the operator may not approve, for the audit log. */ refused?: bigint;
    };

/** Proposals, newest first: the open ones, or all of one transaction. */
export async function listProposals(sql: Queryable, of: bigint | "open"): Promise<Proposal[]> {
  return sql<Proposal[]>`
    select
      p.id,
      p.transaction_id as "transactionId",
      p.reason,
      p.state,
      p.proposed_by as "proposedBy",
      proposer.email as proposer,
      p.proposed_at as "proposedAt",
      decider.email as decider,
      p.decided_at as "decidedAt",
      p.decided_why as "decidedWhy",
      p.reversal_id as "reversalId"
    from reversal_proposals p
    join auth.users proposer on proposer.id = p.proposed_by
    left join auth.users decider on decider.id = p.decided_by
    where ${of === "open" ? sql`p.state = 'proposed'` : sql`p.transaction_id = ${of}`}
    order by p.id desc
    limit 100`;
}

/**
 * Stores a proposal to reverse a transaction; no money moves until another operator approves it. Refused if the
 * transaction is reversed or proposed already, if it holds a line in suspense that is matched, rejected or being returned, if it reverses what a bank
 * line moved, or if it paid for a plan whose unused part was credited to another purchase: the same money would be
 * returned twice.
 *
 * A line credited to the wrong account is entered again under another bank reference after its credit was reversed, and if
 * it came out of suspense also what held it; so is a line that was held at a wrong rate.
 */
export async function proposeReversal(
  tx: Transaction,
  { transactionId, reason, by }: { transactionId: bigint; reason: string; by: string },
): Promise<Decided<{ proposalId: bigint }>> {
  const refusal = await whyNotReversible(tx, transactionId);
  if (refusal !== null) return { ok: false, reason: refusal };
  const [made] = await tx<{ id: bigint }[]>`
    insert into reversal_proposals (transaction_id, reason, proposed_by)
    values (${transactionId}, ${reason}, ${by})
    on conflict (transaction_id) where state <> 'declined' do nothing
    returning id`;
  if (made !== undefined) return { ok: true, proposalId: made.id };
  return { ok: false, reason: `transaction ${transactionId} has a proposal already; approve or decline that one` };
}

/**
 * Decides a proposal. Another operator than the proposer, with two-factor authentication, must approve it; the reversal is posted in the same database
 * transaction, which also writes a mail to each holder whose balance it changes. If a wallet holds too little, the approval is refused and the proposal stays open. Any operator may decline.
 */
export async function decideReversal(
  tx: Transaction,
  {
    proposalId,
    isApproved,
    by,
    hasTwoFactor,
    why,
  }: { proposalId: bigint; isApproved: boolean; by: string; hasTwoFactor: boolean; why: string },
): Promise<Decided<{ transactionId: bigint; reversalId: bigint | null }>> {
  const [proposal] = await tx<
    { state: Proposal["state"]; transactionId: bigint; proposedBy: string; proposedAt: Date; reason: string }[]
  >`
    select
      state, transaction_id as "transactionId", proposed_by as "proposedBy", proposed_at as "proposedAt", reason
    from reversal_proposals
    where id = ${proposalId}
    for update`;
  if (proposal === undefined) return { ok: false, reason: `there is no proposal ${proposalId}` };
  const { state, transactionId, proposedBy, proposedAt, reason } = proposal;
  if (state !== "proposed") return { ok: false, reason: `proposal ${proposalId} was ${state} already` };
  if (isApproved && proposedBy === by) {
    return { ok: false, reason: "you proposed this yourself; someone else must look at it and approve it" };
  }
  if (isApproved && !hasTwoFactor) {
    return { ok: false, reason: "Approving requires two-factor authentication: turn it on at /ops/me, then approve" };
  }
  const work = { authors: [proposedBy], begunAt: proposedAt };
  const notYet = isApproved ? await whyNoApproval(tx, by, work) : null;
  if (notYet !== null) return { ok: false, reason: notYet, refused: transactionId };
  let reversalId: bigint | null = null;
  if (isApproved) {
    await lockHeldLine(tx, transactionId);
    await lockOwners(tx, transactionId);
    const refusal = await whyNotReversible(tx, transactionId);
    if (refusal !== null) return { ok: false, reason: refusal };
    const posted = await post(tx, {
      kind: "reversal",
      key: `reversal:${transactionId}`,
      legs: await mirrorOf(tx, transactionId),
      meta: { proposal: String(proposalId), reason },
      reverses: transactionId,
    });
    if (!posted.ok) return { ok: false, reason: posted.message };
    reversalId = posted.transactionId;
    await endHeldLine(tx, transactionId);
    await queueLetters(tx, { transactionId, reversalId });
  }
  await tx`
    update reversal_proposals
    set
      state = ${isApproved ? "approved" : "declined"},
      decided_by = ${by},
      decided_at = clock_timestamp(),
      decided_why = ${why},
      reversal_id = ${reversalId}
    where id = ${proposalId}`;
  return { ok: true, transactionId, reversalId };
}

async function queueLetters(
  tx: Transaction,
  { transactionId, reversalId }: { transactionId: bigint; reversalId: bigint },
): Promise<void> {
  const moved = await tx<{ email: string; micros: bigint }[]>`
    select owners.email, e.amount as micros
    from ledger_entries e
    join ledger_accounts a on a.id = e.account_id
    join accounts owners on owners.id = a.owner_id
    where e.transaction_id = ${reversalId}
      and a.kind = 'wallet'
      and owners.closed_at is null
    order by e.seq`;
  for (const { email, micros } of moved) {
    await queueMail(tx, { ...reversedLetter({ micros, transactionId }), recipient: email });
  }
}

/** Locks the line that a transaction holds in suspense, as a decision on the line does first. */
async function lockHeldLine(tx: Transaction, id: bigint): Promise<void> {
  await tx`
    select
    from bank_lines
    where suspense_transaction_id = ${id}
    for no key update`;
}

/** A line whose money left suspense by a reversal is not decided on any more. */
async function endHeldLine(tx: Transaction, id: bigint): Promise<void> {
  await tx`
    update bank_lines
    set state = 'reversed'
    where suspense_transaction_id = ${id}
      and state = 'suspense'`;
}

/** Locks the accounts of the wallets, as a purchase does, so that no purchase changes until the transaction ends. */
async function lockOwners(tx: Transaction, id: bigint): Promise<void> {
  await tx`
    select
    from accounts
    where id in (
      select a.owner_id
      from ledger_entries e
      join ledger_accounts a on a.id = e.account_id
      where e.transaction_id = ${id}
    )
    order by id
    for no key update`;
}

/** Why a transaction cannot be reversed, and what to do; null if it can be. */
export async function whyNotReversible(tx: Queryable, id: bigint): Promise<string | null> {
  const [found] = await tx<
    (HeldLine & { kind: string; reversedBy: bigint | null; isOfLine: boolean; wentInto: bigint | null })[]
  >`
    with recursive chain (id) as (
      select ${id}::bigint
      union all
      select t.reverses
      from chain
      join ledger_transactions t on t.id = chain.id
      where t.reverses is not null
    )
    select
      t.kind,
      r.id as "reversedBy",
      exists (
        select
        from bank_lines l
        join ledger_transactions back on back.reverses = l.credit_transaction_id
        where l.suspense_transaction_id = t.id
      ) as "isUnplaced",
      held.state as "heldState",
      exists (
        select
        from bank_returns
        where line_id = held.id
          and ended_at is null
          and approved_at is null
      ) as "hasReturn",
      exists (
        select
        from bank_lines l
        where t.reverses = l.credit_transaction_id
          or t.reverses = l.suspense_transaction_id
      ) as "isOfLine",
      (
        select c.purchase_id
        from purchases p
        join purchase_credits c on c.of_purchase = p.id
        where p.transaction_id in (select id from chain)
          and c.micros > 0
      ) as "wentInto"
    from ledger_transactions t
    left join ledger_transactions r on r.reverses = t.id
    left join bank_lines held on held.suspense_transaction_id = t.id
    where t.id = ${id}`;
  if (found === undefined) return `there is no transaction ${id}`;
  if (found.reversedBy !== null) return `transaction ${id} was taken back by ${found.reversedBy} already`;
  const whyHeld = found.kind === "suspense" ? whyLineIsHeld(found) : null;
  if (whyHeld !== null) return whyHeld;
  if (found.isOfLine) {
    return `transaction ${id} took back money of a bank line, which is final; if the line was in suspense, reverse what held it too, then enter it again at /ops/bank under another bank reference`;
  }
  if (found.wentInto !== null) {
    return `what was left of this purchase was taken off the price of purchase ${found.wentInto} and would count twice; look at what paid that one`;
  }
  return null;
}

/** The line that a transaction holds in suspense. */
interface HeldLine {
  heldState: string | null;
  /** Its placement was reversed. */
  isUnplaced: boolean;
  hasReturn: boolean;
}

function whyLineIsHeld({ heldState, isUnplaced, hasReturn }: HeldLine): string | null {
  if (isUnplaced) return null;
  if (heldState === "matched") return "the bank line is matched: take its match back at /ops/bank first";
  if (heldState !== "suspense") {
    return "money in suspense is placed or sent back at /ops/bank; if it is in the wrong wallet, reverse the placement first";
  }
  return hasReturn ? "the bank line is being returned: stop its pending return at /ops/bank first" : null;
}

async function mirrorOf(tx: Transaction, id: bigint): Promise<Leg[]> {
  const rows = await tx<{ kind: LedgerSide["kind"]; owner: bigint | null; micros: bigint }[]>`
    select a.kind, a.owner_id as owner, -e.amount as micros
    from ledger_entries e
    join ledger_accounts a on a.id = e.account_id
    where e.transaction_id = ${id}
    order by e.seq`;
  return rows.map(({ kind, owner, micros }) => ({ side: sideOf(kind, owner), micros }));
}

function sideOf(kind: LedgerSide["kind"], owner: bigint | null): LedgerSide {
  if (kind !== "wallet") return { kind };
  if (owner === null) throw new Error("a wallet in the ledger is of no one");
  return { kind, owner };
}
