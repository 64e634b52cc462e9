import { letter, type Letter } from "../mail/letter.ts";

/** A key as mails name it. */
interface NamedKey {
  name: string;
  last4: string;
}

/** To the holder of an account, once a key was created for it at the console. */
export function keyCreated(site: string, key: NamedKey): Letter {
  return letter("key-created", `A key was created: ${key.name}`, [
    `The key ${named(key)} was created for your account at Roundhouse. It works immediately.`,
    ifNotYou(site),
  ]);
}

/** To the holder of an account, once a key was replaced by another; `endsAt` is when the old one stops working. */
export function keyRotated(
  site: string,
  { from, to, endsAt }: { from: NamedKey; to: NamedKey; endsAt: string },
): Letter {
  return letter("key-rotated", `A key was rotated: ${from.name}`, [
    `The key ${named(from)} of your account at Roundhouse was replaced by ${named(to)}. The old key stops working at ${endsAt.slice(0, 19).replace("T", " ")} UTC.`,
    ifNotYou(site),
  ]);
}

/** To the holder of an account, once a key was revoked at the console. */
export function keyRevoked(site: string, key: NamedKey): Letter {
  return letter("key-revoked", `A key was revoked: ${key.name}`, [
    `The key ${named(key)} of your account at Roundhouse was revoked. Calls with it are refused with revoked_api_key (401).`,
    ifNotYou(site),
  ]);
}

function named({ name, last4 }: NamedKey): string {
  return `"${name}" (ends in ${last4})`;
}

function ifNotYou(site: string): string {
  return `If it was not you, revoke the keys that you do not know at ${site}/console/keys and change your password at ${site}/console/security`;
}
