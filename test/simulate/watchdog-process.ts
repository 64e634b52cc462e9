/** What is run once a simulation is gone: ends what it left behind in its folder. See run-folder.ts. */
import { removeRun } from "./run-folder.ts";

const folder = process.argv[2];
if (folder === undefined) throw new Error("expected the folder of a run");
await removeRun(folder);
