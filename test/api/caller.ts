import type { Caller } from "../../src/callers/caller-store.ts";

/** A caller in good standing, without a plan. */
export const CALLER: Caller = {
  keyId: 1n,
  keyName: "default",
  last4: "abcd",
  accountId: 1n,
  standing: "good",
  plan: null,
  endsInMs: null,
};
