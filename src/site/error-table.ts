import { FAILURES } from "../api/errors.ts";
import { html, type Html } from "./html.ts";
import { prose } from "./prose.ts";

/** Every error a caller can get; each row has its code as its address within the page. */
export function errorTable(): Html {
  const rows = Object.entries(FAILURES).map(
    ([code, { status, means, retry }]): Html =>
      html`<tr id="${code}">
        <th scope="row"><code>${code}</code></th>
        <td>${status}</td>
        <td>${prose(means)}</td>
        <td data-name="Try again?">${retry}</td>
      </tr> `,
  );
  return html`<div class="wide">
    <table>
      <thead>
        <tr>
          <th scope="col">Code</th>
          <th scope="col">Status</th>
          <th scope="col">Meaning</th>
          <th scope="col">Try again?</th>
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </div>`;
}
