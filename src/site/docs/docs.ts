import { openApiDocument } from "../../api/openapi/document.ts";
import type { ListedPlan } from "../../callers/plan-store.ts";
import type { SitePage } from "../answer.ts";
import { shownPlans } from "../plans/plans.ts";
import { prose } from "../prose.ts";
import { type Operation, readDocument, type Shown } from "./document.ts";
import { errorRows } from "./errors.ts";
import { fieldsOf, typeOf } from "./fields.ts";
import { samplesOf } from "./samples.ts";

/** What changed for callers, newest first. */
const CHANGES = [
  {
    name: "v1",
    what: "The first version: games, rounds, forecasts of the next color and of windows, readings, accuracy, usage.",
  },
];

/**
 * The manual of the API, made from the document that tools read.
 * @returns what makes the page; only the plans are looked up each time
 */
export function docsPage({
  site,
  version,
}: {
  site: string;
  version: string;
}): (plans: readonly ListedPlan[] | null) => SitePage {
  const shown = readDocument(openApiDocument({ site, version }));
  const fixed = {
    site,
    operations: shown.operations.map(({ path, operation }) => shownOperation(path, operation, { site, shown })),
    headers: shown.headers.map(({ name, description, example }) => ({
      name,
      description: prose(description),
      example,
    })),
    failures: errorRows(),
    changes: CHANGES,
  };
  return (plans) => ({
    path: "/docs",
    template: "docs/docs",
    title: "The API",
    description:
      "The manual of Roundhouse's HTTP API: every path, parameter, field, limit, header and error, with examples in curl, JavaScript and Python.",
    data: { ...fixed, plans: shownPlans(plans) },
  });
}

/** One endpoint: what it does, its parameters, its answer field by field, a real one, and how to ask for it. */
function shownOperation(path: string, operation: Operation, { site, shown }: { site: string; shown: Shown }) {
  const { summary, description, parameters, responses } = operation;
  const answer = responses["200"].content["application/json"];
  const anchor = path.slice(path.lastIndexOf("/") + 1);
  const [example] = Object.entries(Object(answer.example)).findLast(([, value]) => typeof value === "object") ?? ["ok"];
  const list = anchor === "usage" ? "day" : example;
  return {
    path,
    anchor,
    summary,
    description: prose(description),
    parameters: parameters.map((parameter) => shownParameter(parameter, shown)),
    samples: samplesOf(site + path + queryOf(parameters), list),
    answer: JSON.stringify(answer.example, null, 2),
    fields: fieldsOf(answer.schema, shown.resolve).map((field) => ({
      name: field.name,
      type: prose(field.type),
      description: prose(field.description),
    })),
  };
}

function shownParameter(parameter: Operation["parameters"][number], { resolve }: Shown) {
  const { name, in: place, description, schema } = parameter;
  const fallback = place === "query" ? "all" : "always the whole answer";
  return {
    name,
    isHeader: place === "header",
    type: prose(typeOf(schema, resolve)),
    without: schema.default === undefined ? fallback : prose(`\`${schema.default}\``),
    description: prose(description),
  };
}

/** The parameters that have a default, with other values where there is a reason to. */
function queryOf(parameters: Operation["parameters"]): string {
  const pairs = parameters
    .filter(({ schema }) => schema.default !== undefined)
    .map(({ name, example }) => `${name}=${String(example)}`);
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}
