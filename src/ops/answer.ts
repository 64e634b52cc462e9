import type { Request } from "express";
import { SCRIPT, STYLE } from "./assets.ts";
import type { Crumb, Shown } from "./contract.ts";
import { renderPage } from "./render.ts";
import { type OpsReply, whoAsks } from "./who.ts";

const FLASH_COOKIE = "rh_ops_flash";
const FLASH_SECONDS = 60;
const LONGEST_FLASH = 600;

/** How answers are written: what every page of this process has in common. */
export interface Answers {
  show(request: Request, response: OpsReply, shown: Shown, status?: number): void;
  /** Goes on to a page below `/ops` (303) and says something there, once. */
  goOn(response: OpsReply, location: string, message: string): void;
}

/** A place in the navigation. */
export interface NavEntry {
  label: string;
  href: string;
}

/** Makes the writer of answers. */
export function writeAnswers({ nav, isSecure }: { nav: readonly NavEntry[]; isSecure: boolean }): Answers {
  const attributes = `Path=/ops; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;

  /** What the last action came to. A refresh by script leaves it for the page that somebody looks at. */
  function takeFlash(request: Request, response: OpsReply): string {
    const text = cookieOf(request, FLASH_COOKIE);
    if (text === "" || request.headers["x-refresh"] !== undefined) return "";
    response.append("Set-Cookie", `${FLASH_COOKIE}=; Max-Age=0; ${attributes}`);
    return decode(text);
  }

  return {
    show(request, response, shown, status = 200) {
      response.status(status);
      if ("file" in shown) {
        response.setHeader("Content-Type", `${shown.type}; charset=utf-8`);
        response.setHeader("Content-Disposition", `attachment; filename="${shown.file.replaceAll(/[^\w.-]/g, "_")}"`);
        response.end(shown.text);
        return;
      }
      const crumbs: readonly Crumb[] = shown.crumbs ?? [];
      const text = renderPage(shown.template, shown.data, {
        title: shown.title,
        url: request.originalUrl,
        visitor: whoAsks(response)?.visitor ?? null,
        flash: takeFlash(request, response),
        crumbs,
        refreshSeconds: shown.refreshSeconds ?? null,
        nav,
        assets: { style: STYLE.url, script: SCRIPT.url },
      });
      response.setHeader("Content-Type", "text/html; charset=utf-8");
      response.end(text);
    },
    goOn(response, location, message) {
      if (message !== "") {
        const text = encodeURIComponent(message.slice(0, LONGEST_FLASH).toWellFormed());
        response.append("Set-Cookie", `${FLASH_COOKIE}=${text}; Max-Age=${FLASH_SECONDS}; ${attributes}`);
      }
      response.setHeader("Location", localPath(location));
      response.status(303).end();
    },
  };
}

/** A path below `/ops` as a header can hold it, whatever was given: nobody is sent elsewhere. */
export function localPath(location: string): string {
  if (!/^\/ops(?:[/?#][^\\\p{Cc}]*)?$/u.test(location)) return "/ops";
  return location.toWellFormed().replaceAll(/[^!-~]+/g, (text) => encodeURIComponent(text));
}

/** One cookie of a request; empty where it is not there. */
function cookieOf(request: Request, name: string): string {
  for (const part of (request.headers.cookie ?? "").split(";")) {
    const [key = "", ...value] = part.trim().split("=");
    if (key === name) return value.join("=");
  }
  return "";
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}
