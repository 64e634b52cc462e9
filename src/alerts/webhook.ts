import { reasonOf } from "../errors.ts";
import { cut } from "../text.ts";

/** From the name lookup to the last byte of the response. */
const TIMEOUT_MS = 10_000;
const LONGEST_REASON = 300;

/**
 * Returns text without effect in chats: alerts quote houses, which must not mention everyone or hide a link behind words.
 * `&`, `<` and `>` are escaped as Slack requires, and a zero-width space ends a mention of a whole channel.
 */
function plain(text: string): string {
  const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return escaped.replaceAll(/(?<!\w)@(?=(?:all|channel|everyone|here)\b)/gi, "@\u200b");
}

/**
 * Posts `{"text": …}`, the JSON that incoming webhooks of Slack and its likes take, without redirects. Returns null once
 * it was accepted (a status of 2xx), else why not: within 10 s, and without the address, which is a secret.
 * @throws when `signal` aborts
 */
export async function postMessage(
  url: string,
  text: string,
  signal: AbortSignal,
  { timeoutMs = TIMEOUT_MS } = {},
): Promise<string | null> {
  const deadline = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ text: plain(text) }),
      redirect: "error",
      signal: AbortSignal.any([signal, deadline]),
    });
    await response.body?.cancel(); // only the status matters
    return response.ok ? null : `expected a status of 2xx, found ${response.status}`;
  } catch (error) {
    signal.throwIfAborted();
    if (deadline.aborted) return `expected a response within ${timeoutMs / 1_000} s, found none`;
    return cut(reasonOf(error).replaceAll(url, "the address"), LONGEST_REASON);
  }
}
