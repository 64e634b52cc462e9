import type { TableSettings } from "../settings.ts";
import { crashHundredths, walkBackSliced } from "./bustabit.ts";

/** What a table declares about how its results are proven. */
export type Fairness = NonNullable<TableSettings["fairness"]>;

/** A way to prove results: each round's hash gives its multiplier, and the hash of the round before. */
export interface FairnessScheme {
  /** The multiplier a hash stands for, in integer hundredths. @throws RangeError for what is no hash. */
  hundredths(hash: string, salt: string): number;
  /**
   * The hash `steps` rounds earlier, letting other work run meanwhile; `visit` sees each hash on the way.
   * @throws the signal's reason once it is aborted; RangeError for what is no hash.
   */
  walkBack(
    hash: string,
    steps: number,
    options?: { signal?: AbortSignal; visit?: (hash: string, step: number) => void },
  ): Promise<string>;
}

/** All schemes by the name houses.yaml gives them. */
export const schemes: Readonly<Record<Fairness["scheme"], FairnessScheme>> = {
  bustabit: { hundredths: crashHundredths, walkBack: walkBackSliced },
};
