import { FAILURES } from "../api/errors.ts";
import { html, type Html } from "./html.ts";
import { layout } from "./layout.ts";

/** Every error a caller can get, under the address that the error itself names as its `docs_url`. */
export function errorsPage(): string {
  const rows = Object.entries(FAILURES).map(
    ([code, { status, means, retry }]): Html =>
      html`<tr id="${code}">
        <th scope="row"><code>${code}</code></th>
        <td>${status}</td>
        <td>${prose(means)}</td>
        <td data-name="Try again?">${retry}</td>
      </tr> `,
  );
  const content = html`<h1>Errors</h1>
    <p>
      An answer that is not what was asked for never has the status 200. Its body is
      <code>{"ok":false,"error":{"code","message","docs_url","details"?},"request_id"}</code>: the <code>code</code> is
      for programs and stays as it is, the <code>message</code> is for people and may change, and with the
      <code>request_id</code> (also in the header <code>X-Request-Id</code>) the operator finds the request in the log.
    </p>
    <div class="wide">
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
  return layout("Errors: Roundhouse", content);
}

/** What is between backticks is code. */
function prose(text: string): Html[] {
  return text.split("`").map((part, at) => (at % 2 === 0 ? html`${part}` : html`<code>${part}</code>`));
}
