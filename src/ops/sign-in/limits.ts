/** A sign-in lasts for a shift, however much it is used. */
export const SESSION_SECONDS = 12 * 3_600;
/** Left alone for so long it has ended. */
export const IDLE_SECONDS = 3_600;
/** What is dangerous wants a sign-in, or a password given again, that is younger. */
export const FRESH_SECONDS = 600;
/** How long a link that a start printed waits to be opened. */
export const LINK_SECONDS = 3_600;
