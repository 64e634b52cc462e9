import { json } from "../response.ts";
import { wholeIn, type PublishedRounds, type PublishedRound, type WireFormat, type WireRequest } from "./wire.ts";

/** How many the real lists hold was read nowhere; a page of ours has this many. */
const PAGE = 20;
/** Both forms of the path, with the base's /api before it or without, and the newer one with the number of the game. */
const RECENT = /^(?:\/api)?(?:\/crash_games\/recent|\/singleplayer-originals\/originals\/crash_games\/recent\/4)$/;
const HISTORY =
  /^(?:\/api)?(?:\/crash_games\/recent\/history|\/singleplayer-originals\/originals\/crash_games\/recent\/history\/4)$/;
const GAME = /^(?:\/api)?\/crash_games\/([A-Za-z0-9]{1,64})$/;

/** Blaze crash over REST: an array of the newest rounds, pages of `records`, and one round by its id. */
export const asBlaze: WireFormat = {
  name: "blaze",
  palette: "blaze",
  usualMs: 24_900,
  serves: [
    "GET /api/crash_games/recent",
    "GET /api/crash_games/recent/history?page=N",
    "GET /api/crash_games/{id}",
    "GET /api/singleplayer-originals/originals/crash_games/recent/4",
    "GET /api/singleplayer-originals/originals/crash_games/recent/history/4?page=N&startDate={time}&endDate={time}",
  ],
  respond(request, published) {
    const { pathname } = request.url;
    if (request.method !== "GET" && request.method !== "HEAD") return null;
    if (RECENT.test(pathname)) return json(published.newest(PAGE).map(recordOf));
    if (HISTORY.test(pathname)) return historyPage(request, published);
    const id = GAME.exec(pathname)?.[1];
    if (id === undefined) return null;
    const round = published.find(id);
    return round === null ? json({ error: { message: "Not found", code: 404 } }, 404) : json(recordOf(round));
  },
};

function historyPage({ url }: WireRequest, published: PublishedRounds) {
  const page = wholeIn(url.searchParams.get("page") ?? 1, 1, 1_000_000);
  const [start, end] = ["startDate", "endDate"].map((name) => momentOf(url.searchParams.get(name)));
  if (page === null || start === null || end === null) {
    return json({ error: { message: "expected page from 1 on, and dates as ISO 8601", code: 400 } }, 400);
  }
  const inTime = ({ at }: PublishedRound): boolean =>
    (start === undefined || at.getTime() >= start) && (end === undefined || at.getTime() <= end);
  // dates are looked at only where they are given: a list of a hundred thousand is not walked for nothing
  const records =
    start === undefined && end === undefined
      ? published.newest(PAGE, (page - 1) * PAGE)
      : published
          .newest(published.count)
          .filter(inTime)
          .slice((page - 1) * PAGE, page * PAGE);
  return json({ records: records.map((round) => ({ ...recordOf(round), ...seedOf(round) })) });
}

/** Undefined where nothing is given, null if it is no time. */
function momentOf(text: string | null): number | null | undefined {
  if (text === null) return undefined;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? null : ms;
}

function recordOf({ id, at, multiplier, hundredths }: PublishedRound) {
  // an instant crash is "0" on the wire, however the recorder wrote it; 1.00 by the formula is written "1.00"
  const crash_point = hundredths === null ? null : Number(multiplier) === 0 ? "0" : String(multiplier);
  return { id, created_at: at.toISOString(), crash_point, status: "complete" };
}

function seedOf({ hash }: PublishedRound): { server_seed?: string } {
  return hash === null ? {} : { server_seed: hash };
}
