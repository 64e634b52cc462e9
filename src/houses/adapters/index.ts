import type { Adapter } from "../contract.ts";
import bcgame from "./bcgame.ts";
import blaze from "./blaze.ts";
import bustabit from "./bustabit.ts";
import ethcrashIo from "./ethcrash-io.ts";
import ethercrash from "./ethercrash.ts";
import json from "./json.ts";
import luckyJet from "./lucky-jet.ts";
import roobet from "./roobet.ts";
import stake from "./stake.ts";

/** All adapters by their name in houses.yaml; a new one is its file and a line here. */
export const adapters = {
  json,
  bcgame,
  blaze,
  bustabit,
  "ethcrash-io": ethcrashIo,
  ethercrash,
  "lucky-jet": luckyJet,
  roobet,
  stake,
} as const;

/** The name of an adapter. */
export type AdapterName = keyof typeof adapters;

/** The adapter of a table, for the options that its own schema parsed. */
export function adapterOf({ adapter }: { adapter: AdapterName }): Adapter {
  return adapters[adapter]; // settings.ts parses a table's feed with the schema of the adapter it names
}
