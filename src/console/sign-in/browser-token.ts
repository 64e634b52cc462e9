import type { Request } from "express";
import { SIGN_UP_SECONDS } from "../../accounts/holders/sign-up.ts";
import { type Settings, usesHttps } from "../../config/environment.ts";
import { cookieOf } from "../../frame/requester.ts";
import type { PageReply } from "../../frame/view.ts";

/** Has the browser keep a token, by which it confirms the sign-up that it sent without the password. */
export function keepBrowserToken(reply: PageReply, token: string, settings: Pick<Settings, "PUBLIC_URL">): void {
  const secure = usesHttps(settings) ? "; Secure" : "";
  const cookie = `${nameOf(settings)}=${token}`;
  reply.append("Set-Cookie", `${cookie}; Max-Age=${SIGN_UP_SECONDS}; Path=/; HttpOnly; SameSite=Lax${secure}`);
}

/** The token that the browser of a request keeps; empty for none. */
export function browserToken(request: Request, settings: Pick<Settings, "PUBLIC_URL">): string {
  return cookieOf(request, nameOf(settings)).slice(0, 200);
}

/** With https no other host of the domain can set the cookie, for instance to that of a sign-up with its own password. */
function nameOf(settings: Pick<Settings, "PUBLIC_URL">): string {
  return `${usesHttps(settings) ? "__Host-" : ""}rh_console_sign_up`;
}
