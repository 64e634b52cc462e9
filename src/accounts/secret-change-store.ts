import { symmetricDecrypt, symmetricEncrypt } from "better-auth/crypto";
import type { Sql } from "../db/client.ts";

const AT_A_TIME = 500;

/** What became of the second factors of everybody. */
export interface CarriedOver {
  /** Were encrypted with the previous secret, and are with the one of now. */
  carried: number;
  /** Can be read with neither. */
  unreadable: number;
}

interface Factor {
  id: string;
  secret: string;
  backupCodes: string;
}

/**
 * Encrypts second factors anew that were encrypted with a secret which was changed meanwhile: the library would read
 * them with one secret alone, and everybody who has one would be locked out. Again is as once: what is encrypted with the
 * secret of now stays as it is, and what somebody changes at the same moment is theirs.
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

/** A text as it is encrypted with the secret of now: itself where it is already; null where neither secret reads it. */
async function encryptedAnew(data: string, secret: string, previous: string): Promise<string | null> {
  if ((await readWith(secret, data)) !== null) return data;
  const text = await readWith(previous, data);
  return text === null ? null : symmetricEncrypt({ key: secret, data: text });
}

/** The cipher knows what it was encrypted with: another secret reads nothing. */
async function readWith(key: string, data: string): Promise<string | null> {
  try {
    return await symmetricDecrypt({ key, data });
  } catch {
    return null;
  }
}
