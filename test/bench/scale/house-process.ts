/** The load house in its own process, so that its cost is measured separately. */
import { serveLoad, type Load } from "../load-house.ts";

const house = await serveLoad(JSON.parse(process.argv[2] ?? "") as Load);
process.on("message", () => process.send?.(house.take()));
process.on("disconnect", () => process.exit());
process.send?.(house.port);
