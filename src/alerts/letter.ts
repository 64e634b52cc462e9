import { cut } from "../text.ts";
import { type Letter, letter, oneLine } from "../mail/letter.ts";

/** Per alert: fifty of them must fit into one mail. The full text is at /ops. */
const LONGEST_SUBJECT = 200;
const LONGEST_TEXT = 1_500;

/** An alert to notify staff of; times as `utc_text` renders them. */
export interface ReportedAlert {
  kind: string;
  subject: string;
  text: string;
  openedAt: string;
  closedAt: string | null;
  /** Whether no notification of its opening was sent. */
  isNew: boolean;
}

/** How many alerts of a kind a mail reports without naming them. */
export interface UnnamedAlerts {
  kind: string;
  open: number;
  over: number;
}

/** The longest text of one message; chat services cut or refuse longer ones. */
const LONGEST_MESSAGE = 10_000;

/**
 * The chat message about alerts that opened or ended, those that are open first, and the alerts that fit into it: at least
 * one. `site` is our public address.
 *
 * @example
 * const disk = { kind: "disk", subject: "a", text: "it is full", openedAt: "2026-11-21T04:00:12.000000Z", closedAt: null, isNew: true };
 * alertMessage([disk], null).text; // => "Alert: disk (a)\n\nOPEN since 2026-11-21 04:00Z: disk (a)\nit is full\n\nBoard: /ops"
 */
export function alertMessage(alerts: readonly ReportedAlert[], site: string | null) {
  const all = sorted(alerts);
  const fitting: ReportedAlert[] = [];
  let length = subjectOf(all.open, all.over).length;
  for (const alert of [...all.open, ...all.over]) {
    length += `\n\n${paragraphOf(alert)}`.length;
    if (length > LONGEST_MESSAGE && fitting.length > 0) break;
    fitting.push(alert);
  }
  const { open, over } = sorted(fitting);
  const board = `Board: ${site ?? ""}/ops`;
  const text = [subjectOf(open, over), ...fitting.map(paragraphOf)].join("\n\n");
  return { text: `${cut(text, LONGEST_MESSAGE)}\n\n${board}`, alerts: fitting };
}

function sorted(alerts: readonly ReportedAlert[]): { open: ReportedAlert[]; over: ReportedAlert[] } {
  const isOpen = ({ closedAt }: ReportedAlert) => closedAt === null;
  return { open: alerts.filter(isOpen), over: alerts.filter((alert) => !isOpen(alert)) };
}

/**
 * The mail about alerts that opened or ended: those that are open first, then how many others there are. `site` is our
 * public address.
 *
 * @example
 * const disk = { kind: "disk", subject: "a", text: "it is full", openedAt: "2026-11-21T04:00:12.000000Z", closedAt: null, isNew: true };
 * alertLetter([disk], null).subject; // => "Alert: disk (a)"
 * alertLetter([disk, { ...disk, isNew: false, closedAt: "2026-11-21T04:10:00.000000Z" }], null).subject; // => "1 new alert, 1 over"
 */
export function alertLetter(
  alerts: readonly ReportedAlert[],
  site: string | null,
  unnamed: readonly UnnamedAlerts[] = [],
): Letter {
  const { open, over } = sorted(alerts);
  return letter("alerts", subjectOf(open, over, unnamed), [
    ...[...open, ...over].map(paragraphOf),
    ...unnamedText(unnamed),
    `What is open now: ${site === null ? "/ops on your installation" : `${site}/ops`}. One such mail is written in ten minutes at most; you get it since your address is in ALERT_EMAIL.`,
  ]);
}

function subjectOf(
  open: readonly ReportedAlert[],
  over: readonly ReportedAlert[],
  unnamed: readonly UnnamedAlerts[] = [],
): string {
  const opened = unnamed.reduce((sum, rest) => sum + rest.open, open.length);
  const ended = unnamed.reduce((sum, rest) => sum + rest.over, over.length);
  const [first] = [...open, ...over];
  if (first !== undefined && opened + ended === 1) {
    return `${opened === 1 ? "Alert" : "Over"}: ${first.kind} (${first.subject})`;
  }
  const parts = [
    ...(opened === 0 ? [] : [`${opened} new alert${opened === 1 ? "" : "s"}`]),
    ...(ended === 0 ? [] : [`${ended} over`]),
  ];
  return parts.join(", ");
}

function unnamedText(unnamed: readonly UnnamedAlerts[]): string[] {
  if (unnamed.length === 0) return [];
  const all = unnamed.reduce((sum, { open, over }) => sum + open + over, 0);
  return [
    `And ${all} more: ${unnamed.map(({ kind, open, over }) => `${open + over} of the kind ${kind}`).join(", ")}.`,
  ];
}

function paragraphOf({ kind, subject, text, openedAt, closedAt, isNew }: ReportedAlert): string {
  const since = minuteOf(openedAt);
  const when =
    closedAt === null
      ? `OPEN since ${since}`
      : isNew
        ? `OVER, from ${since} to ${minuteOf(closedAt)}`
        : `OVER since ${minuteOf(closedAt)}, open from ${since}`;
  return `${when}: ${kind} (${oneLine(subject, LONGEST_SUBJECT)})\n${oneLine(text, LONGEST_TEXT)}`;
}

/** `2026-11-21 04:00Z` */
function minuteOf(time: string): string {
  return `${time.slice(0, 16).replace("T", " ")}Z`;
}
