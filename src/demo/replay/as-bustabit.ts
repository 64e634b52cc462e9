import { html, pageText, type WireFormat } from "./wire.ts";

const GAME = /^\/game\/(\d{1,15})$/;

/** bustabit: a page for each round, with the value as text; 404 for one that was not played yet. */
export const asBustabit: WireFormat = {
  name: "bustabit",
  palette: "bustabit",
  usualMs: 25_000,
  byPage: true,
  serves: ["GET /game/{id}"],
  respond({ method, url }, published) {
    const id = GAME.exec(url.pathname)?.[1];
    if (id === undefined || (method !== "GET" && method !== "HEAD")) return null;
    const round = published.find(id);
    if (round === null) return html("bustabit", "<h1>Not found</h1>", 404);
    const { hundredths } = round;
    const value = hundredths === null ? "" : `<span class="bust">${pageText(hundredths)}</span>`;
    return html(`bustabit – Game ${id}`, `<h5>Game #${id}</h5>\n<div>Busted at ${value}</div>`);
  },
};
