/** What a broken invariant is about, for whoever looks for its cause. */
export interface Where {
  house: string;
  game: string;
  /** The id of a round. */
  round: number;
}

/** Something that must never be so, and is. */
export class InvariantViolation extends Error {
  override name = "Broken";
  readonly where: Where | undefined;

  constructor(message: string, where?: Where) {
    super(message);
    this.where = where;
  }
}
