import { z } from "zod";
import { readBoard } from "../board/facts.ts";
import { type HouseFacts, readHouses } from "../../health/house-facts-store.ts";
import { paceText } from "../board/house-problem.ts";
import { latencyQuantile, latencyText } from "../board/latency.ts";
import { listStatuses } from "../board/polls-store.ts";
import { findProblems } from "../board/problems.ts";
import { boardRows, evidenceText } from "../board/rows.ts";
import { CLASS_TEXT, codeText, statusStrip } from "../board/strip.ts";
import { opsPage } from "../contract.ts";
import {
  findHouseDetail,
  listCircuitChanges,
  listFailures,
  listPollMinutes,
  listShards,
  type PollMinute,
} from "./house-store.ts";

const STRIP = { hours: 24, cellMinutes: 15, count: 96 } as const;
const MINUTES_SHOWN = 60;

/** One house: its polls and their responses, failures, and its tables. */
export const housePage = opsPage({
  path: "/houses/:house",
  async show(parts, { visitor, params }) {
    const { sql } = parts;
    const id = params["house"] ?? "";
    const detail = await findHouseDetail(sql, id);
    if (detail === null) return null;
    const [facts, shards, changes, failures, minutes, cells] = await Promise.all([
      readBoard(parts, id),
      listShards(sql, id),
      listCircuitChanges(sql, id),
      listFailures(sql, id),
      listPollMinutes(sql, id),
      listStatuses(sql, [id], STRIP),
    ]);
    const [house] = facts.houses;
    if (house === undefined) return null; // gone between two reads
    const problems = findProblems(facts).filter(({ subject }) => subject === id || subject.startsWith(`${id}/`));
    const cellMs = STRIP.cellMinutes * 60_000;
    const startMs = (Math.floor(facts.now.getTime() / cellMs) + 1 - STRIP.count) * cellMs;
    const data = {
      house,
      detail,
      now: facts.now,
      problems,
      shards,
      changes,
      failures,
      minutes: minutes.slice(0, MINUTES_SHOWN).map(withQuantiles),
      strip: statusStrip(cells, { startMs, cellMs, count: STRIP.count }),
      rows: boardRows(facts, problems, parts.liveWindowSeconds),
      settings: JSON.stringify(detail.settings, null, 2),
      perMinute: numberOf(detail.settings["requests_per_minute"]),
      format: { latencyText, evidenceText, codeText, paceText, CLASS_TEXT },
    };
    return {
      template: "houses/house",
      title: house.name,
      header: {
        badges: house.name === id ? [] : [{ text: id, tone: "quiet" as const }],
        ...(["operator", "admin"].includes(visitor.role) && actionsOf(house)),
      },
      data,
      refreshSeconds: 5,
      crumbs: [{ label: "Board", href: "/ops" }],
    };
  },
});

/** What staff can do with a house in its current state: at most one action is the primary one. */
function actionsOf({ id, circuit, pausedAt }: HouseFacts) {
  const to = (act: "pause" | "resume" | "probe" | "close", label: string) => ({
    label,
    href: `/ops/houses/${id}/act?do=${act}`,
  });
  if (pausedAt !== null) return { action: to("resume", "Resume") };
  if (circuit !== "open") return { more: [to("pause", "Pause")] };
  return { action: to("probe", "Probe now"), more: [to("close", "Close circuit"), to("pause", "Pause")] };
}

const confirmQuery = z.object({ do: z.enum(["pause", "resume", "probe", "close"]) });

/** Requests the reason of an action on a house, and shows what it will do to the house in its current state. */
export const houseActPage = opsPage({
  path: "/houses/:house/act",
  query: confirmQuery,
  async show({ sql }, { params, query }) {
    const id = params["house"] ?? "";
    const [detail, [house]] = await Promise.all([findHouseDetail(sql, id), readHouses(sql, id)]);
    if (detail === null || house === undefined) return null;
    return {
      template: "houses/act",
      title: `${TITLES[query.do]} ${id}`,
      data: {
        house,
        detail,
        act: query.do,
        text: TEXTS[query.do],
        verb: TITLES[query.do],
        format: { paceText },
      },
      crumbs: [
        { label: "Board", href: "/ops" },
        { label: id, href: `/ops/houses/${id}` },
      ],
    };
  },
});

const TITLES = { pause: "Pause", resume: "Resume", probe: "Probe", close: "Close circuit of" } as const;
const TEXTS = {
  pause: "It is not polled until an operator resumes it. Callers see its tables as paused.",
  resume: "It is polled again with its next poll.",
  probe: "Its next poll is the probe of its circuit. If it fails, the waits between probes grow further.",
  close: "Its failures are forgotten and it is polled as usual. Five failures in a row open the circuit again.",
} as const;

function withQuantiles(minute: PollMinute) {
  const { latency } = minute;
  return { ...minute, p50: latencyQuantile(latency, 0.5), p95: latencyQuantile(latency, 0.95) };
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}
