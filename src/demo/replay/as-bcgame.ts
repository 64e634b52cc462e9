import { z } from "zod";
import { json, type DemoResponse } from "../response.ts";
import { type PublishedRound, type WireFormat } from "./wire.ts";

const LONGEST_PAGE = 50;
/** One client reads 20 pages of 50, the notes of another mention about 100 rounds; this is the larger number. */
const DEPTH = 1_000;

const body = z.object({
  gameUrl: z.string(),
  page: z.int().min(1),
  pageSize: z.int().min(1).max(LONGEST_PAGE),
});

/** BC.Game crash: a POST for a page, JSON text inside JSON, and errors as a code under status 200. */
export const asBcgame: WireFormat = {
  name: "bcgame",
  palette: "bcgame",
  usualMs: 30_000,
  serves: [`POST /api/game/bet/multi/history   {"gameUrl":"crash","page":1,"pageSize":50}, the newest ${DEPTH} rounds`],
  respond({ method, url, body: text }, published) {
    if (url.pathname !== "/api/game/bet/multi/history") return null;
    if (method !== "POST") return json({ code: 405, msg: "Method Not Allowed" }, 405, { allow: "POST" });
    const asked = body.safeParse(parsed(text));
    if (!asked.success) return failed(1001, "invalid parameter");
    const { gameUrl, page, pageSize } = asked.data;
    if (gameUrl !== "crash") return failed(2003, "game not found");
    const skipped = (page - 1) * pageSize;
    const list = published.newest(Math.max(Math.min(pageSize, DEPTH - skipped), 0), skipped).map(itemOf);
    return json({ code: 0, msg: "success", data: { page, pageSize, total: Math.min(published.count, DEPTH), list } });
  },
};

function failed(code: number, msg: string): DemoResponse {
  return json({ code, msg, data: null });
}

function itemOf({ id, at, multiplier, hundredths, hash }: PublishedRound) {
  const endTime = at.getTime();
  // the curve doubles about every ten seconds; nothing of it is read, but a real item has these times
  const beginTime = endTime - Math.round(Math.log2((hundredths ?? 100) / 100) * 10_000);
  const detail = {
    ...(hash === null ? {} : { hash }),
    rate: multiplier === null ? null : String(Math.max(Number(multiplier), 1)),
    prepareTime: beginTime - 6_000,
    beginTime,
    endTime,
  };
  return { gameId: id, gameDetail: JSON.stringify(detail) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null; // refused by its shape
  }
}
