import { z } from "zod";
import { checkKey } from "../../callers/key.ts";
import { findKey, listWorkingKeys } from "../../callers/key-store.ts";
import { reasonOf } from "../../errors.ts";
import { consoleAction, consolePage, type ConsoleParts, type Holder } from "../contract.ts";
import type { Shown } from "../../frame/view.ts";
import { callWithKey, type LiveResponse } from "./call-with-key.ts";
import { ENDPOINTS_TO_TRY } from "./endpoints.ts";

/** How to make a call: a command to paste, and a form that sends it from here. */
export const firstCallPage = consolePage({
  path: "/first-call",
  nav: { label: "First call", order: 23, group: "API" },
  show: (parts, { holder }) => page(parts, holder, { endpoint: "games", problem: null, response: null }),
});

const names = ENDPOINTS_TO_TRY.map(({ name }) => name);
const form = z.object({
  endpoint: z.enum(names as [string, ...string[]]).default("games"),
  // the page itself reports a wrong value: an error page would repeat what was typed, which may be a key
  secret_key: z.union([z.string(), z.array(z.string())]).optional(),
});

/**
 * Calls our own API with a pasted key and shows the response. The key must belong to the account. It is sent with this
 * call only: it is not stored, logged or shown again.
 */
export const firstCallAction = consoleAction({
  name: "call.try",
  path: "/first-call",
  needs: [],
  form,
  async run(parts, { holder, form: given }) {
    const { endpoint, secret_key: typed } = given;
    const key = typeof typed === "string" ? typed.trim() : "";
    const done = async (problem: string | null, response: LiveResponse | null) => ({
      ok: true as const,
      message: "",
      location: "/console/first-call",
      didNothing: true as const, // the meter counts the call like any other
      once: await page(parts, holder, { endpoint, problem, response }),
    });
    // only keys of the account: the form must not reveal whether a text is another account's key
    if (!checkKey(key) || !(await findKey(parts.sql, key, holder.accountId)).ok) {
      return done("This is not a key of your account. Enter all of it, from rh_live_ on.", null);
    }
    const path = ENDPOINTS_TO_TRY.find(({ name }) => name === endpoint)?.path;
    if (path === undefined) throw new Error(`expected an endpoint of ours, got ${endpoint}`);
    try {
      return await done(null, await callWithKey(parts.ownUrl() + path, key));
    } catch (error) {
      parts.log.warn({ request_id: holder.requestId }, `a call from the console got no response: ${reasonOf(error)}`);
      return done("The API did not respond in time. Try again in a moment.", null);
    }
  },
});

async function page(
  { sql, site }: ConsoleParts,
  { accountId, isSuspended }: Holder,
  shown: { endpoint: string; problem: string | null; response: LiveResponse | null },
): Promise<Shown> {
  const working = await listWorkingKeys(sql, accountId);
  const path = ENDPOINTS_TO_TRY.find(({ name }) => name === shown.endpoint)?.path ?? "";
  const data = { ...shown, path, site: site(), endpoints: ENDPOINTS_TO_TRY, hasKey: working.length > 0, isSuspended };
  return { template: "first-call/first-call", title: "Your first call", data };
}
