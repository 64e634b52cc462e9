import type { SitePage } from "../send-page.ts";
import { atom } from "../atom.ts";
import { sidebar } from "./sidebar.ts";

/** Changes for callers, newest first. */
export const CHANGES = [
  {
    name: "rounds-limit",
    date: "2026-11-27",
    what: "A response of /rounds has at most 200,000 rounds, by tables and limit. A larger limit is refused with 400 invalid_parameter; without a limit each table has at most 20 rounds, or fewer if there are more than 10,000 tables.",
  },
  {
    name: "v1",
    date: "2026-11-22",
    what: "The first version: games, rounds, forecasts of the next color and of windows, readings, accuracy, usage.",
  },
] as const;

/** The page of changes. */
export function changesPage(): SitePage {
  return {
    path: "/docs/changes",
    template: "docs/changes",
    kind: "docs",
    sidebar,
    title: "Changes",
    description: "What changed in Roundhouse's HTTP API for its callers, newest first, with a feed to subscribe to.",
    data: { changes: CHANGES },
  };
}

/** The same as a feed. */
export function changesFeed(site: string): string {
  return atom({
    id: `${site}/docs/changes`,
    self: `${site}/docs/changes.atom`,
    title: "Roundhouse API changes",
    entries: CHANGES.map(({ name, date, what }) => ({
      id: `${site}/docs/changes#${name}`,
      title: name,
      link: `${site}/docs/changes#${name}`,
      updated: new Date(date),
      text: what,
    })),
  });
}
