/**
 * `npm run simulate -- SEED`: a compressed day of many houses, with faults drawn from the seed.
 *
 * Houses are slow, silent or report false results; processes and servers are killed, frozen, disconnected or run out of
 * disk; clocks are set wrong. The simulator knows the truth and compares everything that is stored or returned with it,
 * throughout and at the end. The first violated invariant ends the run with exit code 1, its seed and the history.
 *
 * Only a day in which forecasts were committed late is repeated once, since a machine that stands still commits late, too.
 * The report has the first failure, and the folder of the first day is kept. Soaks are never repeated, and neither is the
 * build with a planted fault that commits late.
 */
import { say } from "../../src/cli/output.ts";
import { enterMountNamespace } from "./disks.ts";

const reason = await enterMountNamespace();
if (reason !== null) say(`disks cannot be filled on this machine (${reason}): these faults are skipped`);
await import("./program.ts");
