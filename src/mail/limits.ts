/** How long until something is tried again: `firstSeconds`, doubled with each try up to `mostSeconds`. */
export interface Backoff {
  firstSeconds: number;
  mostSeconds: number;
}

/** How long a mail is tried before it is given up: a mail server that is away over a weekend costs nothing. */
export const TRIED_FOR_DAYS = 3;
/** A mailbox that is full or a server that wants to see us twice (greylisting) takes it within minutes, or not today. */
export const MAIL_RETRY: Backoff = { firstSeconds: 60, mostSeconds: 3_600 };
/** A mail server that was away returns for all mails together, and people wait for theirs. */
export const SERVER_RETRY: Backoff = { firstSeconds: 20, mostSeconds: 600 };
/** One mail, from the connection to the server's last response; a server that drips its responses is abandoned then. */
export const SENT_WITHIN_MS = 45_000;
/** Longer than sending a mail may take, so that no other worker takes it meanwhile. */
export const LEASE_SECONDS = 120;
/** Mails of one run; the sweep begins the next one within seconds. */
export const MOST_PER_RUN = 200;
/** After this a run begins no other mail: it must end before its own time is up. */
export const RUN_BEGINS_WITHIN_MS = 180_000;
/** A second failure of the mail server, 20 s after the first, raises an alert: no person can confirm an address. */
export const FAILURE_ALERT_SECONDS = 15;
/** After this a mail that waits although the mail server responds counts as late: greylisting ends earlier. */
export const PUT_OFF_ALERT_MINUTES = 15;
/** If mails to so many recipients are late and none was sent, the cause is the server and not a full mailbox. */
export const PUT_OFF_TO_ALERT = 3;
/** If so many mails in a row are refused, the cause is the server or our settings and not the recipients. */
export const REFUSALS_TO_ALERT = 5;
/**
 * How long mails are kept after they were sent or given up, or were requested and not sent: longer than the
 * months for which some must not be repeated.
 */
export const ENDED_KEPT_DAYS = 32;
