import { openApiDocument } from "../api/openapi/document.ts";
import type { ListedPlan } from "../callers/plan-store.ts";
import { readDocument, type Shown } from "./docs-document.ts";
import { anchorOf, code, endpointSection, tableOf } from "./docs-endpoint.ts";
import { planTable } from "./docs-plans.ts";
import { errorTable } from "./error-table.ts";
import { html, type Html } from "./html.ts";
import { layout } from "./layout.ts";
import { prose } from "./prose.ts";

/** What changed for callers, newest first. */
const CHANGES = [
  {
    name: "v1",
    what: "The first version: games, rounds, forecasts of the next color and of windows, readings, accuracy, usage.",
  },
];

/**
 * The manual of the API, made from the document that tools read.
 * @returns what makes the page; only the plans are looked up each time
 */
export function docsPage({ site, version }: { site: string; version: string }): (plans: ListedPlan[] | null) => string {
  const shown = readDocument(openApiDocument({ site, version }));
  const [before, after] = [beginning(site, shown), ending()];
  return (plans) => layout("The API: Roundhouse", html`${before} ${limits(plans, shown)} ${after}`);
}

function beginning(site: string, shown: Shown): Html {
  const { operations } = shown;
  return html`<h1>The API</h1>
    <p>
      Rounds of crash games as they were received and checked, forecasts that are fixed before their round can be known,
      and how accurate they have been: as JSON over HTTP, for programs with a key.
    </p>
    <p>
      Information only, for adults of 18 or older. Tools find all of this in
      <a href="/openapi.json">openapi.json</a> (OpenAPI 3.1).
    </p>
    <nav aria-label="On this page">
      <ul class="contents">
        ${operations.map(({ path }) => html`<li><a href="#${anchorOf(path)}">${path}</a></li> `)}
        <li><a href="#limits">Limits</a></li>
        <li><a href="#headers">Headers</a></li>
        <li><a href="#errors">Errors</a></li>
        <li><a href="#versions">Versions</a></li>
        <li><a href="#changes">Changes</a></li>
      </ul>
    </nav>
    <h2 id="start">Start</h2>
    <p>
      Send your key in the header <code>X-Api-Key</code>, from a server of yours: never in a URL, and never in a page or
      an app that others can open. It decides what you see, by its plan.
    </p>
    ${code(`export ROUNDHOUSE_KEY=rh_live_…
curl -H "X-Api-Key: $ROUNDHOUSE_KEY" "${site}/api/v1/games"`)}
    <ul>
      <li>Paths take GET and HEAD. A parameter that a path does not have is an error, never ignored.</li>
      <li>Every answer is an object with <code>ok</code>; only a 200 has <code>true</code>.</li>
      <li>Times are UTC with seven digits after the second: <code>2026-11-21T04:00:12.1234560Z</code>.</li>
      <li>
        A table is one house, game and market. <code>house</code>, <code>game</code> and <code>market</code> narrow each
        other; without any you get every table of your plan in one call.
      </li>
      <li>
        Send the <code>ETag</code> of an answer back in <code>If-None-Match</code>: while nothing changed you get an
        empty 304, which is free.
      </li>
    </ul>
    <h2>Paths</h2>
    ${operations.map(({ path, operation }) => endpointSection(path, operation, { site, shown }))}`;
}

function limits(plans: ListedPlan[] | null, { headers }: Shown): Html {
  const rows = headers.map(
    ({ name, description, example }) =>
      html`<tr>
        <th scope="row"><code>${name}</code></th>
        <td>${prose(description)}</td>
        <td><code>${example}</code></td>
      </tr> `,
  );
  return html`<h2 id="limits">Limits</h2>
    ${planTable(plans)}
    <p>
      A call is a call, however many tables it returns, and only a 200 counts: a 304, an error and
      <code>/api/v1/usage</code> are free. Numbers are of the account, whichever of its keys asks. Days and months begin
      at 00:00 UTC. A plan without a fixed number still has a technical ceiling a day that protects this service. A
      refusal comes at once, with the seconds to wait in <code>Retry-After</code>; nothing is held back or slowed down.
    </p>
    <h2 id="headers">Headers of answers</h2>
    ${tableOf(["Header", "Meaning", "For example"], rows)}`;
}

function ending(): Html {
  return html`<h2 id="errors">Errors</h2>
    <p>
      The body of an error is
      <code>{"ok":false,"error":{"code","message","docs_url","details"?},"request_id"}</code>. Go by the
      <code>code</code>; the <code>message</code> is for people and may change.
    </p>
    ${errorTable()}
    <h2 id="versions">Versions</h2>
    <ul>
      <li>The version is in the path: <code>/api/v1</code>.</li>
      <li>
        Fields, parameters, error codes and paths may be added at any time. Ignore fields that you do not know, and
        treat an unknown code by its status.
      </li>
      <li>
        Whatever could break a program that keeps to this comes only in <code>/api/v2</code>, which will run beside
        <code>/api/v1</code> for at least six months.
      </li>
      <li>
        A path that is going to end says so in the headers <code>Deprecation</code> (since when it is announced) and
        <code>Sunset</code> (when it ends).
      </li>
    </ul>
    <h2 id="changes">Changes</h2>
    <dl>
      ${CHANGES.map(
        ({ name, what }) =>
          html`<dt>${name}</dt>
            <dd>${what}</dd>`,
      )}
    </dl>`;
}
