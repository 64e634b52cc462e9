import { beforeAll, describe, expect, test } from "vitest";
import { runRollingCalibration } from "../../src/calibration/calibrate.ts";
import { findCalibration, recordHash, type WholeCalibration } from "../../src/calibration/calibration-store.ts";
import { requestManualRun } from "../../src/calibration/manual-request.ts";
import { runManualCalibration } from "../../src/calibration/manual-calibration.ts";
import { K7_1 } from "../../src/forecasts/model/parameters.ts";
import { stateHash } from "../../src/forecasts/model/state.ts";
import { verify } from "../../src/verify/verify.ts";
import { generatedRounds } from "../forecasts/streams.ts";
import { createWorld, type World } from "../forecasts/world.ts";

const never = new AbortController().signal;

let world: World;
let ids: { first: string; manual: string; newest: string };

beforeAll(async () => {
  const cleanUps: (() => Promise<void>)[] = [];
  world = await createWorld({ ownDatabase: true, whenDone: (cleanUp) => void cleanUps.push(cleanUp) });
  const rounds = generatedRounds(300).map(({ hundredths }) => hundredths);
  await world.play(rounds.slice(0, 100));
  const first = await roll();
  await world.play(rounds.slice(100));
  const newest = await roll();
  const { sql, tableId, tableName: table } = world;
  const request = { tableId, table, from: undefined, to: undefined, parameters: K7_1, thresholds: null, outFile: null };
  const run = await requestManualRun(sql, request);
  const manual = (await runManualCalibration(sql, run, { signal: never })).calibration_id;
  ids = { first, manual, newest };
  return async () => {
    for (const cleanUp of cleanUps) await cleanUp();
  };
});

async function roll(): Promise<string> {
  const [row] = await world.sql<{ run: string }[]>`
    insert into calibration_runs (table_id, kind, model)
    select table_id, 'rolling', model from table_heads where table_id = ${world.tableId}
    returning id::text as run`;
  await runRollingCalibration(world.sql, row?.run ?? "", never);
  const [made] = await world.sql<{ id: string }[]>`select max(id)::text as id from calibrations`;
  return made?.id ?? "";
}

/** What verify finds after a change of a record, which is then undone. */
async function foundAfter(id: string, change: string): Promise<unknown> {
  await world.sql.unsafe(`create table kept as select * from calibrations where id = ${id}`);
  try {
    await world.sql.unsafe(`update calibrations set ${change} where id = ${id}`);
    return (await verify(world.sql)).first_failure;
  } finally {
    const columns = "state, state_hash, sums, weights, from_seq, kind, record_hash, rounds";
    await world.sql.unsafe(
      `update calibrations c set (${columns}) = (select ${columns} from kept) where id = ${id}; drop table kept`,
    );
  }
}

describe("verify", () => {
  test("reports how many calibrations it checked and how many rounds it replayed for the newest", async () => {
    expect(await verify(world.sql)).toMatchObject({
      ok: true,
      checked: { calibrations: 3, replayed_rounds: 200 },
      first_failure: null,
    });
  });

  test.each([
    ["a byte of the state", "state = set_byte(state, length(state) - 9, get_byte(state, length(state) - 9) # 1)"],
    ["a byte of its head", "state = set_byte(state, 30, get_byte(state, 30) # 1)"],
    ["the hash", "state_hash = translate(state_hash, '01', '10')"],
    ["a digit of the sums", "sums = jsonb_set(sums, '{0,sums,counts,sum_ll}', '\"123\"')"],
    ["a window's sums", "sums = jsonb_set(sums, '{5,sums,counts,hits}', '\"1\"')"],
    ["the range", "from_seq = from_seq + 1"],
    ["a weight", "weights = jsonb_set(weights, '{TH}', '0.5')"],
    ["the kind", "kind = case kind when 'manual' then 'rolling' else 'manual' end"],
  ])("names the record in which %s was changed", async (_, change) => {
    for (const id of Object.values(ids)) {
      expect(await foundAfter(id, change)).toMatchObject({ kind: "calibration", id });
    }
    expect(await verify(world.sql)).toMatchObject({ ok: true });
  });

  test("finds a newest record that is whole in itself and not what its rounds give", async () => {
    const record = (await findCalibration(world.sql, ids.newest)) as WholeCalibration;
    const hash = recordHash({ ...record, rounds: record.rounds + 1n });
    expect(await foundAfter(ids.newest, `rounds = rounds + 1, record_hash = '${hash}'`)).toMatchObject({
      kind: "calibration",
      id: ids.newest,
      expected: expect.stringContaining(`300 rounds, by replay from calibration ${ids.first}`) as string,
      found: "301",
    });
    const state = record.state.toString("hex").replace(/.{4}$/, "f03f");
    const forged = stateHash(Buffer.from(state, "hex"));
    const forgedRecord = recordHash({ ...record, stateHash: forged });
    const change = `state = decode('${state}', 'hex'), state_hash = '${forged}', record_hash = '${forgedRecord}'`;
    expect(await foundAfter(ids.newest, change)).toMatchObject({ kind: "calibration", id: ids.newest, found: forged });
  });
});
