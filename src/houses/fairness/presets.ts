import type { SchemeName } from "./schemes.ts";

/** A chain whose public values are known. */
export interface Preset {
  scheme: SchemeName;
  /** Used as text, with its 0x where it has one. */
  salt: string;
  /** A hash that every round of the chain leads to, and its number. */
  end: { id: number; hash: string };
  /** The first round that the scheme proves, and the last if known. */
  from: number;
  to: number | null;
  /** Rounds of the whole chain after its end, if announced. */
  length: number | null;
}

/**
 * Chains of real houses. Each was walked from its latest public hash to its published end, and its multipliers compared
 * with published ones. If ids are positions counted from the end (Stake, Blaze, Roobet), the house lists other ids, and
 * rounds are proven by their hashes. bustabit's games 10,000,001 to 12,279,450 are proven by signatures, which are not
 * computed here.
 */
export const presets = {
  // bustabit/v1-gameserver server/lib.js, server/database.js; salt: hash of Bitcoin block 339,300
  "bustabit-v1": {
    scheme: "bustabit-v1",
    salt: "000000000000000007a9a31ff7f07463d91af6b5454241d5faf282e5e0fe1b3a",
    end: { id: 999_999, hash: "c1cfa8e28fc38999eaa888487e443bad50a65e0b710f649affa6718cfbfada4d" },
    from: 1_000_000,
    to: null,
    length: null,
  },
  // bustabit/verifier src/constants.ts; salt: hash of Bitcoin block 505,750
  "bustabit-v2": {
    scheme: "bustabit",
    salt: "0000000000000000004d6ec16dafe9d8370958664c1dc422f452892264c59526",
    end: { id: 0, hash: "86728f5fc3bd99db94d3cdaf105d67788194e9701bf95d049ad0e1ee3d004277" },
    from: 1,
    to: 10_000_000,
    length: 10_000_000,
  },
  // bustabit/verifier src/constants.ts; salt from the seeding event, bitcointalk topic 5560454
  "bustabit-classic": {
    scheme: "bustabit-raw",
    salt: "00000000000000000001e08b7fd44f95e3e950ac65650a8031a6d5e1750e34be",
    end: { id: 10_000_000, hash: "567a98370fb7545137ddb53687723cf0b8a1f5e93b1f76f4a1da29416930fa59" },
    from: 12_279_451,
    to: null,
    length: null,
  },
  // barrystyle/ethercrash ethercrash.cpp; salt: hash of Ethereum block 6,217,364. Its end was computed and compared with
  // recorded rounds, not read from the seeding thread; the numbering rests on one published game (1,496,357)
  ethercrash: {
    scheme: "ethercrash",
    salt: "0xd8b8a187d5865a733680b4bf4d612afec9c6829285d77f438cd70695fb946801",
    end: { id: 0, hash: "b502c988f288ce9832bf47ca3cb8ad2ab9e43537f2789afd4f0bb4914fe0834f" },
    from: 1,
    to: null,
    length: null,
  },
  // seeding text, bitcointalk topic 5162888; salt: hash of Bitcoin block 584,500
  stake: {
    scheme: "stake",
    salt: "0000000000000000001b34dc6a1e86083f95500b096231436e9b25cbdd0075c4",
    end: { id: 0, hash: "78a9757d3be42b74a3f70239078ad9317125fe9ee630d5bdada46de963e56752" },
    from: 1,
    to: 10_000_000,
    length: 10_000_000,
  },
  // EdoanR/blaze-crash-history index.js; salt: hash of Bitcoin block 570,128 or 570,132, sources disagree on the height
  blaze: {
    scheme: "blaze",
    salt: "0000000000000000000415ebb64b0d51ccee0bb55826e43846e5bea777d91966",
    end: { id: 0, hash: "492bd10144a3525e2745718fe4d25e08affbea483872d8e8b86191b20ce0a7a8" },
    from: 1,
    to: 10_000_000,
    length: 10_000_000,
  },
  // MindingTheData/Crash-Analysis Crash.ipynb; salt: hash of Bitcoin block 610,546. The divisor was compared with
  // recorded rounds of September 2020 only
  "roobet-1": {
    scheme: "roobet",
    salt: "0000000000000000000fa3b65e43e4240d71762a5bf397d5304b2596d116859c",
    end: { id: 0, hash: "77b271fe12fca03c618f63dfb79d4105726ba9d4a25bb3f1964e435ccf9cb209" },
    from: 1,
    to: null,
    length: null,
  },
  // IsiraUdaththa/Roobet-Crash-Analysis index-checkpoint.js; salt: hash of Ethereum block 17,985,520. Its hashes lead to
  // the published end; no recorded round was there to compare its multipliers with
  "roobet-2": {
    scheme: "roobet",
    salt: "0xd2867566759e9158bda9bf93b343bbd9aa02ce1e0c5bc2b37a2d70d391b04f14",
    end: { id: 0, hash: "76a11ece9e181cb5f0a71e71c45ca0e431b904306b9cb161fd43025a5d3ebb8d" },
    from: 1,
    to: 2_000_000,
    length: 2_000_000,
  },
  // bitcointalk post 61100033 (formula, block); salt: hash of Bitcoin block 758,160. No end of this chain is known: it
  // starts at the published hash of its oldest known round, compared with 107,742 published multipliers up to 5,929,890
  "bcgame-2022": {
    scheme: "bcgame",
    salt: "000000000000000000030587dd9ded1fcc5d603652da58deb670319bd2e09445",
    end: { id: 5_822_149, hash: "08efb58401f7bf50be1a223f71dbdcbc2dc1d861d06ee016c17e6f1277ecaecb" },
    from: 5_822_149,
    to: null,
    length: null,
  },
} as const satisfies Record<string, Preset>;

/** The name of a known chain. */
export type PresetName = keyof typeof presets;
