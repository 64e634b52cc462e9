/** Runs when a simulation is gone: stops its remaining processes and removes its folder. See run-folder.ts. */
import { removeRun } from "./run-folder.ts";

const folder = process.argv[2];
if (folder === undefined) throw new Error("expected the folder of a run as an argument, got none");
await removeRun(folder);
