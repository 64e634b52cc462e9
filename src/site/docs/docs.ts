import { z } from "zod";
import type { Description } from "../../api/openapi/description.ts";
import { DESCRIPTIONS } from "../../api/openapi/document.ts";
import { type Header, HEADERS } from "../../api/openapi/headers.ts";
import { type Parameter, parametersOf } from "../../api/openapi/parameters.ts";
import type { ListedPlan } from "../../callers/plan-store.ts";
import type { SitePage } from "../send-page.ts";
import { shownPlans } from "../plans/plans.ts";
import { prose } from "../../frame/text/prose.ts";
import { CHANGES } from "./changes.ts";
import { errorRows } from "./errors.ts";
import { fieldsOf, typeOf } from "./fields.ts";
import { samplesOf } from "./samples.ts";
import { sidebar } from "./sidebar.ts";

/**
 * The API manual, made from the descriptions that also make the OpenAPI document.
 * @returns a function that makes the page; only the plans are read each time
 */
export function docsPage({ site }: { site: string }): (plans: readonly ListedPlan[] | null) => SitePage {
  const fixed = {
    site,
    operations: DESCRIPTIONS.map((description) => shownOperation(description, site)),
    headers: Object.entries<Header>(HEADERS).map(([name, { description, example }]) => ({
      name,
      description: prose(description),
      example,
    })),
    failures: errorRows(),
    changes: CHANGES,
    start: samplesOf(`${site}/api/v1/games`, "games"),
  };
  return (plans) => ({
    path: "/docs",
    template: "docs/docs",
    kind: "docs",
    sidebar,
    title: "API reference",
    description:
      "The manual of Roundhouse's HTTP API: every path, parameter, field, limit, header and error, with examples in curl, JavaScript and Python.",
    data: { ...fixed, plans: shownPlans(plans) },
  });
}

/** One endpoint: its description, parameters, a sample response with every field, and sample requests. */
function shownOperation(description: Description, site: string) {
  const { operation, summary, response: answer, example } = description;
  const { path } = operation;
  const parameters = parametersOf(description);
  const anchor = path.slice(path.lastIndexOf("/") + 1);
  const [listed] = Object.entries(example).findLast(([, value]) => typeof value === "object") ?? ["ok"];
  const list = anchor === "usage" ? "day" : listed;
  return {
    path,
    anchor,
    summary,
    description: prose(description.description),
    queryOf: queryOf(parameters),
    parameters: parameters.map(shownParameter),
    samples: samplesOf(site + path + queryOf(parameters), list),
    answer: JSON.stringify(example, null, 2),
    fields: fieldsOf(z.toJSONSchema(answer)).map((field) => ({
      name: field.name,
      type: prose(field.type),
      description: prose(field.description),
    })),
  };
}

function shownParameter({ name, in: place, description, schema }: Parameter) {
  const fallback = place === "query" ? "all" : "always the whole response";
  return {
    name,
    isHeader: place === "header",
    type: prose(typeOf(schema)),
    without: schema.default === undefined ? fallback : prose(`\`${textOf(schema.default)}\``),
    description: prose(description),
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** A query of the parameters that have a default, with their examples. */
function queryOf(parameters: readonly Parameter[]): string {
  const pairs = parameters
    .filter(({ schema }) => schema.default !== undefined)
    .map(({ name, example }) => `${name}=${String(example)}`);
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}
