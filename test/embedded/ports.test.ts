import { once } from "node:events";
import { createServer } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { freePort } from "../../src/embedded/ports.ts";
import { startPostgres } from "../../src/embedded/postgres.ts";
import { startRedis } from "../../src/embedded/redis.ts";
import { makeFolder } from "./world.ts";

async function takePort(): Promise<number> {
  const taken = await freePort();
  const holder = createServer().listen(taken, "127.0.0.1");
  onTestFinished(() => {
    holder.close();
  });
  await once(holder, "listening");
  return taken;
}

const cacheDir = join(homedir(), ".cache", "roundhouse");
const servers = {
  PostgreSQL: (dataDir: string, pickPort: () => Promise<number>) =>
    startPostgres({ dataDir, say: () => undefined, durable: false, pickPort }),
  Redis: (dataDir: string, pickPort: () => Promise<number>) =>
    startRedis({ dataDir, cacheDir, say: () => undefined, pickPort }),
};

it.each(Object.entries(servers))("%s takes another port where somebody was faster", async (_name, start) => {
  const taken = await takePort();
  const picks = [taken, taken];
  const server = await start(await makeFolder(), async () => picks.shift() ?? freePort());
  onTestFinished(() => server.stop());
  expect(picks).toEqual([]);
  expect(Number(new URL(server.url).port)).not.toBe(taken);
});

it.each(Object.entries(servers))("%s gives up, and says why, where no port can be had", async (_name, start) => {
  const taken = await takePort();
  let picks = 0;
  const attempt = start(await makeFolder(), async () => {
    picks++;
    return taken;
  });
  await expect(attempt).rejects.toThrow(/stopped \(exit code 1\): .*address already in use/is);
  expect(picks).toBe(5);
});
