import { z } from "zod";
import { figureOf } from "../../frame/figure.ts";
import { callsPlot } from "../../charts/over-time.ts";
import { servesThisMachineAlone } from "../../this-machine.ts";
import { opsPage } from "../contract.ts";

const query = z.object({ tab: z.string().max(40).optional(), page: z.string().max(10).optional() });

/** Every component of the design system, to be looked at by those who build pages: only where the server is local. */
export const styleguidePage = opsPage({
  path: "/styleguide",
  query,
  async show({ settings, log }) {
    if (!servesThisMachineAlone(settings)) return null;
    const days = [120, 80, 160, 210, 90, 240, 260].map((requests, at) => ({ date: `2026-11-0${at + 1}`, requests }));
    const numbers = { columns: ["UTC day", "calls"], rows: days.map(({ date, requests }) => [date, String(requests)]) };
    return {
      template: "styleguide/styleguide",
      title: "Style guide",
      header: {
        lead: "Every component once. Pages use these partials and no styles of their own.",
        badges: [{ text: "local only", tone: "info" }],
        action: { label: "Add house", href: "#buttons", icon: "plus" },
        more: [{ label: "Export CSV", href: "#buttons" }],
        tabs: [
          { label: "Overview", href: "#", isCurrent: true },
          { label: "Problems", href: "#", count: 3 },
        ],
      },
      data: { figure: await figureOf(log, callsPlot("Calls by day", days), numbers) },
    };
  },
});
