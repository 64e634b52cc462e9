import { DESCRIPTIONS } from "../../api/openapi/document.ts";

/** The sections of the documentation and their pages, in the order of the sidebar. */
export const sidebar = [
  {
    label: "Get started",
    entries: [
      { label: "Quick start", href: "/docs/quick-start" },
      { label: "Authentication", href: "/docs#start" },
    ],
  },
  {
    label: "Guides",
    entries: [
      { label: "Poll politely with ETags", href: "/docs/guides/polling" },
      { label: "Verify a forecast", href: "/docs/guides/verify" },
      { label: "Recompute accuracy", href: "/docs/guides/accuracy" },
    ],
  },
  {
    label: "Endpoints",
    entries: DESCRIPTIONS.map(({ operation: { path } }) => ({
      label: path.replace("/api/v1", ""),
      href: `/docs#${path.slice(path.lastIndexOf("/") + 1)}`,
    })),
  },
  {
    label: "Reference",
    entries: [
      { label: "Limits", href: "/docs#limits" },
      { label: "Headers", href: "/docs#headers" },
      { label: "Errors", href: "/docs/errors" },
      { label: "Versions", href: "/docs#versions" },
      { label: "Changes", href: "/docs/changes" },
      { label: "openapi.json", href: "/openapi.json" },
    ],
  },
];
