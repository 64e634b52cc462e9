import type { Queryable, Transaction } from "../../db/client.ts";
import { type LegalKind, legalText } from "../legal.ts";

/** A consent to a text. */
export interface GivenConsent {
  kind: LegalKind;
  version: string;
  sha256: string;
  /** Text as PostgreSQL writes it, to keep all digits. */
  givenAt: string;
  address: string | null;
  userAgent: string | null;
}

/** Whether an account accepted the current text of a kind. */
export async function hasCurrentConsent(sql: Queryable, accountId: bigint, kind: LegalKind): Promise<boolean> {
  const { version, sha256 } = legalText(kind);
  const rows = await sql`
    select
    from consents
    where account_id = ${accountId} and kind = ${kind} and version = ${version} and sha256 = ${sha256}
    limit 1`;
  return rows.length > 0;
}

/** Stores the consent of an account to the current text of a kind. */
export async function saveConsent(
  tx: Transaction,
  consent: { accountId: bigint; kind: LegalKind; address: string | null; userAgent: string | null },
): Promise<void> {
  const { accountId, kind, address, userAgent } = consent;
  const { version, sha256 } = await keepLegalText(tx, kind);
  await tx`
    insert into consents (account_id, kind, version, sha256, address, user_agent)
    values (${accountId}, ${kind}, ${version}, ${sha256}, ${address}, ${userAgent})`;
}

/** Stores consents that were given at sign-up, with their times. */
export async function saveEarlierConsents(
  tx: Transaction,
  accountId: bigint,
  consents: readonly GivenConsent[],
): Promise<void> {
  for (const { kind, version, sha256, givenAt, address, userAgent } of consents) {
    await tx`
      insert into consents (account_id, kind, version, sha256, given_at, address, user_agent)
      values (
        ${accountId}, ${kind}, ${version}, ${sha256}, ${givenAt}::text::timestamptz, ${address}, ${userAgent}
      )`;
  }
}

/**
 * Stores the current text of a kind if it is not stored yet.
 * @throws Error if another text is stored under the same version: a changed text needs a new version.
 */
export async function keepLegalText(
  tx: Transaction,
  kind: LegalKind,
): Promise<{ kind: LegalKind; version: string; sha256: string }> {
  const { version, sha256, text } = legalText(kind);
  await tx`
    insert into legal_texts (kind, version, sha256, body)
    values (${kind}, ${version}, ${sha256}, ${text})
    on conflict do nothing`;
  const [kept] = await tx<{ sha256: string }[]>`
    select sha256
    from legal_texts
    where kind = ${kind} and version = ${version}`;
  if (kept?.sha256 !== sha256) {
    throw new Error(
      `the text ${kind} of ${version} was kept with other words (${kept?.sha256}); a changed text needs a new version`,
    );
  }
  return { kind, version, sha256 };
}

/** Consents of an account, oldest first. */
export async function listConsents(sql: Queryable, accountId: bigint): Promise<GivenConsent[]> {
  return sql<GivenConsent[]>`
    select kind, version, sha256, utc_text(given_at) as "givenAt", address, user_agent as "userAgent"
    from consents
    where account_id = ${accountId}
    order by id`;
}

/** Erases addresses and user agents from an account's consents; texts and times stay. */
export async function forgetOrigins(tx: Transaction, accountId: bigint): Promise<void> {
  await tx`
    update consents
    set address = null, user_agent = null
    where account_id = ${accountId} and (address is not null or user_agent is not null)`;
}
