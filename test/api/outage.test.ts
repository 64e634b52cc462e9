import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { connect } from "../../src/db/client.ts";
import { addRounds, ANNOUNCED, countedRounds, makeWorld, roundsBody, type World } from "./world.ts";

let world: World;
/** Another process on its database, which reads nothing that was not announced. */
let announced: World;

beforeAll(async () => {
  world = await makeWorld();
  announced = await makeWorld({}, { on: world, times: ANNOUNCED });
});
afterAll(async () => {
  await announced.close();
  await world.close();
});

async function newest(of = world): Promise<string | undefined> {
  const response = await of.get("/api/v1/rounds?house=alpha&game=crash&limit=1");
  return roundsBody.parse(await response.json()).tables[0]?.rounds[0]?.round_id;
}

const etagOfGames = async () => (await world.get("/api/v1/games")).headers.get("etag") ?? "";

const cutAll = () => world.sql`
  select pg_terminate_backend(pid)
  from pg_stat_activity
  where datname = current_database()
    and application_name in ('roundhouse api', 'roundhouse listener')`;

it("a new round can be read as soon as it is announced", async () => {
  await addRounds(world.sql, "alpha/crash/global", countedRounds(1, 1));
  await eventually(async () => expect(await newest(announced)).toBe("1"));
});

it("a round without a notification is found within seconds", async () => {
  await addRounds(world.sql, "alpha/crash/global", countedRounds(2, 2), { announce: false });
  await eventually(async () => expect(await newest()).toBe("2"));
});

it("a pause without a notification is found within ten seconds", async () => {
  await world.sql`update houses set paused_at = now(), paused_by = 'ann', pause_reason = 'test' where id = 'gamma'`;
  await eventually(async () =>
    expect(await (await world.get("/api/v1/games?house=gamma")).text()).toContain('"paused"'),
  );
});

it("a house that is added while we run is shown", async () => {
  await world.sql`
    insert into houses (id, name, settings, enabled)
    values ('delta', 'Delta', '{}', true)`;
  await world.sql`
    with added as (
      insert into tables (house_id, game, market, position, settings, round_ids, pause_ms, colors)
      values ('delta', 'crash', 'eu', 0, '{}', 'opaque', 5000, '[]')
      returning id
    )
    insert into table_heads (table_id, palette, first_model, model, pause_ms)
    select added.id, palettes.id, models.name, models.name, 5000
    from added
    cross join (select name from models limit 1) models
    cross join (select id from palettes limit 1) palettes`;
  await world.sql`select pg_notify('roundhouse_published', '')`;
  await eventually(async () => expect((await world.get("/api/v1/rounds?house=delta")).status).toBe(200));
});

it("lost connections cost a few calls that could not be counted, and later notifications arrive again", async () => {
  const ask = async (headers = {}) => (await world.get("/api/v1/games", { headers })).status;
  const etag = await etagOfGames();
  const cut = await cutAll();
  expect(cut.length).toBeGreaterThanOrEqual(2);
  const known = await Promise.all(Array.from({ length: 20 }, () => ask({ "If-None-Match": etag })));
  expect(new Set(known)).toEqual(new Set([304]));
  await eventually(async () => expect(await ask()).toBe(200));
  await eventually(async () => {
    const [row] = await world.sql<{ n: number }[]>`
      select count(*)::integer as n
      from pg_stat_activity
      where datname = current_database() and application_name = 'roundhouse listener'`;
    return row?.n === 2;
  });
  await addRounds(world.sql, "alpha/crash/global", countedRounds(3, 3));
  await eventually(async () => expect(await newest(announced)).toBe("3"));
});

it("while the database takes no connections, what callers have is still confirmed, with its age, and all catches up afterwards", async () => {
  const url = new URL(world.databaseUrl);
  const database = url.pathname.slice(1);
  url.pathname = "postgres";
  const outside = connect(url.href, { name: "test", max: 1 });
  try {
    // the tests before this one cut connections too
    const before = world.lines.length;
    const isSaid = (words: string) => world.lines.slice(before).some((line) => line.includes(words));
    const etag = await etagOfGames();
    await outside`alter database ${outside(database)} allow_connections false`;
    await cutAll();
    await addRounds(world.sql, "alpha/crash/global", countedRounds(4, 5), { announce: false });
    await eventually(async () => {
      await cutAll(); // again each time: one that was still being set up shows its name only later
      return isSaid("older ones are shown");
    });
    // whole seconds: the first of them has to pass
    await eventually(async () => {
      const response = await world.get("/api/v1/games", { headers: { "If-None-Match": etag } });
      expect(response.status).toBe(304);
      return Number(response.headers.get("x-data-age")) > 0;
    });
    // what cannot be counted is not given away
    const refusal = await world.refused("/api/v1/games");
    expect(refusal).toMatchObject({ status: 503, code: "temporarily_unavailable" });
    expect(refusal.headers.get("retry-after")).toBe("5");
    expect(await (await fetch(world.api.url)).text()).toContain("alpha/crash/global");
    await outside`alter database ${outside(database)} allow_connections true`;
    await eventually(async () => expect(await newest()).toBe("5"));
    await eventually(() => isSaid("the stored results can be read again"));
    await eventually(async () => expect((await world.get("/api/v1/games")).headers.get("x-data-age")).toBe("0"));
  } finally {
    await outside`alter database ${outside(database)} allow_connections true`;
    await outside.end();
  }
});
