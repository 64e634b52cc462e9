import { json } from "../response.ts";
import { type WireFormat } from "./wire.ts";

/** How many the real list holds was read nowhere. */
const LISTED = 50;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Lucky Jet of 1win: one array of the newest rounds, for requests with two ids of a session as headers. */
export const asLuckyJet: WireFormat = {
  name: "lucky-jet",
  palette: "lucky-jet",
  usualMs: 25_000,
  serves: ["GET /history   with the headers customer-id and session-id, both a UUID", "GET /state   the same"],
  headers: [
    'customer-id: "00000000-0000-4000-8000-000000000001" # any UUID here',
    'session-id: "00000000-0000-4000-8000-000000000002"',
  ],
  respond({ method, url, headers }, published) {
    const { pathname } = url;
    if ((pathname !== "/history" && pathname !== "/state") || (method !== "GET" && method !== "HEAD")) return null;
    if (!["customer-id", "session-id"].every((name) => UUID.test(headers[name] ?? ""))) {
      return json({ message: "Unauthorized", statusCode: 401 }, 401);
    }
    const rounds = published.newest(LISTED).map(({ id, multiplier, hundredths }) => ({
      hash: id,
      topCoefficient: hundredths === null ? null : Math.max(Number(multiplier), 1),
    }));
    if (pathname === "/history") return json(rounds);
    return json({ stopCoefficients: rounds.map(({ topCoefficient }) => topCoefficient) });
  },
};
