import { PAUSE_MS, type Truth } from "./truth.ts";

/** The houses file of a simulation, as text. */
export function housesFile(truth: Truth, url: string): string {
  const houses = [...truth.troubles.keys()].map((house) => ({
    id: house,
    name: `House ${house}`,
    base_url: url,
    private: true,
    poll_every_ms: 200,
    timeout_ms: 1_000,
    tables: truth.tables
      .filter((table) => table.house === house)
      .map(({ game }) => ({
        game,
        market: "all",
        pause_ms: PAUSE_MS,
        feed: {
          path: `/${house}/${game}/rounds`,
          items: "rounds",
          round_id: "id",
          multiplier: "multiplier",
          occurred_at: "ended_at",
          history: `/${house}/${game}/rounds?before={id}&limit={limit}`,
        },
        round_ids: "consecutive",
        colors: [{ name: "blue", below: 2 }, { name: "purple", below: 10 }, { name: "pink" }],
        house_edge: 0.01,
      })),
  }));
  return JSON.stringify({ houses });
}
