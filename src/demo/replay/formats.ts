import { asBcgame } from "./as-bcgame.ts";
import { asBlaze } from "./as-blaze.ts";
import { asBustabit } from "./as-bustabit.ts";
import { asEthcrashIo } from "./as-ethcrash-io.ts";
import { asEthercrash } from "./as-ethercrash.ts";
import { asJson } from "./as-json.ts";
import { asLuckyJet } from "./as-lucky-jet.ts";
import { asRoobet } from "./as-roobet.ts";
import { asStake } from "./as-stake.ts";
import type { WireFormat } from "./wire.ts";

const FORMATS: readonly WireFormat[] = [
  asJson,
  asBustabit,
  asEthercrash,
  asEthcrashIo,
  asBlaze,
  asStake,
  asBcgame,
  asRoobet,
  asLuckyJet,
];

/** All wire formats by the name that `--as` gives them, which is that of the adapter that reads them. */
export const wireFormats: ReadonlyMap<string, WireFormat> = new Map(FORMATS.map((format) => [format.name, format]));
