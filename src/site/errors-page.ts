import { errorTable } from "./error-table.ts";
import { html } from "./html.ts";
import { layout } from "./layout.ts";

/** Every error a caller can get, under the address that the error itself names as its `docs_url`. */
export function errorsPage(): string {
  const content = html`<h1>Errors</h1>
    <p>
      An answer that is not what was asked for never has the status 200. Its body is
      <code>{"ok":false,"error":{"code","message","docs_url","details"?},"request_id"}</code>: the <code>code</code> is
      for programs and stays as it is, the <code>message</code> is for people and may change, and with the
      <code>request_id</code> (also in the header <code>X-Request-Id</code>) the operator finds the request in the log.
    </p>
    ${errorTable()}`;
  return layout("Errors: Roundhouse", content);
}
