import { createHmac } from "node:crypto";
import type { Sql } from "../../src/db/client.ts";

/** The code that an authenticator shows (RFC 6238) now, or half a minute later, from the secret in base32. */
export function totp(secret: string, later: 0 | 1 = 0): string {
  const bits = [...secret].map((letter) =>
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter).toString(2).padStart(5, "0"),
  );
  const key = Buffer.from(
    bits
      .join("")
      .match(/.{8}/g)!
      .map((byte) => Number.parseInt(byte, 2)),
  );
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + later));
  const hmac = createHmac("sha1", key).update(counter).digest();
  const offset = hmac[19]! & 15;
  return String((hmac.readUInt32BE(offset) & 0x7f_ff_ff_ff) % 1_000_000).padStart(6, "0");
}

/** Forgets which codes were used, as if half a minute had passed, so that the code of now can be used again. */
export async function forgetUsedCodes(sql: Sql): Promise<void> {
  await sql`delete from auth.used_codes`;
}
