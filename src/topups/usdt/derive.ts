import { ECDH } from "node:crypto";
import { HDKey, publicKeyToAddress } from "viem/accounts";
import { xpubDepth } from "../../config/xpub.ts";

/** The depth of an account key (m/44'/60'/0'), whose children lead to receiving addresses. */
const ACCOUNT_DEPTH = 3;

/**
 * Derives the address with an index below an extended public key: `m/44'/60'/0'/0/index` (BIP-44, BIP-32), with its
 * checksum (EIP-55). No private key is needed or known.
 *
 * @throws Error if the key is no point on the curve.
 */
export function addressAt(xpub: string, index: number): `0x${string}` {
  const key = HDKey.fromExtendedKey(xpub);
  const { publicKey } = key.derive(xpubDepth(xpub) === ACCOUNT_DEPTH ? `m/0/${index}` : `m/${index}`);
  if (publicKey === null || publicKey === undefined) throw new Error(`the extended key has no child ${index}`);
  // an address is made of both coordinates; a compressed key would silently give another one
  const whole = ECDH.convertKey(publicKey, "secp256k1", undefined, "hex", "uncompressed");
  return publicKeyToAddress(`0x${String(whole)}`);
}
