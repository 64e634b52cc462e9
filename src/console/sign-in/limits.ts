/** A session ends after two weeks, even if it is used: keys are managed rarely, and from a personal machine. */
export const SESSION_SECONDS = 14 * 86_400;
/** A session ends after this idle time. */
export const IDLE_SECONDS = 3 * 86_400;
/** Sensitive actions require a sign-in or a confirmed password that is younger than this. */
export const FRESH_SECONDS = 600;
