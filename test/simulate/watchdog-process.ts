/** What is run once a simulation is gone: ends what it left behind in its folder. See leftovers.ts. */
import { clearRun } from "./leftovers.ts";

const folder = process.argv[2];
if (folder === undefined) throw new Error("expected the folder of a run");
await clearRun(folder);
