/** Reads a houses file in a thread: YAML of 7,000 tables takes two seconds of a core, during which nothing would be polled. */
import { variablesOf } from "../config/environment.ts";
import { UsageError } from "../errors.ts";
import { runTasks } from "../thread.ts";
import { loadHouses, type HouseEntry } from "./load.ts";

/** A file to read. */
export interface LoadTask {
  file: string;
  allowPrivate: boolean;
}

/** What the file holds, or why it cannot be used. */
export type Loaded = { houses: HouseEntry[] } | { refused: string };

runTasks(({ file, allowPrivate }: LoadTask): Loaded => {
  try {
    return { houses: loadHouses(file, variablesOf(), { allowPrivate }) };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return { refused: error.message };
  }
});
