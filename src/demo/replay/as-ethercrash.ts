import { html, pageText, type PublishedRound, type WireFormat } from "./wire.ts";

const GAME = /^\/game\/(\d{1,15})$/;
/** Links under the game; how many there are was read nowhere. */
const LINKS = 25;

/** ethercrash.io: a page for each round, and links to the newest ones under the game. */
export const asEthercrash: WireFormat = {
  name: "ethercrash",
  palette: "ethercrash",
  usualMs: 24_700,
  byPage: true,
  serves: ["GET /game/{id}", "GET /play"],
  respond({ method, url }, published) {
    if (method !== "GET" && method !== "HEAD") return null;
    if (url.pathname === "/play") {
      const links = published
        .newest(LINKS)
        .map((round) => `<a class="games-log-link" href="/game/${round.id}">${crash(round)}</a>`);
      return html("Ethercrash", links.join("\n"));
    }
    const id = GAME.exec(url.pathname)?.[1];
    if (id === undefined) return null;
    const round = published.find(id);
    if (round === null) return html("Ethercrash", "<h1>404</h1>\n<p>Game not found</p>", 404);
    return html(
      `Ethercrash - Game ${id}`,
      `<h4 class="lb-title mb-0"> Game ${id} | Crashed @${crash(round)}</h4>\n` +
        `<p class="text-muted mb-0">a few seconds ago on ${browserTime(round.at)}</p>`,
    );
  },
};

/** Here all values have two decimals, and an instant crash is 0.00. */
function crash({ multiplier, hundredths }: PublishedRound): string {
  if (hundredths === null) return "";
  if (Number(multiplier) === 0) return "0.00x";
  const text = pageText(hundredths).slice(0, -1);
  return `${text.includes(".") ? text : `${text}.00`}x`;
}

/** As a browser in UTC prints a date: `Fri May 03 2024 21:56:01 GMT+0000 (Coordinated Universal Time)`. */
function browserTime(at: Date): string {
  const [weekday = "", day = "", month = "", year = "", time = ""] = at.toUTCString().replace(",", "").split(" ");
  return `${weekday} ${month} ${day} ${year} ${time} GMT+0000 (Coordinated Universal Time)`;
}
