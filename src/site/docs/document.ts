import { z } from "zod";

/** JSON Schema as far as our own document uses it. */
export interface Schema {
  $ref?: string | undefined;
  /** One, or one and `null`. */
  type?: string | string[] | undefined;
  description?: string | undefined;
  const?: unknown;
  enum?: unknown[] | undefined;
  minimum?: number | undefined;
  maximum?: number | undefined;
  default?: string | number | undefined;
  anyOf?: Schema[] | undefined;
  items?: Schema | undefined;
  prefixItems?: Schema[] | undefined;
  maxItems?: number | undefined;
  properties?: Record<string, Schema> | undefined;
  additionalProperties?: Schema | undefined;
}

const schema: z.ZodType<Schema> = z.lazy(() =>
  z.object({
    $ref: z.string().optional(),
    type: z.union([z.string(), z.array(z.string())]).optional(),
    description: z.string().optional(),
    const: z.unknown().optional(),
    enum: z.array(z.unknown()).optional(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    default: z.union([z.string(), z.number()]).optional(),
    anyOf: z.array(schema).optional(),
    // nothing follows the members of a tuple
    items: z.union([schema, z.literal(false).transform(() => undefined)]).optional(),
    prefixItems: z.array(schema).optional(),
    maxItems: z.number().optional(),
    properties: z.record(z.string(), schema).optional(),
    additionalProperties: schema.optional(),
  }),
);

const parameter = z.object({
  name: z.string(),
  in: z.enum(["query", "header"]),
  description: z.string(),
  schema,
  example: z.unknown(),
});

const operation = z.object({
  tags: z.tuple([z.string()]),
  summary: z.string(),
  description: z.string(),
  parameters: z.array(parameter),
  responses: z.object({
    "200": z.object({ content: z.object({ "application/json": z.object({ schema, example: z.unknown() }) }) }),
  }),
});

/** What a page shows of a path. */
export type Operation = z.infer<typeof operation>;

const reading = z.object({
  paths: z.record(z.string(), z.object({ get: z.unknown() })),
  components: z.object({
    headers: z.record(z.string(), z.object({ description: z.string(), example: z.union([z.string(), z.number()]) })),
    schemas: z.record(z.string(), schema),
  }),
});

/** What a page shows of the whole document. */
export interface Shown {
  operations: { path: string; operation: Operation }[];
  headers: { name: string; description: string; example: string | number }[];
  /** What a reference leads to. @throws Error where it leads nowhere. */
  resolve: (schema: Schema) => Schema;
}

/** Reads our OpenAPI document for people: the paths below `/api/`, the headers, the schemas. */
export function readDocument(document: unknown): Shown {
  const { paths, components } = reading.parse(document);
  return {
    operations: Object.entries(paths)
      .filter(([path]) => path.startsWith("/api/"))
      .map(([path, { get }]) => ({ path, operation: operation.parse(get) })),
    headers: Object.entries(components.headers).map(([name, header]) => ({ name, ...header })),
    resolve(of) {
      if (of.$ref === undefined) return of;
      const found = components.schemas[of.$ref.slice(of.$ref.lastIndexOf("/") + 1)];
      if (found === undefined) throw new Error(`expected the document to have ${of.$ref}`);
      return { ...found, description: of.description ?? found.description };
    },
  };
}
