import { json } from "../response.ts";
import { type WireFormat } from "./wire.ts";

const GAME = /^\/game\/(\d{1,15})\.json$/;

/** ethcrash.io as of 2018: a JSON page for each round, in whole hundredths, 0 for an instant crash. */
export const asEthcrashIo: WireFormat = {
  name: "ethcrash-io",
  palette: "ethcrash-io",
  usualMs: 25_000,
  byPage: true,
  serves: ["GET /game/{id}.json"],
  respond({ method, url }, published) {
    const id = GAME.exec(url.pathname)?.[1];
    if (id === undefined || (method !== "GET" && method !== "HEAD")) return null;
    const round = published.find(id);
    if (round === null) return json({ error: "GAME_DOES_NOT_EXIST" }, 404);
    const { multiplier, hundredths } = round;
    return json({ game_crash: multiplier !== null && Number(multiplier) === 0 ? 0 : hundredths });
  },
};
