/** A sign-in lasts for two weeks, however much it is used: keys are looked after seldom, and from one's own machine. */
export const SESSION_SECONDS = 14 * 86_400;
/** Left alone for so long it has ended. */
export const IDLE_SECONDS = 3 * 86_400;
/** What wants to know that it is still them wants a sign-in, or a password given again, that is younger. */
export const FRESH_SECONDS = 600;
