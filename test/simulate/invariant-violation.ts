/** The round that a violated invariant concerns. */
export interface RoundReference {
  house: string;
  game: string;
  /** The id of a round. */
  round: number;
}

/** An invariant that does not hold. */
export class InvariantViolation extends Error {
  override name = "InvariantViolation";
  readonly reference: RoundReference | undefined;

  constructor(message: string, reference?: RoundReference) {
    super(message);
    this.reference = reference;
  }
}
