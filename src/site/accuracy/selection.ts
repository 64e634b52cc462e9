import { z } from "zod";
import type { Holding, Table } from "../../published/tables.ts";
import { PERIODS } from "../../forecasts/accuracy/periods.ts";

/** The option for all features; a page of all tables shows one feature. */
export const ALL_FEATURES = "all";

const query = z.object({
  of: z.string().trim().max(200).default(""),
  feature: z
    .string()
    .regex(/^(?:all|next_color|window:[a-z0-9][a-z0-9_-]{0,31}:(?:50|80|90))$/)
    .default("next_color"),
  period: z.enum(PERIODS).default("30d"),
  page: z.coerce.number().int().min(1).max(10_000).default(1),
});

/** The parameters: all houses (empty), a house or a table; a feature; a period. */
export type AskedAccuracy = z.infer<typeof query>;

/** The selection: tables of one house, one table, or (null) all. */
export interface Chosen {
  asked: AskedAccuracy;
  tables: readonly Table[];
  kind: "all" | "house" | "table";
  /** Why the request could not be met, and the status for that; null if it was. */
  problem: { text: string; status: 400 | 404 } | null;
}

/** Reads the parameters. An invalid one is reported in `problem` and otherwise ignored. */
export function chooseAccuracy(params: URLSearchParams, holding: Holding): Chosen {
  const given = Object.fromEntries([...params].filter(([name, value]) => name in query.shape && value !== ""));
  const read = query.safeParse(given);
  const all = { asked: query.parse({}), tables: holding.tables, kind: "all" as const };
  if (!read.success) {
    const names = [...new Set(read.error.issues.map(({ path }) => String(path[0])))].join(", ");
    const text = `The value of ${names} is not valid. This is the accuracy of all tables.`;
    return { ...all, problem: { text, status: 400 } };
  }
  const asked = read.data;
  if (asked.of === "") {
    const feature = asked.feature === ALL_FEATURES ? "next_color" : asked.feature;
    return { ...all, asked: { ...asked, feature }, problem: null };
  }
  const [house = "", game, market, ...more] = asked.of.split("/");
  const own = holding.byHouse.get(house) ?? [];
  const tables = game === undefined ? own : own.filter((table) => table.game === game && table.market === market);
  if (tables.length === 0 || more.length > 0) {
    const text = "There is no such house or table. This is the accuracy of all tables.";
    return { ...all, asked: { ...asked, of: "", feature: "next_color", page: 1 }, problem: { text, status: 404 } };
  }
  return { asked, tables, kind: game === undefined ? "house" : "table", problem: null };
}
