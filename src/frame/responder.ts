import { cookieOf, isRefresh } from "./requester.ts";
import type { Request } from "express";
import { FONT, SCRIPT, STYLE } from "./assets.ts";
import type { NavEntry } from "./nav.ts";
import { renderPage } from "./render.ts";
import type { PageReply, Shown, Surface } from "./view.ts";

const FLASH_SECONDS = 60;
const LONGEST_FLASH = 600;

/** Sends the pages of a surface. */
export interface Responder {
  surface: Surface;
  /** A template name is relative to the surface's folder, unless it begins with `frame/`. */
  show(request: Request, response: PageReply, shown: Shown, status?: number): void;
  /** Redirects to a page of the surface (303), which shows the message once. */
  redirect(response: PageReply, location: string, message: string): void;
}

/** Makes the page sender of a surface. `visitorOf` returns the person for the layout; null before sign-in. */
export function createResponder({
  surface,
  nav,
  isSecure,
  visitorOf,
}: {
  surface: Surface;
  nav: readonly NavEntry[];
  isSecure: boolean;
  visitorOf: (response: PageReply) => object | null;
}): Responder {
  const flashCookie = `${isSecure ? "__Host-" : ""}rh_${surface.folder}_flash`;
  const attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;

  /** Returns the outcome of the last action. A refresh by script leaves it for the next page that is shown. */
  function takeFlash(request: Request, response: PageReply): string {
    const text = cookieOf(request, flashCookie);
    if (text === "" || isRefresh(request)) return "";
    response.append("Set-Cookie", `${flashCookie}=; Max-Age=0; ${attributes}`);
    return decode(text);
  }

  return {
    surface,
    show(request, response, shown, status = 200) {
      response.status(status);
      if ("location" in shown) {
        response.setHeader("Location", localPath(surface.base, shown.location));
        response.status(302).end();
        return;
      }
      if ("file" in shown) return sendFile(response, shown);
      const text = renderPage(namesOf(surface, shown.template), shown.data, {
        title: shown.title,
        url: request.originalUrl,
        visitor: visitorOf(response),
        flash: takeFlash(request, response),
        crumbs: shown.crumbs ?? [],
        refreshSeconds: shown.refreshSeconds ?? null,
        width: shown.width ?? "full",
        header: shown.header ?? {},
        nav,
        assets: { style: STYLE.url, script: SCRIPT.url, font: FONT.url },
      });
      response.setHeader("Content-Type", "text/html; charset=utf-8");
      response.end(text);
    },
    redirect(response, location, message) {
      if (message !== "") {
        const text = encodeURIComponent(message.slice(0, LONGEST_FLASH).toWellFormed());
        response.append("Set-Cookie", `${flashCookie}=${text}; Max-Age=${FLASH_SECONDS}; ${attributes}`);
      }
      response.setHeader("Location", localPath(surface.base, location));
      response.status(303).end();
    },
  };
}

function sendFile(response: PageReply, { file, type, text }: Extract<Shown, { file: string }>): void {
  setFileHeaders(response, { file, type });
  response.end(text);
}

/** Sets the headers of a file to download. */
export function setFileHeaders(response: PageReply, { file, type }: { file: string; type: string }): void {
  response.setHeader("Content-Type", `${type}; charset=utf-8`);
  response.setHeader("Content-Disposition", `attachment; filename="${file.replaceAll(/[^\w.-]/g, "_")}"`);
}

/** Returns a path at or below `base` as a header can hold it, whatever is given: no open redirect. */
export function localPath(base: string, location: string): string {
  const rest = location.startsWith(base) ? location.slice(base.length) : null;
  if (rest === null || !/^(?:[/?#][^\\\p{Cc}]*)?$/u.test(rest)) return base;
  return location.toWellFormed().replaceAll(/[^!-~]+/g, (text) => encodeURIComponent(text));
}

function namesOf({ folder }: Surface, template: string): { template: string; layout: string } {
  return { template: template.startsWith("frame/") ? template : `${folder}/${template}`, layout: `${folder}/layout` };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}
