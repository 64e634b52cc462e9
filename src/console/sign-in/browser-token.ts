import type { Request } from "express";
import type { Settings } from "../../config/environment.ts";
import { cookieOf } from "../../frame/requester.ts";
import type { PageReply } from "../../frame/view.ts";

/** As long as the link of a sign-up works. */
const LASTS_SECONDS = 24 * 3_600;

/** Has the browser keep a token, by which it confirms the sign-up that it sent without the password. */
export function keepBrowserToken(reply: PageReply, token: string, { PUBLIC_URL }: Pick<Settings, "PUBLIC_URL">): void {
  const secure = isSecure({ PUBLIC_URL }) ? "; Secure" : "";
  const cookie = `${nameOf({ PUBLIC_URL })}=${token}`;
  reply.append("Set-Cookie", `${cookie}; Max-Age=${LASTS_SECONDS}; Path=/; HttpOnly; SameSite=Lax${secure}`);
}

/** The token that the browser of a request keeps; empty for none. */
export function browserToken(request: Request, settings: Pick<Settings, "PUBLIC_URL">): string {
  return cookieOf(request, nameOf(settings)).slice(0, 200);
}

/** With https no other host of the domain can set the cookie, for instance to that of a sign-up with its own password. */
function nameOf(settings: Pick<Settings, "PUBLIC_URL">): string {
  return `${isSecure(settings) ? "__Host-" : ""}rh_console_sign_up`;
}

function isSecure({ PUBLIC_URL }: Pick<Settings, "PUBLIC_URL">): boolean {
  return PUBLIC_URL?.startsWith("https:") === true;
}
