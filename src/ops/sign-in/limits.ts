/** A session ends after a shift, even if it is used. */
export const SESSION_SECONDS = 12 * 3_600;
/** A session ends after this idle time. */
export const IDLE_SECONDS = 3_600;
/** Dangerous actions require a sign-in or a confirmed password that is younger than this. */
export const FRESH_SECONDS = 600;
/** Lifetime of a printed link. */
export const LINK_SECONDS = 3_600;
