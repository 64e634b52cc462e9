// The upper bound of `bench pipeline`. Usage: node bare-pipeline-process.ts DATABASE_URL REDIS_URL HOUSE_URL; sends "ready",
// and exits with its parent.
//
// Writes the rows of the straightforward design with as little work as we found: one process that has every table's state
// in memory, polls all tables of a message in parallel, and stores the results in one transaction of six statements, two
// messages at a time. It stores no payloads, checks nothing and cannot run twice, so it is no design for production.
import { Worker } from "bullmq";
import { Redis } from "ioredis";
import { request } from "undici";
import { connect } from "../../../src/db/client.ts";
import { NEXT_COLOR, isWindow } from "../../../src/forecasts/model/features.ts";
import { emptyState, learn, type State } from "../../../src/forecasts/model/k7.ts";
import { decodeState, encodeState } from "../../../src/forecasts/model/state.ts";
import { modelOf, nextColorOf } from "../../../src/forecasts/model/table-model.ts";
import { outcomeOf, windowsToIssue } from "../plain-windows.ts";
import { scoreNextColor, scoreWindow } from "../../../src/forecasts/score/scoring.ts";
import { colorOf } from "../../../src/rounds/colors.ts";
import { pathOf } from "./house.ts";
import { BANDS, colorIndex, shownOf } from "./straightforward-pipeline.ts";

const [databaseUrl = "", redisUrl = "", houseUrl = ""] = process.argv.slice(2);
/** No two messages have a table in common. */
const CONCURRENT = 2;
const sql = connect(databaseUrl, { name: "bare", max: CONCURRENT, isSteady: true });
const connection = new Redis(redisUrl, { maxRetriesPerRequest: null });
const model = modelOf(BANDS, null);
const colors = BANDS.map(({ name, below }) => ({ name, below }));

/** An unscored forecast. */
interface OpenForecast {
  feature: string;
  cutoff: number;
  horizon: number;
  pPpm: readonly number[];
  basePpm: readonly number[];
  hour: string;
  hit: boolean;
}
interface Known {
  seq: number;
  newest: number;
  state: State;
  open: Map<string, OpenForecast>;
}
const known = new Map<number, Known>();
const knownOf = (table: number): Known => {
  const found = known.get(table) ?? {
    seq: 0,
    newest: 0,
    state: emptyState(model),
    open: new Map<string, OpenForecast>(),
  };
  known.set(table, found);
  return found;
};

/** The rows that one message changes. */
interface Changes {
  rounds: object[];
  states: object[];
  forecasts: object[];
  scores: object[];
  sums: object[];
  shown: object[];
}

async function loadStates(): Promise<void> {
  const tables = await sql<{ table: number; seq: number; newest: number; state: Buffer }[]>`
    select s.table_id as "table", s.learned_seq::integer as seq, r.round_id::integer as newest, s.state
    from model_states s
    join rounds r on r.table_id = s.table_id and r.seq = s.learned_seq`;
  for (const { table, state, ...place } of tables)
    known.set(table, { ...place, state: decodeState(model, state), open: new Map<string, OpenForecast>() });
  const forecasts = await sql<(OpenForecast & { table: number })[]>`
    select
      table_id as "table", feature, cutoff_seq::integer as cutoff, horizon, p_ppm as "pPpm", base_ppm as "basePpm",
      date_trunc('hour', issued_at, 'UTC')::text as hour,
      exists (
        select
        from rounds r
        where r.table_id = f.table_id
          and r.seq > f.cutoff_seq
          and r.color = f.color
      ) as hit
    from forecasts f
    where scored_at is null`;
  for (const { table, ...one } of forecasts) knownOf(table).open.set(one.feature, one);
}

async function fetchRounds(table: number): Promise<{ id: number; multiplier: number }[]> {
  const response = await request(`${houseUrl}${pathOf(table)}`);
  const body = (await response.body.json()) as { rounds: { id: number; multiplier: number }[] };
  return body.rounds;
}

function addRounds(table: number, listed: readonly { id: number; multiplier: number }[], to: Changes): void {
  const own = knownOf(table);
  const isFirst = own.newest === 0;
  const fresh = listed.filter(({ id }) => id > own.newest).toReversed();
  for (const { id, multiplier } of fresh) {
    const hundredths = Math.round(multiplier * 100);
    const color = colorOf(hundredths, colors);
    own.seq += 1;
    own.newest = id;
    to.rounds.push({ table_id: table, seq: own.seq, round_id: id, hundredths, color });
    learn(model, own.state, colorIndex(BANDS, color), hundredths >= model.x0Hundredths);
    for (const one of own.open.values()) score(table, own, one, color, to);
  }
  if (fresh.length === 0) return;
  to.states.push({ table_id: table, learned_seq: own.seq, state: encodeState(model, own.state).toString("hex") });
  if (!isFirst) forecast(table, own, to);
}

function score(table: number, own: Known, one: OpenForecast, color: string, to: Changes): void {
  one.hit ||= one.feature.split(":")[1] === color;
  if (own.seq < one.cutoff + one.horizon) return;
  own.open.delete(one.feature);
  const scored = isWindow(one.feature)
    ? scoreWindow(one.pPpm[0] ?? 0, one.basePpm[0] ?? 0, one.hit)
    : scoreNextColor(one.pPpm, one.basePpm, colorIndex(BANDS, color));
  const { hit, brier, brierBase: brier_base, rps, rpsBase: rps_base, ll, llBase: ll_base } = scored;
  const figures = { hit, brier, brier_base, rps, rps_base, ll, ll_base };
  const place = { table_id: table, feature: one.feature };
  to.scores.push({ ...place, cutoff_seq: one.cutoff, outcome: outcomeOf(scored), ...figures });
  to.sums.push({ ...place, hour: one.hour, ...figures });
}

function forecast(table: number, own: Known, to: Changes): void {
  const issued = [
    { feature: NEXT_COLOR, horizon: 1, ...nextColorOf(model, own.state) },
    ...windowsToIssue(model, own.state, BANDS, own.open).map(({ feature, rounds: horizon, pPpm, basePpm }) => ({
      feature,
      horizon,
      pPpm: [pPpm],
      basePpm: [basePpm],
    })),
  ];
  const hour = `${new Date().toISOString().slice(0, 13)}:00Z`;
  for (const { feature, horizon, pPpm, basePpm } of issued) {
    own.open.set(feature, { feature, cutoff: own.seq, horizon, pPpm, basePpm, hour, hit: false });
    to.forecasts.push({ table_id: table, feature, cutoff_seq: own.seq, horizon, p_ppm: pPpm, base_ppm: basePpm });
  }
  const windows = [...own.open.values()].filter(({ feature }) => isWindow(feature)).map(shownOf);
  to.shown.push({ table_id: table, cutoff_seq: own.seq, forecast: { next_color: issued[0], windows } });
}

async function store({ rounds, states, forecasts, scores, sums, shown }: Changes): Promise<void> {
  if (rounds.length === 0) return;
  const json = (rows: object[]) => sql.json(rows);
  await sql.begin((tx) => [
    tx`
      insert into rounds (table_id, seq, round_id, hundredths, color, requested_at)
      select table_id, seq, round_id, hundredths, color, clock_timestamp()
      from jsonb_to_recordset(${json(rounds)})
        as x (table_id integer, seq bigint, round_id bigint, hundredths bigint, color text)`,
    tx`
      insert into model_states (table_id, learned_seq, state)
      select table_id, learned_seq, decode(state, 'hex')
      from jsonb_to_recordset(${json(states)}) as x (table_id integer, learned_seq bigint, state text)
      on conflict (table_id) do update
      set
        learned_seq = excluded.learned_seq,
        state = excluded.state`,
    tx`
      insert into forecasts (table_id, feature, color, cutoff_seq, horizon, p_ppm, base_ppm)
      select
        table_id, feature, nullif(split_part(feature, ':', 2), ''), cutoff_seq, horizon, p_ppm, base_ppm
      from jsonb_to_recordset(${json(forecasts)})
        as x (table_id integer, feature text, cutoff_seq bigint, horizon integer, p_ppm integer[], base_ppm integer[])`,
    tx`
      update forecasts f
      set
        scored_at = clock_timestamp(),
        outcome = x.outcome,
        hit = x.hit,
        brier = x.brier,
        brier_base = x.brier_base,
        rps = x.rps,
        rps_base = x.rps_base,
        ll = x.ll,
        ll_base = x.ll_base
      from jsonb_to_recordset(${json(scores)})
        as x (
          table_id integer, feature text, cutoff_seq bigint, outcome integer, hit boolean, brier bigint, brier_base bigint,
          rps bigint, rps_base bigint, ll bigint, ll_base bigint
        )
      where f.table_id = x.table_id
        and f.feature = x.feature
        and f.cutoff_seq = x.cutoff_seq`,
    tx`
      insert into accuracy as a (table_id, feature, hour, n, hits, brier, brier_base, ll, ll_base)
      select
        table_id, feature, hour, count(*), count(*) filter (where hit), sum(brier), sum(brier_base), sum(ll), sum(ll_base)
      from jsonb_to_recordset(${json(sums)})
        as x (
          table_id integer, feature text, hour timestamptz, hit boolean, brier bigint, brier_base bigint, ll bigint,
          ll_base bigint
        )
      group by table_id, feature, hour
      on conflict (table_id, feature, hour) do update
      set
        n = a.n + excluded.n,
        hits = a.hits + excluded.hits,
        brier = a.brier + excluded.brier,
        brier_base = a.brier_base + excluded.brier_base,
        ll = a.ll + excluded.ll,
        ll_base = a.ll_base + excluded.ll_base`,
    tx`
      insert into published (table_id, cutoff_seq, forecast)
      select table_id, cutoff_seq, forecast
      from jsonb_to_recordset(${json(shown)}) as x (table_id integer, cutoff_seq bigint, forecast jsonb)
      on conflict (table_id) do update
      set
        cutoff_seq = excluded.cutoff_seq,
        forecast = excluded.forecast,
        updated_at = clock_timestamp()`,
  ]);
}

await loadStates();
const worker = new Worker<{ tables: number[] }>(
  "bare-poll",
  async ({ data: { tables } }) => {
    const responses = await Promise.all(tables.map(async (table) => [table, await fetchRounds(table)] as const));
    const changes: Changes = { rounds: [], states: [], forecasts: [], scores: [], sums: [], shown: [] };
    for (const [table, listed] of responses) addRounds(table, listed, changes);
    await store(changes);
  },
  { connection, concurrency: CONCURRENT },
);
worker.on("failed", (_, error) => process.stderr.write(`the bare design failed: ${error.stack ?? error.message}\n`));
worker.on("error", (error) => process.stderr.write(`the bare design: ${error.message}\n`));
await worker.waitUntilReady();
process.once("disconnect", () => process.exit());
process.send?.("ready");
