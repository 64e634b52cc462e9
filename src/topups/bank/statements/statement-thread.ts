/** Parses bank statements in a thread, so that a malicious file can block neither the ops pages nor the process. */
import { runTasks } from "../../../thread.ts";
import { parseStatement, type ReadStatement, type StatementOptions } from "./parse-statement.ts";

/** One statement to parse. */
export interface StatementTask {
  text: string;
  options: StatementOptions;
}

runTasks(({ text, options }: StatementTask): ReadStatement => parseStatement(text, options));
