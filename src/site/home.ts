import { z } from "zod";
import { newestRounds } from "../api/held-rounds.ts";
import type { Memory } from "../api/memory.ts";
import type { Table } from "../api/tables.ts";
import { html, type Html } from "./html.ts";
import { layout } from "./layout.ts";

/** A page stays readable; the API has them all. */
const TABLES_SHOWN = 100;
const ROUNDS_SHOWN = 8;
/** From here on the page says that what it shows is old. */
const OLD_SECONDS = 15;

const shownRound = z.object({ multiplier: z.number(), color: z.string() });

/** The first page: what runs here, how each table is doing now, and how to ask for it. All from memory. */
export function homePage({ memory, version, site }: { memory: Memory; version: string; site: string }): string {
  const { tables, houses } = memory.tables;
  const shown = tables.slice(0, TABLES_SHOWN);
  const noticed = shown.filter(({ continuityText }) => continuityText !== null);
  const age = memory.ageSeconds();
  const content = html`<h1>Rounds of crash games, checked and served as JSON</h1>
    <p>
      This is Roundhouse ${version}. It polls houses, keeps their answers as they came, checks every round that can be
      checked, and serves the rounds to callers with a key.
    </p>
    <p>
      ${count(houses.size, "house")},
      ${count(tables.length, "table")}.${age > OLD_SECONDS ? html` <strong>What you see was read ${age} seconds ago; the database does not answer at the moment.</strong>` : ""}
    </p>
    <h2>Tables now</h2>
    ${shown.length === 0 ? html`<p>There are no tables yet.</p>` : tableList(shown, memory)}
    ${tables.length > shown.length ? html`<p>And ${tables.length - shown.length} more, which the API lists.</p>` : ""}
    <h2>Notices</h2>
    ${
      noticed.length === 0
        ? html`<p>None: nothing is known to be missing.</p>`
        : html`<ul>
            ${noticed.map(noticeItem)}
          </ul>`
    }
    <h2>Ask for it</h2>
    <pre><code>curl -H "X-Api-Key: rh_live_…" ${site}/api/v1/games
curl -H "X-Api-Key: rh_live_…" "${site}/api/v1/rounds?limit=5"</code></pre>
    <p>
      Whoever runs this makes keys with <code>npx roundhouse key create</code>. Every path, field and limit is on the
      page about <a href="/docs">the API</a>, and what an answer other than 200 means on the one about
      <a href="/docs/errors">errors</a>.
    </p>`;
  return layout("Roundhouse: rounds of crash games, checked", content);
}

function tableList(tables: readonly Table[], memory: Memory): Html {
  return html`<div class="wide">
    <table>
      <thead>
        <tr>
          <th scope="col">Table</th>
          <th scope="col">Status</th>
          <th scope="col">Newest rounds, newest first</th>
          <th scope="col">Last round received</th>
        </tr>
      </thead>
      <tbody>
        ${tables.map((table) => tableRow(table, memory))}
      </tbody>
    </table>
  </div>`;
}

function tableRow(table: Table, memory: Memory): Html {
  const status = memory.statusOf(table);
  return html`<tr>
    <th scope="row">${nameOf(table)}</th>
    <td><span class="status ${status}">${status}</span></td>
    <td>${shownRounds(table)}</td>
    <td data-name="Last round">
      ${table.lastRoundAt === null ? "none yet" : html`<time datetime="${table.lastRoundAt}">${shortTime(table.lastRoundAt)}</time>`}
    </td>
  </tr> `;
}

function shownRounds({ rounds }: Table): Html {
  const items = z
    .array(shownRound)
    .parse(JSON.parse(`[${newestRounds(rounds, ROUNDS_SHOWN)}]`))
    .map(({ multiplier, color }) => html`<li>${multiplier.toFixed(2)} <small>${color}</small></li>`);
  return items.length === 0
    ? html`none yet`
    : html`<ol class="rounds">
        ${items}
      </ol>`;
}

function noticeItem(table: Table): Html {
  return html`<li>${nameOf(table)}: ${table.continuityText ?? ""}</li> `;
}

/** Wherever a table is named, it says so if its rounds are invented. */
function nameOf({ house, game, market }: Table): Html {
  const mark = house.simulated ? html` <span class="simulated">simulated</span>` : "";
  return html`${house.id}/${game}/${market}${mark}`;
}

function shortTime(time: string): string {
  return `${time.slice(0, 10)} ${time.slice(11, 19)} UTC`;
}

function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? "" : "s"}`;
}
