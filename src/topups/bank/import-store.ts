import { hash } from "node:crypto";
import type { Queryable, Transaction } from "../../db/client.ts";

/** A statement as it was pasted. */
export interface BankImport {
  id: bigint;
  bank: string;
  body: string;
  enteredBy: string;
  enteredById: string;
  enteredAt: Date;
  takenAt: Date | null;
}

/** Stores a pasted statement without importing it. Returns its id and the SHA-256 of its text. */
export async function saveImport(
  tx: Transaction,
  { bank, body, by }: { bank: string; body: string; by: string },
): Promise<{ id: bigint; sha256: string }> {
  const sha256 = hash("sha256", body);
  const [saved] = await tx<{ id: bigint }[]>`
    insert into bank_imports (bank, body, sha256, entered_by)
    values (${bank}, ${body}, ${sha256}, ${by})
    returning id`;
  if (saved === undefined) throw new Error("an insert gave no row");
  return { id: saved.id, sha256 };
}

/** Returns a pasted statement; null if there is none. */
export async function findImport(sql: Queryable, id: bigint): Promise<BankImport | null> {
  const [found] = await sql<BankImport[]>`
    select
      i.id, i.bank, i.body, u.email as "enteredBy", i.entered_by as "enteredById", i.entered_at as "enteredAt",
      i.taken_at as "takenAt"
    from bank_imports i
    join auth.users u on u.id = i.entered_by
    where i.id = ${id}`;
  return found ?? null;
}

/** Marks a statement as imported. Returns false if it was imported before. */
export async function takeImport(tx: Transaction, id: bigint): Promise<boolean> {
  const taken = await tx`
    update bank_imports
    set taken_at = clock_timestamp()
    where id = ${id}
      and taken_at is null
    returning id`;
  return taken.length > 0;
}
