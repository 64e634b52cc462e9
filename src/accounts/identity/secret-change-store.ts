import { symmetricDecrypt, symmetricEncrypt } from "better-auth/crypto";
import type { Sql } from "../../db/client.ts";

const AT_A_TIME = 500;

/** Numbers of second factors by outcome. */
export interface CarriedOver {
  /** Encrypted again with the current secret. */
  carried: number;
  /** Readable with neither secret. */
  unreadable: number;
}

interface Factor {
  id: string;
  secret: string;
  backupCodes: string;
}

/**
 * Encrypts second factors again after `AUTH_SECRET` changed: the library reads one secret only, so their owners would be
 * locked out. Idempotent: factors with the current secret stay, and a concurrent change by a person wins.
 */
export async function carryOverFactors(sql: Sql, secret: string, previous: string): Promise<CarriedOver> {
  const result = { carried: 0, unreadable: 0 };
  for (let last = ""; ;) {
    const factors = await sql<Factor[]>`
      select id, secret, backup_codes as "backupCodes"
      from auth.two_factors
      where id > ${last}
      order by id
      limit ${AT_A_TIME}`;
    const newest = factors.at(-1);
    if (newest === undefined) return result;
    last = newest.id;
    for (const factor of factors) {
      const texts = [
        await encryptedAnew(factor.secret, secret, previous),
        await encryptedAnew(factor.backupCodes, secret, previous),
      ] as const;
      if (texts.includes(null)) result.unreadable += 1;
      const [newSecret, newCodes] = [texts[0] ?? factor.secret, texts[1] ?? factor.backupCodes];
      if (newSecret === factor.secret && newCodes === factor.backupCodes) continue;
      const changed = await sql`
        update auth.two_factors
        set secret = ${newSecret}, backup_codes = ${newCodes}
        where id = ${factor.id} and secret = ${factor.secret} and backup_codes = ${factor.backupCodes}`;
      result.carried += changed.count;
    }
  }
}

/** A text encrypted with the current secret, unchanged if it is already; null if neither secret reads it. */
async function encryptedAnew(data: string, secret: string, previous: string): Promise<string | null> {
  if ((await readWith(secret, data)) !== null) return data;
  const text = await readWith(previous, data);
  return text === null ? null : symmetricEncrypt({ key: secret, data: text });
}

/** The cipher is authenticated: decrypting with another secret fails. */
async function readWith(key: string, data: string): Promise<string | null> {
  try {
    return await symmetricDecrypt({ key, data });
  } catch {
    return null;
  }
}
