import { json } from "../response.ts";
import { type WireFormat } from "./wire.ts";

/** How many the real list holds was read nowhere. */
const LISTED = 50;

/** Roobet crash as of 2020 and 2021: one array of the newest rounds, and no way to older ones. */
export const asRoobet: WireFormat = {
  name: "roobet",
  palette: "roobet",
  usualMs: 25_000,
  serves: ["GET /crash/recentNumbers"],
  respond({ method, url }, published) {
    if (url.pathname !== "/crash/recentNumbers" || (method !== "GET" && method !== "HEAD")) return null;
    return json(
      published.newest(LISTED).map(({ id, multiplier, hundredths, hash }) => ({
        id,
        // it shows an instant crash as 1.00
        crashPoint: hundredths === null ? null : Math.max(Number(multiplier), 1),
        ...(hash === null ? {} : { hash }),
      })),
    );
  },
};
