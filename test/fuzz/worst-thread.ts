/** Reads one text with one parser, in a thread, so that a parser that does not return fails its test alone. */
import { runTasks } from "../../src/thread.ts";
import { TARGETS } from "./targets.ts";

/** A text, and the target that reads it. */
export interface WorstTask {
  name: string;
  text: string;
}

runTasks(({ name, text }: WorstTask) => TARGETS.find((target) => target.name === name)?.run(text));
