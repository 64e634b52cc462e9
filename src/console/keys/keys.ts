import type { Overlap } from "../../callers/rotation-store.ts";
import { ACTIVE_KEYS, isActive, listEndedKeys, listWorkingKeys } from "../../callers/key-store.ts";
import { consolePage } from "../contract.ts";

/** Expired and revoked keys in the list. */
const ENDED_SHOWN = 20;

/** Shows the last use of a key within seconds. */
const REFRESH_SECONDS = 5;

/** How long a replaced key keeps working, as the form offers it. */
const OVERLAP_LABELS: Readonly<Record<Overlap, string>> = {
  "0": "expires immediately",
  "1h": "expires in 1 hour",
  "24h": "expires in 24 hours",
  "7d": "expires in 7 days",
};

/** The keys of an account, each by its last four characters: the rest is not stored. */
export const keysPage = consolePage({
  path: "/keys",
  nav: { label: "Keys", order: 20, group: "API" },
  async show({ sql }, { holder }) {
    const [working, ended] = await Promise.all([
      listWorkingKeys(sql, holder.accountId),
      listEndedKeys(sql, holder.accountId, ENDED_SHOWN),
    ]);
    const data = {
      working,
      ...ended,
      mostKeys: ACTIVE_KEYS,
      active: working.filter(isActive).length,
      overlaps: OVERLAP_LABELS,
      isSuspended: holder.isSuspended,
    };
    const lead = "Programs send a key with each call, in the header X-Api-Key. It is shown once, when it is created.";
    return { template: "keys/keys", title: "Keys", data, header: { lead }, refreshSeconds: REFRESH_SECONDS };
  },
});
