import type { z } from "zod";
import type { Operation } from "../operation.ts";

/** What the document says of one path that callers ask with a key. */
export interface Description {
  /** What answers it; its schema of parameters is the very one that reads those of a request. */
  operation: Pick<Operation, "path" | "params" | "deprecated">;
  /** What its answer is called in the document. */
  name: string;
  /** One line. */
  summary: string;
  description: string;
  /** Whether it answers with tables of the plan and counts against the quota; else it is of the account, and free. */
  isCounted: boolean;
  /** A 200, with every field described. */
  answer: z.ZodType;
  /** A real answer, shortened where lists are long. */
  example: object;
}
