/**
 * `npm run simulate -- SEED`: a day of many houses, compressed, with faults drawn from the seed.
 *
 * Houses that are slow, silent or lie, processes and servers that are killed, frozen, cut off or run out of disk, clocks
 * that are set wrong, a build that gives way to a newer one: the simulator knows what is true and holds whatever is stored
 * and answered against it, throughout and at the end. The first invariant that does not hold ends it with exit code 1, its
 * seed and what happened until then.
 */
import { say } from "../../src/cli/output.ts";
import { enterMountNamespace } from "./disks.ts";

const reason = await enterMountNamespace();
if (reason !== null) say(`no disk can be made to be full here (${reason}): days do without that`);
await import("./program.ts");
