/** The load house as a process of its own, so that what it costs is told apart. */
import { serveLoad, type Load } from "../load-house.ts";

const house = await serveLoad(JSON.parse(process.argv[2] ?? "") as Load);
process.on("message", () => process.send?.(house.take()));
process.on("disconnect", () => process.exit());
process.send?.(house.port);
