import type { Request } from "express";
import type { Settings } from "../../config/environment.ts";
import { cookieOf } from "../../frame/requester.ts";
import type { PageReply } from "../../frame/view.ts";

const NAME = "rh_console_sign_up";
/** As long as the link of a sign-up works. */
const LASTS_SECONDS = 24 * 3_600;

/** Has the browser keep a token, by which it confirms the sign-up that it sent without the password. */
export function keepBrowserToken(reply: PageReply, token: string, { PUBLIC_URL }: Pick<Settings, "PUBLIC_URL">): void {
  const secure = PUBLIC_URL?.startsWith("https:") === true ? "; Secure" : "";
  reply.append(
    "Set-Cookie",
    `${NAME}=${token}; Max-Age=${LASTS_SECONDS}; Path=/console; HttpOnly; SameSite=Lax${secure}`,
  );
}

/** The token that the browser of a request keeps; empty for none. */
export function browserToken(request: Request): string {
  return cookieOf(request, NAME).slice(0, 200);
}
