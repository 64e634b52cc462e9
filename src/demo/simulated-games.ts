/** How one simulated game is played; times in milliseconds of house time. */
export interface SimulatedGame {
  game: string;
  /** The share kept: P(M ≥ x) = (1 - edge) / x for every x above 1.00, the rest is an instant crash. */
  edge: number;
  /** The shortest pause between two rounds, and how much longer it may be. */
  pauseMs: number;
  pauseSpreadMs: number;
  /** The multiplier grows as e^(growth · seconds), so that a high one takes longer, up to `longestMs`. */
  growth: number;
  longestMs: number;
  /** Does it lose pages of rounds? Then what came before the loss is not listed any more either. */
  losesPages: boolean;
}

/** The three games of the simulated house. Their palettes stand in houses.yaml: a house does not send colors. */
export const SIMULATED_GAMES: readonly SimulatedGame[] = [
  {
    game: "rocket",
    edge: 0.03,
    pauseMs: 3_000,
    pauseSpreadMs: 1_000,
    growth: 0.35,
    longestMs: 9_000,
    losesPages: true,
  },
  {
    game: "comet",
    edge: 0.05,
    pauseMs: 3_500,
    pauseSpreadMs: 500,
    growth: 0.5,
    longestMs: 7_000,
    losesPages: true,
  },
  {
    game: "balloon",
    edge: 0.02,
    pauseMs: 4_000,
    pauseSpreadMs: 1_500,
    growth: 0.4,
    longestMs: 8_000,
    losesPages: false,
  },
];
