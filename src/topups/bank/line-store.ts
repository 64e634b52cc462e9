import type { Queryable, Transaction } from "../../db/client.ts";
import { type ListPage, type PageWanted, readListPage } from "../../db/list-page.ts";
import { type BankLine, differsIn, type LineState, type StatementLine } from "./line.ts";

/** The result of saving a line, or of comparing it before saving. */
export type Compared =
  | { line: StatementLine; is: "new"; id: bigint | null }
  /** It is stored already, with the same facts. */
  | { line: StatementLine; is: "same"; id: bigint }
  /** Another line has the same bank and bank reference but other facts. */
  | { line: StatementLine; is: "other"; id: bigint; differs: string[] };

/** Compares lines with the stored ones by bank and bank reference. Writes nothing. */
export async function compareLines(sql: Queryable, lines: readonly StatementLine[]): Promise<Compared[]> {
  const kept = await sql<(StatementLine & { id: bigint })[]>`
    select
      l.id, l.bank, l.bank_ref as "bankRef", l.value_date::text as "valueDate", l.currency,
      l.amount_minor as "amountMinor", l.sender, l.remittance
    from ${rowsOf(sql, lines)}
    join bank_lines l using (bank, bank_ref)`;
  const byName = new Map(kept.map((line) => [nameOf(line), line]));
  return lines.map((line): Compared => {
    const known = byName.get(nameOf(line));
    if (known === undefined) return { line, is: "new", id: null };
    const differs = differsIn(known, line);
    return differs.length === 0 ? { line, is: "same", id: known.id } : { line, is: "other", id: known.id, differs };
  });
}

/** Stores lines; stored ones are not changed. Returns the result for each, in their order. */
export async function saveLines(
  tx: Transaction,
  lines: readonly StatementLine[],
  { by, importId }: { by: string; importId: bigint | null },
): Promise<Compared[]> {
  // one import at a time: two with the same lines in another order would deadlock
  await tx`select pg_advisory_xact_lock(hashtext('bank_lines'))`;
  const saved = await tx<{ id: bigint; bank: string; bankRef: string }[]>`
    insert into bank_lines (
      bank, bank_ref, value_date, currency, amount_minor, sender, remittance, import_id, entered_by
    )
    select bank, bank_ref, value_date, currency, amount_minor, sender, remittance, ${importId}, ${by}
    from ${rowsOf(tx, lines)}
    order by place
    on conflict (bank, bank_ref) do nothing
    returning id, bank, bank_ref as "bankRef"`;
  const ids = new Map(saved.map((line) => [nameOf(line), line.id]));
  return (await compareLines(tx, lines)).map((compared) => {
    const id = ids.get(nameOf(compared.line));
    return id === undefined ? compared : { line: compared.line, is: "new", id };
  });
}

/** Returns a line; null if there is none. */
export async function findLine(sql: Queryable, id: bigint): Promise<BankLine | null> {
  const [line] = await sql<BankLine[]>`
    select ${columns(sql)}
    from bank_lines l
    join auth.users u on u.id = l.entered_by
    where l.id = ${id}`;
  return line ?? null;
}

/** Returns a line, locked until the transaction ends; null if there is none. */
export async function lockLine(tx: Transaction, id: bigint): Promise<BankLine | null> {
  await tx`
    select
    from bank_lines
    where id = ${id}
    for no key update`;
  return findLine(tx, id); // a second statement sees what the last holder of the lock committed
}

/** A search for lines by state (`return`: the return is pending), text, and the statement that they were imported from. */
export interface LineSearch {
  state: LineState | "return" | null;
  text: string;
  importId: bigint | null;
}

/** Returns a page of matching lines, newest first; the last page if there are fewer. */
export async function listLines(
  sql: Queryable,
  { state, text, importId }: LineSearch,
  wanted: PageWanted,
): Promise<ListPage<BankLine>> {
  return readListPage<BankLine>(
    wanted,
    ({ limit, offset }) => sql<(BankLine & { total: number })[]>`
    select ${columns(sql)}, count(*) over ()::integer as total
    from bank_lines l
    join auth.users u on u.id = l.entered_by
    where (
        ${state}::text is null
        or l.state = ${state}
        or (
          ${state} = 'return'
          and exists (
            select
            from bank_returns r
            where r.line_id = l.id
              and r.ended_at is null
              and r.approved_at is null
          )
        )
      )
      and (${importId}::bigint is null or l.import_id = ${importId})
      and (
        ${text} = ''
        or strpos(lower(concat_ws(' ', l.bank, l.bank_ref, l.sender, l.remittance)), lower(${text})) > 0
      )
    order by l.id desc
    limit ${limit}
    offset ${offset}`,
  );
}

/**
 * Returns lines of the same day and amount and of the same sender or reference (ignoring case): possible duplicates.
 */
export async function listTwins(sql: Queryable, line: BankLine): Promise<Twin[]> {
  return sql<Twin[]>`
    select id, bank, bank_ref as "bankRef"
    from bank_lines
    where value_date = ${line.valueDate}::text::date
      and currency = ${line.currency}
      and amount_minor = ${line.amountMinor}
      and (lower(sender) = lower(${line.sender}) or lower(bank_ref) = lower(${line.bankRef}))
      and id <> ${line.id}
    order by id
    limit 5`;
}

/** A stored line that may be the same transfer as another one. */
export type Twin = Pick<BankLine, "id" | "bank" | "bankRef">;

/**
 * Returns for each line the stored ones of the same day, amount and sender (ignoring case) with another bank reference,
 * at most five.
 */
export async function listTwinsOfEach(sql: Queryable, lines: readonly StatementLine[]): Promise<Twin[][]> {
  const found = await sql<(Twin & { place: number })[]>`
    select given.place::integer as place, t.id, t.bank, t.bank_ref as "bankRef"
    from ${rowsOf(sql, lines)}
    cross join lateral (
      select l.id, l.bank, l.bank_ref
      from bank_lines l
      where l.value_date = given.value_date
        and l.currency = given.currency
        and l.amount_minor = given.amount_minor
        and lower(l.sender) = lower(given.sender)
        and (l.bank, l.bank_ref) <> (given.bank, given.bank_ref)
      order by l.id
      limit 5
    ) t
    order by given.place, t.id`;
  const byPlace = Map.groupBy(found, ({ place }) => place - 1);
  return lines.map((_, place) => (byPlace.get(place) ?? []).map(({ id, bank, bankRef }) => ({ id, bank, bankRef })));
}

/** The number of pending lines by what they need next. */
export interface LineCounts {
  new: number;
  matched: number;
  suspense: number;
  rejected: number;
  /** Lines in suspense or rejected whose return needs a second person. */
  returns: number;
  /** The time since when the oldest match or return needs a second person; null if there is none. */
  oldestWaits: Date | null;
}

/** Counts pending lines by what they need next. */
export async function countLines(sql: Queryable): Promise<LineCounts> {
  const [counts] = await sql<LineCounts[]>`
    select
      count(*) filter (where l.state = 'new')::integer as new,
      count(*) filter (where l.state = 'matched')::integer as matched,
      count(*) filter (where l.state = 'suspense')::integer as suspense,
      count(*) filter (where l.state = 'rejected')::integer as rejected,
      count(r.id)::integer as returns,
      min(coalesce(m.matched_at, r.asked_at)) as "oldestWaits"
    from bank_lines l
    left join bank_matches m
      on m.line_id = l.id
      and m.ended_at is null
      and m.approved_at is null
    left join bank_returns r
      on r.line_id = l.id
      and r.ended_at is null
      and r.approved_at is null
    where l.state in ('new', 'matched', 'suspense', 'rejected')`;
  if (counts === undefined) throw new Error("a count gave no row");
  return counts;
}

/** What a line stores of its posting to suspense; `by` is the id of the person who set the rate. */
export interface Posted {
  transactionId: bigint;
  micros: bigint;
  rateE8: bigint;
  by: string;
}

/** Changes a line's state. Fields that are not given stay as they are. */
export async function saveLineState(
  tx: Transaction,
  id: bigint,
  next: {
    state: LineState;
    reason?: string | null;
    suspense?: Posted;
    creditedBy?: bigint;
    returnedBy?: bigint;
  },
): Promise<void> {
  const { state, reason = null, suspense, creditedBy = null, returnedBy = null } = next;
  await tx`
    update bank_lines
    set
      state = ${state},
      reason = coalesce(${reason}, reason),
      suspense_transaction_id = coalesce(${suspense?.transactionId ?? null}, suspense_transaction_id),
      suspense_micros = coalesce(${suspense?.micros ?? null}, suspense_micros),
      rate_e8 = coalesce(${suspense?.rateE8 ?? null}, rate_e8),
      held_by = coalesce(${suspense?.by ?? null}, held_by),
      credit_transaction_id = coalesce(${creditedBy}, credit_transaction_id),
      return_transaction_id = coalesce(${returnedBy}, return_transaction_id)
    where id = ${id}`;
}

function nameOf({ bank, bankRef }: Pick<StatementLine, "bank" | "bankRef">): string {
  return JSON.stringify([bank, bankRef]);
}

/** The lines as rows of `given`, with their `place` in the list, from 1. */
function rowsOf(sql: Queryable, lines: readonly StatementLine[]) {
  return sql`
    unnest(
      ${lines.map(({ bank }) => bank)}::text[],
      ${lines.map(({ bankRef }) => bankRef)}::text[],
      ${lines.map(({ valueDate }) => valueDate)}::text[]::date[],
      ${lines.map(({ currency }) => currency)}::text[],
      ${lines.map(({ amountMinor }) => String(amountMinor))}::bigint[],
      ${lines.map(({ sender }) => sender)}::text[],
      ${lines.map(({ remittance }) => remittance)}::text[]
    ) with ordinality as given (bank, bank_ref, value_date, currency, amount_minor, sender, remittance, place)`;
}

function columns(sql: Queryable) {
  return sql`
    l.id, l.bank, l.bank_ref as "bankRef", l.value_date::text as "valueDate", l.currency,
    l.amount_minor as "amountMinor", l.sender, l.remittance, l.state, l.import_id as "importId",
    u.email as "enteredBy", l.entered_by as "enteredById", l.entered_at as "enteredAt",
    coalesce((select i.entered_at from bank_imports i where i.id = l.import_id), l.entered_at) as "begunAt",
    l.rate_e8 as "rateE8",
    l.suspense_micros as "suspenseMicros", l.suspense_transaction_id as "suspenseTransactionId",
    (select holder.email from auth.users holder where holder.id = l.held_by) as "heldBy", l.held_by as "heldById",
    l.credit_transaction_id as "creditTransactionId", l.return_transaction_id as "returnTransactionId", l.reason`;
}
