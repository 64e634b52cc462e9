import { z } from "zod";
import { listOwnKeys } from "../../callers/own-key-store.ts";
import type { Overlap } from "../../callers/rotation-store.ts";
import { ACTIVE_KEYS } from "../../callers/store.ts";
import type { ConsolePage } from "../contract.ts";

/** Keys that ended and are still listed; more would only be long. */
const ENDED_SHOWN = 20;

/** The last use of a key shows within seconds. */
const REFRESH_SECONDS = 5;

/** How long a key that is replaced keeps working, as a form offers it. */
const OVERLAP_LABELS: Readonly<Record<Overlap, string>> = {
  "0": "expires immediately",
  "1h": "expires in 1 hour",
  "24h": "expires in 24 hours",
  "7d": "expires in 7 days",
};

const query = z.object({});

/** The keys of an account. Of each only its last four characters are known. */
export const keysPage: ConsolePage<z.infer<typeof query>> = {
  path: "/keys",
  nav: { label: "Keys", order: 20, group: "API" },
  query,
  async show({ sql }, { holder }) {
    const keys = await listOwnKeys(sql, holder.accountId, ENDED_SHOWN);
    const data = {
      ...keys,
      mostKeys: ACTIVE_KEYS,
      active: keys.working.filter(({ replacedBy }) => replacedBy === null).length,
      overlaps: OVERLAP_LABELS,
      isSuspended: holder.isSuspended,
    };
    const lead = "Programs send a key with each call, in the header X-Api-Key. It is shown once, when it is created.";
    return { template: "keys/keys", title: "Keys", data, header: { lead }, refreshSeconds: REFRESH_SECONDS };
  },
};
