import { createHmac, createSecretKey, hkdfSync, randomUUID, timingSafeEqual } from "node:crypto";

/** How long a device is known after its last sign-in. */
export const KNOWN_SECONDS = 90 * 86_400;

/**
 * Recognizes browsers in which a person signed in before, by a signed cookie. Such a browser has its own attempt limit,
 * so that wrong passwords from elsewhere do not lock its holder out. The cookie is valid for one e-mail address and is not a
 * sign-in.
 */
export interface Devices {
  /** The id of the device that sent a Cookie header; null if it is not known for this e-mail address. */
  find(cookie: string, email: string): string | null;
  /** The Set-Cookie line for someone who just signed in; a device that is known keeps its id. */
  remember(cookie: string, email: string): string;
}

/** Opens the devices of a surface; `secret` is AUTH_SECRET, from which the key is derived (HKDF-SHA-256). */
export function openDevices({
  secret,
  surface,
  isSecure,
}: {
  secret: string;
  surface: "console" | "ops";
  isSecure: boolean;
}): Devices {
  const key = createSecretKey(Buffer.from(hkdfSync("sha256", secret, "", `roundhouse device ${surface}`, 32)));
  const name = `${isSecure ? "__Host-" : ""}rh_${surface}_device`;
  const macOf = (id: string, endsAt: string, email: string) =>
    createHmac("sha256", key).update(`${id} ${endsAt} ${email.trim().toLowerCase()}`).digest("base64url");

  function find(cookie: string, email: string): string | null {
    const given = cookie.split(";").find((one) => one.trim().startsWith(`${name}=`));
    const [, id, endsAt, mac] = /=([\da-f-]{36})\.(\d{1,12})\.([\w-]{43})$/.exec(given?.trim() ?? "") ?? [];
    if (id === undefined || endsAt === undefined || mac === undefined) return null;
    // compared as text: the last of 43 base64url characters has two bits that decoding ignores
    const isOurs = timingSafeEqual(Buffer.from(mac), Buffer.from(macOf(id, endsAt, email)));
    return isOurs && Number(endsAt) * 1_000 > Date.now() ? id : null;
  }

  return {
    find,
    remember(cookie, email) {
      const id = find(cookie, email) ?? randomUUID();
      const endsAt = String(Math.floor(Date.now() / 1_000) + KNOWN_SECONDS);
      const value = `${id}.${endsAt}.${macOf(id, endsAt, email)}`;
      const secure = isSecure ? "; Secure" : "";
      return `${name}=${value}; Max-Age=${KNOWN_SECONDS}; Path=/; HttpOnly; SameSite=Lax${secure}`;
    },
  };
}
