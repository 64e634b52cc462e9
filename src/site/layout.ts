import { html, type Html } from "./html.ts";

/** Stands at the foot of every page, word for word. */
const NOTICE = "Information only. Rounds come from the house's random generator; no outcome is guaranteed. 18+.";

/** A whole page around its content. */
export function layout(title: string, content: Html): string {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title}</title>
        <link rel="stylesheet" href="/site.css" />
        <link rel="icon" href="/icon.svg" type="image/svg+xml" />
      </head>
      <body>
        <header>
          <a href="/">Roundhouse</a>
          <nav><a href="/docs">API</a> <a href="/docs/errors">Errors</a></nav>
        </header>
        <main>${content}</main>
        <footer><p>${NOTICE}</p></footer>
      </body>
    </html> `.html;
}
