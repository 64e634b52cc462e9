import { z } from "zod";
import { appendAudit } from "../../audit/store.ts";
import { UsageError } from "../../errors.ts";
import { listParameterNames } from "../../calibration/runs/parameter-set-store.ts";
import { findRequestedModel, type NamedTable, requestRuns } from "../../calibration/runs/request-runs.ts";
import { PARAMETER_FIELDS, parameterFileOf, type ParameterName } from "../../forecasts/model/parameter-fields.ts";
import { parameterSetOf } from "../../forecasts/model/model-name.ts";
import { K7_1 } from "../../forecasts/model/parameters.ts";
import { findRun, MOST_OF_BATCH } from "../../calibration/runs/run-list-store.ts";
import { listTableNames } from "../../rounds/lists/export-store.ts";
import { auditEntry } from "../audit-entry.ts";
import { opsAction, opsPage } from "../contract.ts";
import { reason } from "../payloads/listing.ts";
import { tagList } from "./labels.ts";
import { CALIBRATIONS } from "./run-view.ts";

const newQuery = z.object({
  table: z.string().trim().max(200).default(""),
  parent: z
    .string()
    .regex(/^\d{0,18}$/, "expected the number of a run")
    .default(""),
});

/** The form that requests runs; with `parent` it starts with the values of that run. */
export const newRunPage = opsPage({
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
      mostTables: MOST_OF_BATCH,
      tags: parent?.tags.join(", ") ?? "",
      parameters: PARAMETER_FIELDS,
      thresholds: thresholds?.join(", ") ?? "",
    };
    const crumbs = [{ label: "Calibrations", href: CALIBRATIONS }];
    const title = parent === null ? "Start run" : `Repeat run ${parent.id}`;
    return { template: "calibrations/new", title, data, crumbs, width: "reading" };
  },
});

const end = z
  .string()
  .trim()
  .max(128)
  .default("")
  .transform((text) => (text === "" ? undefined : text));

/** Fields of parameters; an empty one keeps the model's value. */
const parameterFields = Object.fromEntries(
  PARAMETER_FIELDS.map(({ name }) => [name, z.string().trim().max(1_000).default("")]),
) as Record<ParameterName, z.ZodDefault<z.ZodString>>;

const form = z.object({
  ...parameterFields,
  table: z
    .string()
    .trim()
    .min(1, "expected house/game/market")
    .max(MOST_OF_BATCH * 200)
    .transform((text) => [...new Set(text.split(/[\s,]+/))])
    .pipe(z.array(z.string()).max(MOST_OF_BATCH, `expected at most ${MOST_OF_BATCH} tables`)),
  from: end,
  to: end,
  order: z
    .enum(["", "taken", "round"])
    .default("")
    .transform((text) => (text === "" ? undefined : text)),
  model: z.string().trim().min(1, "expected the name of a model").max(80),
  parent: z
    .string()
    .regex(/^\d{0,18}$/)
    .default(""),
  tags: tagList,
  reason,
});

/** Requests a run for each table, all or none. A run is a row, which a worker finds within seconds. */
export const startRunAction = opsAction({
  name: "calibration.start",
  path: "/calibrations/new",
  roles: ["data"],
  isDangerous: false,
  form,
  async run({ sql }, { visitor, form: given }) {
    const { from, to, order, tags } = given;
    const parent = given.parent === "" ? null : given.parent;
    try {
      const tables = chosenOf(await listTableNames(sql), given.table);
      if (tables.length > MOST_OF_BATCH)
        return { ok: false, problem: `table: expected at most ${MOST_OF_BATCH} tables, found ${tables.length}` };
      if (parent !== null && (await findRun(sql, parent)) === null)
        return { ok: false, problem: `parent: there is no run ${parent}` };
      const changes = parameterFileOf(given);
      const { parameters, thresholds } = await findRequestedModel(sql, given.model, { option: "model", changes });
      const runs = await sql.begin(async (tx) => {
        const requested = await requestRuns(tx, tables, {
          from,
          to,
          replayOrder: order,
          model: given.model,
          parameters,
          thresholds,
          outFile: null,
          order: { by: visitor.email, why: given.reason, parent },
          words: { from: "from", to: "to", order: "order", model: "model" },
          tags,
        });
        const after = { model: parameters.name, from, to, order, thresholds, parent, tags };
        for (const { run, table } of requested) {
          const entry = { action: "calibration.start", target: `run ${run} of ${table}`, after, reason: given.reason };
          await appendAudit(tx, auditEntry(visitor, entry));
        }
        return requested;
      });
      const [first] = runs;
      if (runs.length === 1)
        return { ok: true, message: `Run ${first?.run} queued`, location: `${CALIBRATIONS}/runs/${first?.run}` };
      return { ok: true, message: `${runs.length} runs queued`, location: `${CALIBRATIONS}/batches/${first?.run}` };
    } catch (error) {
      if (error instanceof UsageError) return { ok: false, problem: error.message };
      throw error;
    }
  },
});

/**
 * The tables with these names; a house's name selects all of its tables.
 *
 * @throws UsageError for a name of neither
 */
function chosenOf(known: readonly NamedTable[], names: readonly string[]): NamedTable[] {
  const chosen = names.flatMap((name) => {
    const found = known.filter((table) => table.name === name || table.name.startsWith(`${name}/`));
    if (found.length === 0) throw new UsageError(`table: there is no table ${name}`);
    return found;
  });
  return [...new Set(chosen)];
}
