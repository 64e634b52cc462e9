import { z } from "zod";
import { listSettingsInForce } from "../../config/setting-sources.ts";
import { opsPage } from "../contract.ts";

const query = z.object({ q: z.string().trim().max(100).default("") });

/** The settings of the process that serves this page, with their sources. Secrets are never shown. */
export const settingsPage = opsPage({
  path: "/settings",
  nav: { label: "Settings", order: 45, group: "Administration" },
  roles: ["admin"],
  query,
  show({ settings }, { query: { q } }) {
    const wanted = q.toLowerCase();
    const groups = listSettingsInForce(settings)
      .map(({ group, settings: all }) => ({
        group,
        settings: all.filter(({ name, description }) => `${name} ${description}`.toLowerCase().includes(wanted)),
      }))
      .filter((one) => one.settings.length > 0);
    const header = { lead: "In force in the process that serves this page. Workers on other machines have their own." };
    return Promise.resolve({ template: "settings/settings", title: "Settings", data: { q, groups }, header });
  },
});
