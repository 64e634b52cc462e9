import { hash } from "node:crypto";

/**
 * The hash of a table's history after one more round: SHA-256, in hexadecimal, of the hash before, a line break, and
 * `seq|round_id|hundredths`. The hash before the first round is 64 zeros. Whoever has the rounds can follow the chain,
 * and a changed, removed or inserted one breaks it from there on.
 *
 * @example
 * historyHash("0".repeat(64), { seq: 1n, roundId: "1", hundredths: 187 }) // => "d97012e176a16955b5a185f8e7e475d45d6e1ee666e674b04697f4391af34e57"
 */
export function historyHash(
  previous: string,
  round: { seq: bigint; roundId: string; hundredths: number | bigint },
): string {
  return hash("sha256", `${previous}\n${round.seq}|${round.roundId}|${round.hundredths}`);
}
