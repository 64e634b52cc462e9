// A process that acts on bank transfers when it gets a message with the work: node bank-process.ts DATABASE_URL NAME
import { appendAudit } from "../../src/audit/store.ts";
import { connect } from "../../src/db/client.ts";
import type { Person } from "../../src/topups/bank/four-eyes.ts";
import { approveMatch, matchLine, type MatchRequest } from "../../src/topups/bank/match.ts";

/** What somebody does at the bank. */
export type DeskWork = { by: Person } & ({ match: MatchRequest } | { approve: { lineId: bigint; matchId: bigint } });

const [url = "", name = ""] = process.argv.slice(2);
const sql = connect(url, { name, max: 1 });
await sql`select 1`;
process.send?.("ready");
const work = await new Promise<DeskWork>((go) => process.once("message", (message) => go(message as DeskWork)));
const done = await sql.begin(async (tx) => {
  const decided =
    "match" in work
      ? await matchLine(tx, work.by, work.match)
      : await approveMatch(tx, work.by, { ...work.approve, isOnePerson: false });
  if (!decided.ok) return decided;
  const { target, before, after } = decided;
  const from = { surface: "ops", role: "operator", requestId: name, address: null, reason: null } as const;
  await appendAudit(tx, { ...from, actor: work.by.email, action: name, target, before, after });
  return decided;
});
process.send?.(done);
await sql.end();
process.disconnect();
