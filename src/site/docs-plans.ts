import { within } from "../api/within.ts";
import type { ListedPlan } from "../callers/plan-store.ts";
import { tableOf } from "./docs-endpoint.ts";
import { html, type Html } from "./html.ts";

const PATIENCE_MS = 2_000;
/** Whoever may ask without a key must not be able to make the database busy. */
const BELIEVED_MS = 10_000;

/** The plans as they were at most 10 s ago; null where they cannot be had within 2 s. */
export function knowPlans(load: () => Promise<ListedPlan[]>): () => Promise<ListedPlan[] | null> {
  let latest: Promise<ListedPlan[] | null> = Promise.resolve(null);
  let lookedAt = -Infinity;
  return () => {
    const now = performance.now();
    if (now - lookedAt > BELIEVED_MS) {
      lookedAt = now;
      latest = within(PATIENCE_MS, "PostgreSQL", load()).catch(() => {
        lookedAt = -Infinity; // the next who asks tries again
        return null;
      });
    }
    return latest;
  };
}

/** How many calls each plan has. */
export function planTable(plans: readonly ListedPlan[] | null): Html {
  if (plans === null) return html`<p role="status">The plans could not be loaded. Please try again shortly.</p>`;
  const rows = plans.map(
    ({ name, day_limit, month_limit, burst_per_second, burst, houses }) =>
      html`<tr>
        <th scope="row">${name}</th>
        <td data-name="A UTC day">${limit(day_limit)}</td>
        <td data-name="A UTC month">${limit(month_limit)}</td>
        <td data-name="A second">${burst_per_second}</td>
        <td data-name="At once">${burst}</td>
        <td data-name="Houses">${houses === null ? "all" : houses.join(", ")}</td>
      </tr> `,
  );
  return tableOf(["Plan", "Calls a UTC day", "A UTC month", "A second", "At once", "Houses"], rows);
}

function limit(calls: bigint | null): string {
  return calls === null ? "no fixed number" : calls.toLocaleString("en-US");
}
