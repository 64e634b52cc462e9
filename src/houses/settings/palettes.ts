/** A band as houses.yaml writes it: multipliers below `below`, as a decimal number; the last one has no bound. */
export interface Band {
  name: string;
  below?: number;
}

/** Colors of a game, lowest band first. */
export interface Palette {
  bands: readonly Band[];
  /**
   * The source of the colors. `game`: its page or its public clients use them. `players`: no official colors were found; these
   * are common among players. `ours`: nothing is confirmed; the colors are our own.
   */
  whose: "game" | "players" | "ours";
}

const RED_GREEN: readonly Band[] = [{ name: "red", below: 2 }, { name: "green" }];
const OURS: Palette = {
  bands: [{ name: "blue", below: 2 }, { name: "purple", below: 10 }, { name: "pink" }],
  whose: "ours",
};

/**
 * The palettes that houses.yaml may name instead of writing bands, as `colors: blaze`.
 *
 * A bound belongs to the band above it. The colors of a table with rounds are fixed, so a named palette never changes: another
 * reading of a game's colors gets its own name.
 */
export const palettes: Readonly<Record<string, Palette>> = {
  // Spribe's page draws rgb(52,180,255), rgb(145,62,248) and rgb(192,23,180): compared with 609 values of it.
  aviator: { bands: OURS.bands, whose: "game" },
  // Moon is yellow on the page, where the game is also called trenball.
  bcgame: { bands: [{ name: "red", below: 2 }, { name: "green", below: 10 }, { name: "moon" }], whose: "game" },
  blaze: { bands: [{ name: "black", below: 2 }, { name: "green" }], whose: "game" },
  // The operator's own verifier begins green at 1.98, from where a bet on 1.98 is paid half the time.
  bustabit: { bands: [{ name: "red", below: 1.98 }, { name: "green" }], whose: "game" },
  // A public client's line; another page draws it at 1.97.
  ethercrash: { bands: RED_GREEN, whose: "game" },
  // The names are ours as well.
  jetx: { bands: [{ name: "blue", below: 1.5 }, { name: "pink" }], whose: "players" },
  "1xbet": OURS,
  "ethcrash-io": OURS,
  "lucky-jet": OURS,
  roobet: OURS,
  stake: OURS,
  ours: OURS,
};
