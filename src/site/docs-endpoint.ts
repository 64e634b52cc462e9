import type { Operation, Shown } from "./docs-document.ts";
import { fieldsOf, typeOf } from "./docs-fields.ts";
import { samplesOf } from "./docs-samples.ts";
import { html, type Html } from "./html.ts";
import { prose } from "./prose.ts";

/** Where an endpoint is within the page. */
export function anchorOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** One endpoint: what it does, its parameters, its answer field by field, a real one, and how to ask for it. */
export function endpointSection(
  path: string,
  operation: Operation,
  { site, shown }: { site: string; shown: Shown },
): Html {
  const { summary, description, parameters, responses } = operation;
  const answer = responses["200"].content["application/json"];
  const anchor = anchorOf(path);
  const [example] = Object.entries(Object(answer.example)).findLast(([, value]) => typeof value === "object") ?? ["ok"];
  const list = anchor === "usage" ? "day" : example;
  return html`<section aria-labelledby="${anchor}">
    <h3 id="${anchor}"><code>GET ${path}</code></h3>
    <p>${summary}. ${prose(description)}</p>
    <h4>Parameters</h4>
    ${parameterTable(parameters, shown)}
    <h4>Ask</h4>
    ${samplesOf(site + path + queryOf(parameters), list).map(
      ({ name, text }, at) =>
        html`<details${{ html: at === 0 ? " open" : "" }}>
          <summary>${name}</summary>
          ${code(text)}
        </details>`,
    )}
    <h4>Answer</h4>
    ${code(JSON.stringify(answer.example, null, 2))}
    <details>
      <summary>Every field of it</summary>
      ${fieldTable(fieldsOf(answer.schema, shown.resolve))}
    </details>
  </section> `;
}

/** Text of a program or an answer; what is wider than the page can be moved with the keys too. */
export function code(text: string): Html {
  return html`<pre tabindex="0"><code>${text}</code></pre>`;
}

function parameterTable(parameters: Operation["parameters"], { resolve }: Shown): Html {
  const rows = parameters.map(
    ({ name, in: place, description, schema }) =>
      html`<tr>
        <th scope="row"><code>${name}</code>${place === "header" ? " (header)" : ""}</th>
        <td>${prose(typeOf(schema, resolve))}</td>
        <td data-name="Without it">${withoutIt(place, schema.default)}</td>
        <td>${prose(description)}</td>
      </tr> `,
  );
  return tableOf(["Name", "Can be", "Without it", "Meaning"], rows);
}

function withoutIt(place: "query" | "header", value: string | number | undefined): Html {
  if (value !== undefined) return html`<code>${value}</code>`;
  return place === "query" ? html`all` : html`always the whole answer`;
}

function fieldTable(fields: ReturnType<typeof fieldsOf>): Html {
  const rows = fields.map(
    ({ name, type, description }) =>
      html`<tr>
        <th scope="row"><code>${name}</code></th>
        <td>${prose(type)}</td>
        <td>${prose(description)}</td>
      </tr> `,
  );
  return tableOf(["Field", "Is", "Meaning"], rows);
}

/** A table with these column heads. */
export function tableOf(heads: readonly string[], rows: readonly Html[]): Html {
  return html`<div class="wide">
    <table>
      <thead>
        <tr>
          ${heads.map((head) => html`<th scope="col">${head}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </div>`;
}

/** The parameters that have a default, with other values where there is a reason to. */
function queryOf(parameters: Operation["parameters"]): string {
  const pairs = parameters
    .filter(({ schema }) => schema.default !== undefined)
    .map(({ name, example }) => `${name}=${String(example)}`);
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}
