import { claimDataDir } from "../../src/embedded/lock.ts";
import { startServers } from "../../src/embedded/servers.ts";

/** An instance reduced to its servers: claims the data folder, says where they are, stops on SIGTERM. */
const [, , dataDir = ""] = process.argv;
const release = await claimDataDir(dataDir);
const servers = await startServers({ dataDir, say: (line) => console.error(line) });
process.once("SIGTERM", () => void servers.stop().then(release));
console.log(JSON.stringify({ databaseUrl: servers.databaseUrl, redisUrl: servers.redisUrl }));
