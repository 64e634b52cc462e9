/**
 * The minimum cost of polling: the same feeds at the same pace over keep-alive connections, with ETags; bodies are
 * discarded. No lease, no database, no queue.
 */
import { Agent, request } from "undici";

type Wanted = { url: string; houses: number; pollMs: number };

const { url, houses, pollMs } = JSON.parse(process.argv[2] ?? "") as Wanted;
let requests = 0;
process.on("message", () => {
  process.send?.(requests);
  requests = 0;
});
process.on("disconnect", () => process.exit());
for (let house = 0; house < houses; house++) {
  setTimeout(() => void follow(house), (house / houses) * pollMs);
}
process.send?.("ready");

async function follow(house: number): Promise<void> {
  const dispatcher = new Agent({ connections: 8, pipelining: 1 });
  let tag = "";
  const poll = async () => {
    const { headers, body } = await request(`${url}/h${house}/rounds`, {
      dispatcher,
      headers: { "if-none-match": tag },
    });
    await body.text();
    if (typeof headers["etag"] === "string") tag = headers["etag"];
    requests += 1;
  };
  let isPolling = false;
  setInterval(() => {
    if (isPolling) return;
    isPolling = true;
    void poll().finally(() => {
      isPolling = false;
    });
  }, pollMs);
}
