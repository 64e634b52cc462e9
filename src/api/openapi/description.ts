import type { z } from "zod";
import type { Operation } from "../operation.ts";

/** The documentation of one path that needs a key. */
export interface Description {
  /** Its operation; its schema of parameters is the one that parses requests. */
  operation: Pick<Operation, "path" | "params" | "deprecated">;
  /** The name of its response schema. */
  name: string;
  /** One line. */
  summary: string;
  description: string;
  /**
   * Whether it returns tables of the plan and counts against the quota; otherwise it is about the account, and free.
   */
  isCounted: boolean;
  /** The body of a 200, with every field described. */
  response: z.ZodType;
  /** A real response, with long lists shortened. */
  example: object;
}
