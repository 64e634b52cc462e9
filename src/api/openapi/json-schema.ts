import type { z } from "zod";

/** Fields may be added to an answer at any time, so no schema of one says that there are no others. */
export function mayGrow({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
}

/** A schema without what only a file of its own needs: OpenAPI 3.1 has this dialect anyway. */
export function plainSchema({ $schema: _dialect, $id: _id, ...schema }: z.core.JSONSchema.BaseSchema): object {
  return schema;
}
