import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import express from "express";
import { expect, onTestFinished, test } from "vitest";
import { createLog } from "../../../src/log.ts";
import { publishLog } from "../../../src/record/log/publish-log.ts";
import { addLog } from "../../../src/site/log/log.ts";
import { fullWorld } from "../../forecasts/full-world.ts";
import { generatedRounds } from "../../forecasts/streams.ts";
import { runScript } from "./made-record.ts";

test("the public script accepts gaps, late rounds, conflicts, pauses of scoring and imports of an honest table", async () => {
  const world = await fullWorld();
  const folder = await mkdtemp(join(tmpdir(), "log-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const publish = () =>
    publishLog(world.sql, { folder, publicUrl: undefined, witnesses: [] }, new AbortController().signal);
  await publish();
  for (const table of world.tableIds) {
    const isOpaque = table !== world.tableId;
    for (const [at, { hundredths }] of generatedRounds(120).slice(80).entries()) {
      const round = isOpaque ? { hundredths, roundId: `s${at}` } : { hundredths, afterGap: at % 9 === 8 };
      await world.play([round], table, { at: { maySettle: at < 10 || at > 20 } });
      if (at === 15 && isOpaque) await world.play([{ hundredths: hundredths + 1, roundId: `s${at - 1}` }], table);
    }
  }
  await world.add();
  await world.sql`update logs set accuracy_hour = '-infinity'`;
  await publish();
  for (const table of world.tableIds)
    await world.play([table === world.tableId ? 160 : { hundredths: 160, roundId: "end" }], table);
  await publish();
  // everything is public, as if the open windows had ended
  await world.sql`update table_heads set open_sets = '{}', version = version + 1`;

  const app = express();
  addLog(app, world.sql, createLog("error", false));
  const server = createServer(app).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const scores = await world.sql<{ reason: string }[]>`select distinct reason from scores order by reason`;
  expect(scores.map(({ reason }) => reason)).toEqual(["", "conflict", "gap"]);
  for (const market of ["m0", "m1"]) {
    const found = await runScript(url, ["--table", `${world.house}/crash/${market}`]);
    if (found === null) return;
    expect(found).toMatchObject({ code: 0, stderr: "" });
    expect(found.stdout).toMatch(/ 3 statements and \d+ accuracy rows up to round \d+ follow from the exports/);
  }
});
