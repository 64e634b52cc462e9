import type { z } from "zod";

/** Allows unlisted fields, since they may be added to a response at any time. */
export function mayGrow({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
}

/** Removes what only a separate schema file needs: OpenAPI 3.1 has this dialect anyway. */
export function plainSchema({ $schema: _dialect, $id: _id, ...schema }: z.core.JSONSchema.BaseSchema): object {
  return schema;
}
