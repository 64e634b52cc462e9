import { hash } from "node:crypto";
import type { Queryable, Transaction } from "../../../db/client.ts";

/** A statement as it was pasted or uploaded. */
export interface BankImport {
  id: bigint;
  bank: string;
  body: string;
  /** The name of the uploaded file; null if the statement was pasted. */
  fileName: string | null;
  enteredBy: string;
  enteredById: string;
  enteredAt: Date;
  importedAt: Date | null;
}

/** A statement to store. */
export interface NewImport {
  bank: string;
  body: string;
  fileName: string | null;
  /** The id of the operator who entered it. */
  by: string;
}

/** Stores a statement without importing it. Returns its id and the SHA-256 of its text. */
export async function saveImport(
  tx: Transaction,
  { bank, body, fileName, by }: NewImport,
): Promise<{ id: bigint; sha256: string }> {
  const sha256 = hash("sha256", body);
  const [saved] = await tx<{ id: bigint }[]>`
    insert into bank_imports (bank, body, file_name, sha256, entered_by)
    values (${bank}, ${body}, ${fileName}, ${sha256}, ${by})
    returning id`;
  if (saved === undefined) throw new Error("an insert gave no row");
  return { id: saved.id, sha256 };
}

/**
 * Returns the id of a statement with the same text that was imported, or that the same operator entered and that
 * was not imported; null if there is none. So the same file sent twice leads to the same preview.
 */
export async function findSameImport(sql: Queryable, { bank, body, by }: NewImport): Promise<bigint | null> {
  const [found] = await sql<{ id: bigint }[]>`
    select id
    from bank_imports
    where bank = ${bank}
      and sha256 = ${hash("sha256", body)}
      and (taken_at is not null or entered_by = ${by})
    order by taken_at nulls last, id
    limit 1`;
  return found?.id ?? null;
}

/** Returns a statement; null if there is none. */
export async function findImport(sql: Queryable, id: bigint): Promise<BankImport | null> {
  const [found] = await sql<BankImport[]>`
    select
      i.id, i.bank, i.body, i.file_name as "fileName", u.email as "enteredBy", i.entered_by as "enteredById",
      i.entered_at as "enteredAt", i.taken_at as "importedAt"
    from bank_imports i
    join auth.users u on u.id = i.entered_by
    where i.id = ${id}`;
  return found ?? null;
}

/** Marks a statement as imported. Returns false if it was imported before. */
export async function markImported(tx: Transaction, id: bigint): Promise<boolean> {
  const marked = await tx`
    update bank_imports
    set taken_at = clock_timestamp()
    where id = ${id}
      and taken_at is null
    returning id`;
  return marked.length > 0;
}
