import { z } from "zod";
import { appendAudit } from "../../audit/store.ts";
import { nested } from "../../db/nested.ts";
import { UsageError } from "../../errors.ts";
import { requestManualRun } from "../../calibration/manual-calibration.ts";
import { findParameters, listParameterNames } from "../../calibration/manual-run-store.ts";
import { type RequestedModel, readParameterFile } from "../../forecasts/model/parameter-file.ts";
import { parameterSetOf } from "../../forecasts/model/model-name.ts";
import { K7_1 } from "../../forecasts/model/parameters.ts";
import { findRun } from "../../calibration/run-list-store.ts";
import { listTableNames } from "../../rounds/lists/export-store.ts";
import type { Sql } from "../../db/client.ts";
import { auditEntry } from "../audit-entry.ts";
import type { OpsAction, OpsPage } from "../contract.ts";
import { reason } from "../payloads/listing.ts";
import { LIST } from "./run-view.ts";

/** Runs that one form may ask for. */
const MOST_TABLES = 50;

const newQuery = z.object({
  table: z.string().trim().max(200).default(""),
  parent: z
    .string()
    .regex(/^\d{0,18}$/, "expected the number of a run")
    .default(""),
});

/** The form that asks for a run; from an earlier run it begins with what that one was asked. */
export const newRunPage: OpsPage<z.infer<typeof newQuery>> = {
  path: "/calibrations/new",
  query: newQuery,
  async show({ sql }, { query }) {
    const parent = query.parent === "" ? null : await findRun(sql, query.parent);
    if (query.parent !== "" && parent === null) return null;
    const [tables, names] = await Promise.all([listTableNames(sql), listParameterNames(sql)]);
    const thresholds = parent?.thresholds?.map((hundredths) => hundredths / 100) ?? null;
    const data = {
      parent,
      tables: tables.map(({ name }) => name),
      models: [K7_1.name, ...names],
      model: parent === null ? K7_1.name : parameterSetOf(parent.model),
      table: parent?.table ?? query.table,
      mostTables: MOST_TABLES,
      params: thresholds === null ? "" : `thresholds: [${thresholds.join(", ")}]\n`,
    };
    const crumbs = [{ label: "Calibrations", href: LIST }];
    const title = parent === null ? "Start a run" : `Run ${parent.id} again`;
    return { template: "calibrations/new", title, data, crumbs };
  },
};

const end = z
  .string()
  .trim()
  .max(128)
  .default("")
  .transform((text) => (text === "" ? undefined : text));

const form = z.object({
  table: z
    .string()
    .trim()
    .min(1, "expected house/game/market")
    .max(MOST_TABLES * 200)
    .transform((text) => [...new Set(text.split(/[\s,]+/))])
    .pipe(z.array(z.string()).max(MOST_TABLES, `expected at most ${MOST_TABLES} tables`)),
  from: end,
  to: end,
  order: z
    .enum(["", "taken", "round"])
    .default("")
    .transform((text) => (text === "" ? undefined : text)),
  model: z.string().trim().min(1, "expected the name of a model").max(80),
  params: z.string().max(20_000, "expected at most 20,000 characters of YAML").default(""),
  parent: z
    .string()
    .regex(/^\d{0,18}$/)
    .default(""),
  reason,
});
type Form = z.infer<typeof form>;

/** Asks for a run. It is a row, which a worker finds within seconds. */
export const startAction: OpsAction<Form> = {
  name: "calibration.start",
  path: "/calibrations/new",
  roles: ["data"],
  isDangerous: false,
  form,
  async run({ sql }, { visitor, form: given }) {
    try {
      const known = new Map((await listTableNames(sql)).map((table) => [table.name, table.id]));
      const tables = given.table.map((name) => ({ name, id: known.get(name) }));
      const unknown = tables.find(({ id }) => id === undefined);
      if (unknown !== undefined) return { ok: false, problem: `table: there is no table ${unknown.name}` };
      if (given.parent !== "" && (await findRun(sql, given.parent)) === null)
        return { ok: false, problem: `parent: there is no run ${given.parent}` };
      const { parameters, thresholds } = await requestedModel(sql, given);
      const parent = given.parent === "" ? null : given.parent;
      const { from, to, order } = given;
      const runs = await sql.begin(async (tx) => {
        const ids: string[] = [];
        for (const { name: table, id: tableId = 0 } of tables) {
          const id = await requestManualRun(nested(tx), {
            tableId,
            table,
            from,
            to,
            replayOrder: order,
            parameters,
            thresholds,
            outFile: null,
            order: { by: visitor.email, why: given.reason, parent },
            words: { from: "from", to: "to", order: "order" },
          });
          const after = { model: parameters.name, from, to, order, thresholds, parent };
          const told = { action: "calibration.start", target: `run ${id} of ${table}`, after, reason: given.reason };
          await appendAudit(tx, auditEntry(visitor, told));
          ids.push(id);
        }
        return ids;
      });
      if (runs.length === 1)
        return { ok: true, message: `run ${runs[0]} waits for a worker`, location: `${LIST}/runs/${runs[0]}` };
      return { ok: true, message: `runs ${runs.join(", ")} wait for a worker`, location: `${LIST}/runs` };
    } catch (error) {
      if (error instanceof UsageError) return { ok: false, problem: error.message };
      throw error;
    }
  },
};

async function requestedModel(sql: Sql, { model, params }: Pick<Form, "model" | "params">): Promise<RequestedModel> {
  const parameters = await findParameters(sql, model);
  if (parameters === null) {
    const known = [K7_1.name, ...(await listParameterNames(sql))];
    throw new UsageError(`model: there is no model ${model}; known are ${known.join(", ")}`);
  }
  return params.trim() === "" ? { parameters, thresholds: null } : readParameterFile(params, parameters);
}
