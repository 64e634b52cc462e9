import { escape } from "../frame/text/escape.ts";

/** A feed and its entries, newest first. */
export interface Feed {
  id: string;
  /** Its own address. */
  self: string;
  title: string;
  entries: readonly { id: string; title: string; link: string; updated: Date; text: string }[];
}

/** Formats a feed as Atom (RFC 4287). Without entries its update time is the beginning of 2026. */
export function atom({ id, self, title, entries }: Feed): string {
  const newest = entries.reduce((max, { updated }) => Math.max(max, updated.getTime()), Date.UTC(2026, 0, 1));
  const time = (ms: number) => new Date(ms).toISOString();
  const shown = entries.map(
    (entry) => `  <entry>
    <id>${escape(entry.id)}</id>
    <title>${escape(entry.title)}</title>
    <link href="${escape(entry.link)}"/>
    <updated>${time(entry.updated.getTime())}</updated>
    <content type="text">${escape(entry.text)}</content>
  </entry>
`,
  );
  return `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
  <id>${escape(id)}</id>
  <title>${escape(title)}</title>
  <link rel="self" href="${escape(self)}"/>
  <updated>${time(newest)}</updated>
  <author><name>Roundhouse</name></author>
${shown.join("")}</feed>
`;
}
