import { ECDH } from "node:crypto";
import { HDKey, publicKeyToAddress } from "viem/accounts";
import { xpubDepth } from "../../config/xpub.ts";

/** What keys of an account (m/44'/60'/0') have below them: the receiving addresses. */
const ACCOUNT_DEPTH = 3;

/**
 * The address with an index below an extended public key: `m/44'/60'/0'/0/index` (BIP-44, BIP-32), written with its
 * checksum (EIP-55). No private key is needed for it, and none is known here.
 *
 * @throws Error where the key is no point of the curve.
 */
export function addressAt(xpub: string, index: number): `0x${string}` {
  const key = HDKey.fromExtendedKey(xpub);
  const { publicKey } = key.derive(xpubDepth(xpub) === ACCOUNT_DEPTH ? `m/0/${index}` : `m/${index}`);
  if (publicKey === null || publicKey === undefined) throw new Error(`the extended key has no child ${index}`);
  // an address is made of the point's two coordinates; a compressed key would give another, without complaint
  const whole = ECDH.convertKey(publicKey, "secp256k1", undefined, "hex", "uncompressed");
  return publicKeyToAddress(`0x${String(whole)}`);
}
