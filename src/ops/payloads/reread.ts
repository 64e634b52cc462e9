import { z } from "zod";
import { appendAudit } from "../../audit/store.ts";
import { variablesOf } from "../../config/environment.ts";
import { createProver } from "../../houses/fairness/prove.ts";
import type { House } from "../../houses/house.ts";
import { loadHouseToRead } from "../../houses/store.ts";
import { rereadRange } from "../../reread/reread.ts";
import { placeText, readPlace, type Reread } from "../../reread/reread-report.ts";
import { countToReread, type RereadRange } from "../../reread/reread-store.ts";
import { findTablesOf } from "../../rounds/lists/table-filter-store.ts";
import { auditEntry } from "../audit-entry.ts";
import { opsAction, opsPage, type OpsParts } from "../contract.ts";
import { listing, reason, tellReaders, time } from "./listing.ts";

/** One for the process: it caches failed walks along a chain. */
const prover = createProver();

/** A preview must not keep the process busy; a re-read must end within a request. Both can be continued. */
const PREVIEW = { most: 400, ms: 8_000 };
const REREAD = { most: 2_000, ms: 20_000 };
const COUNTED = 100_000;

const asked = {
  of: listing.of,
  from: time,
  to: time,
  state: z.enum(["", "read", "refused"]).default(""),
  after: listing.after,
};
const query = z.object(asked);
const form = z.object({ ...asked, reason });

type Asked = z.infer<typeof query>;

/** Preview of re-reading a range of payloads. */
export const rereadPage = opsPage({
  path: "/payloads/reread",
  query,
  async show(parts, { query: given }) {
    const crumbs = [{ label: "Payloads", href: "/ops/payloads" }];
    const page = (data: object) => ({ template: "payloads/reread", title: "Reread payloads", crumbs, data });
    if (given.of === "") return page({ query: given, problem: null, preview: null });
    const found = await rangeOf(parts, given);
    if ("problem" in found) return page({ query: given, problem: found.problem, preview: null });
    const [count, report] = [
      await countToReread(parts.sql, found.range, COUNTED),
      await work(parts, found, given.after, { dryRun: true, by: "preview", ...PREVIEW }),
    ];
    const preview = {
      ...report,
      next: report.next === null ? null : placeText(report.next),
      count,
      isMore: count > COUNTED,
      most: REREAD.most,
    };
    return page({ query: { ...given, ...found.range }, problem: null, preview });
  },
});

/** Rereads a range of payloads, within the limits of one request. */
export const rereadAction = opsAction({
  name: "payload.reread",
  path: "/payloads/reread",
  roles: ["operator"],
  isDangerous: false,
  form,
  async run(parts, { visitor, form: given }) {
    const found = await rangeOf(parts, given);
    if ("problem" in found) return { ok: false, problem: found.problem };
    const record = (after: object) =>
      parts.sql.begin((tx) =>
        appendAudit(
          tx,
          auditEntry(visitor, {
            action: "payload.reread",
            target: `payloads of ${given.of}`,
            before: { ...found.range, after: given.after },
            after,
            reason: given.reason,
          }),
        ),
      );
    // each batch is its own transaction, so the log has the beginning even if this process dies
    await record({ state: "began" });
    const report = await work(parts, found, given.after, { dryRun: false, by: visitor.email, ...REREAD });
    const { next, ...counts } = report;
    await record({ state: next === null ? "done" : "done in part", ...counts });
    await tellReaders(parts);
    if (next === null) return { ok: true, message: sentence(report), location: "/ops/payloads" };
    const place = new URLSearchParams({
      of: given.of,
      from: found.range.from,
      to: found.range.to,
      state: given.state,
      after: placeText(next),
    });
    return {
      ok: true,
      message: `${sentence(report)}; more remain`,
      location: `/ops/payloads/reread?${place.toString()}`,
    };
  },
});

interface Found {
  house: House;
  range: RereadRange;
}

async function rangeOf({ sql }: OpsParts, { of, from, to, state }: Asked): Promise<Found | { problem: string }> {
  const choice = await findTablesOf(sql, of);
  const house = choice === null ? null : await loadHouseToRead(sql, variablesOf(), choice.house);
  if (choice === null || house === null) return { problem: `there is no house or table ${of}` };
  if (from === null) return { problem: "from: expected the time from which payloads are reread" };
  const end = to ?? new Date().toISOString();
  if (from >= end) return { problem: `from: expected a time before ${end}, found ${from}` };
  const tableId = of.includes("/") ? (choice.ids[0] ?? null) : null;
  return { house, range: { house: choice.house, tableId, from, to: end, state: state === "" ? null : state } };
}

function work(
  { sql }: OpsParts,
  { house, range }: Found,
  after: string,
  { dryRun, by, most, ms }: { dryRun: boolean; by: string; most: number; ms: number },
): Promise<Reread> {
  const until = AbortSignal.timeout(ms);
  // the longest batch in addition: the first walk to the end of a chain takes seconds
  const signal = AbortSignal.timeout(ms + 40_000);
  return rereadRange(sql, house, prover, range, {
    dryRun,
    by,
    most,
    after: readPlace(after),
    until,
    signal,
  });
}

function sentence({ payloads, readable, rounds, conflicts, quarantined, released, refused }: Reread): string {
  const broken = refused.reduce((sum, one) => sum + one.payloads, 0);
  return (
    `${payloads} payloads reread: ${readable} of those refused are readable, ${rounds} new rounds, ` +
    `${conflicts} new conflicts, ${quarantined} items quarantined, ${released} released, ${broken} still refused`
  );
}
