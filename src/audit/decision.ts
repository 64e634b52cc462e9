/** Why a decision was refused; nothing was changed. */
export interface Refusal {
  ok: false;
  problem: string;
  /** There is nothing with the id or name that was given. */
  isUnknown?: true;
  /** The target of an entry that records the refusal; none is written if it is not given. */
  refused?: string;
}

/**
 * What a decision of staff changed, for the audit log, and as a sentence for the person who made it; or why it was refused.
 * `/ops` and commands record and show the same.
 */
export type Decided<More extends object = object> =
  | ({
      ok: true;
      target: string;
      before?: unknown;
      after?: unknown;
      message: string;
      /** Nothing was changed, such as by a repeated decision, so the audit log has no entry. */
      didNothing?: true;
    } & More)
  | Refusal;

/** A decision that was not refused. */
export type Made<More extends object = object> = Extract<Decided<More>, { ok: true }>;
