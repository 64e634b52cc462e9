import { randomBytes } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { Redis } from "ioredis";
import { connect } from "../../src/db/client.ts";
import { housesFile, makeFolder, startRoundhouse, untilReady } from "../cli/world.ts";
import { tokenOf } from "../console/mails.ts";
import { totp } from "../ops/totp.ts";
import { respondWith, startBadHouse } from "../support/bad-house.ts";
import { createDatabase, createRedis } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";
import { startMailServer } from "../support/mail-server.ts";
import { openCookieClient } from "../support/cookie-client.ts";

const EMAIL = "ann@example.com";

/** Secrets of this test by what they are; every one was made for it, so that wherever it shows, it leaked. */
const minted = new Map<string, string>();
function mint(name: string, value = randomBytes(18).toString("base64url")): string {
  minted.set(name, value);
  return value;
}

/** A superuser of the given database, and a user of the given Redis, with passwords that only this test knows. */
async function users(): Promise<{ databaseUrl: string; redisUrl: string }> {
  const database = await createDatabase();
  const name = `logs_${randomBytes(6).toString("hex")}`;
  const [databaseUrl, redisUrl] = [new URL(database.url), new URL((await createRedis()).url)];
  const sql = connect(database.url, { name: "test", max: 1 });
  const redis = new Redis(redisUrl.href);
  const password = mint("the password of PostgreSQL", `${randomBytes(12).toString("base64url")}/@:`);
  await sql.unsafe(`create role ${name} superuser login password '${password}'`);
  await redis.acl("SETUSER", name, "on", `>${mint("the password of Redis")}`, "~*", "&*", "+@all");
  onTestFinished(async () => {
    await redis.acl("DELUSER", name);
    redis.disconnect();
    await sql.unsafe(`drop role ${name}`);
    await sql.end();
    await database.drop();
  });
  databaseUrl.username = name;
  databaseUrl.password = encodeURIComponent(password);
  redisUrl.username = name;
  redisUrl.password = minted.get("the password of Redis") ?? "";
  return { databaseUrl: databaseUrl.href, redisUrl: redisUrl.href };
}

it("[LOGS] no secret is in any line of a whole instance at its most talkative, whatever is done with it", async () => {
  const { databaseUrl, redisUrl } = await users();
  const smtp = await startMailServer({ password: mint("the password of the mail server") });
  onTestFinished(() => smtp.close());
  const house = await startBadHouse();
  onTestFinished(() => house.close());
  // houses and payment apps that echo our requests, as error pages do
  const heard = new Set<string>();
  const echo =
    (status: number, type: string) =>
    (
      request: Parameters<Parameters<typeof house.on>[1]>[0],
      response: Parameters<Parameters<typeof house.on>[1]>[1],
    ) => {
      heard.add(request.url ?? "");
      const all = JSON.stringify({ url: request.url, ...request.headers });
      response.writeHead(status, { "content-type": type, location: `http://127.0.0.1:1/?${encodeURIComponent(all)}` });
      response.end(all);
    };
  const token = mint("the token of a house");
  const feeds = { moved: 302, broken: 500, turned: 403, html: 200 };
  for (const [path, status] of Object.entries(feeds)) house.on(`/${path}?key=${token}`, echo(status, "text/html"));
  house.on(`/items?key=${token}`, respondWith(JSON.stringify({ rounds: [{ id: token, multiplier: token }] })));
  house.on("/binancepay/openapi/v3/order", echo(500, "application/json"));
  house.on(`/rpc/${mint("the address of a chain's endpoint")}`, echo(500, "application/json"));
  const houses = [...Object.keys(feeds), "items"].map((id) => {
    const { entry } = houseEntry({
      id,
      base_url: house.url,
      poll_every_ms: 1_000,
      headers: { "X-House-Token": "${HOUSE_TOKEN}", Authorization: "Bearer ${HOUSE_TOKEN}" },
      tables: [
        tableEntry({
          feed: { path: `/${id}?key=\${HOUSE_TOKEN}`, items: "rounds", round_id: "id", multiplier: "multiplier" },
        }),
      ],
    });
    return entry;
  });
  const dataDir = join(await makeFolder(), "data");
  const smtpUrl = new URL(smtp.url);
  smtpUrl.username = "mailer";
  smtpUrl.password = minted.get("the password of the mail server") ?? "";
  const running = startRoundhouse(["up", "--json"], {
    env: {
      LOG_LEVEL: "trace",
      DATABASE_URL: databaseUrl,
      REDIS_URL: redisUrl,
      DATA_DIR: dataDir,
      PORT: "0",
      HOUSES_FILE: await housesFile(houses),
      ALLOW_PRIVATE_HOUSES: "1",
      HOUSE_TOKEN: token,
      AUTH_SECRET: mint("AUTH_SECRET", randomBytes(33).toString("base64")),
      AUTH_SECRET_PREVIOUS: mint("AUTH_SECRET_PREVIOUS", randomBytes(33).toString("base64")),
      METRICS_TOKEN: mint("METRICS_TOKEN"),
      SMTP_URL: smtpUrl.href,
      BINANCE_PAY_URL: house.url,
      BINANCE_PAY_KEY: mint("the key of the payment app"),
      BINANCE_PAY_SECRET: mint("the secret of the payment app"),
      USDT_RPC_URLS: `${house.url}/rpc/${minted.get("the address of a chain's endpoint")}`,
      USDT_XPUB:
        "xpub6Ce9NcJvTk36xtLSrJLZqE7wtgA5deCeYs7rSQtreh4cj6ByPtrg9sD7V2FNFLPnf8heNP3FGkeV9qwfzvZNSd54JoNXVsXFYSYwHsnJxqP",
    },
  });
  const ready = await untilReady(running);
  mint("the key that a start prints", ready.api_key);
  mint("the link that a start prints", tokenOf(ready.ops_url));
  let addresses = 0;
  const someone = () => openCookieClient(ready.url, `198.51.100.${++addresses}`);
  const keepCookies = ({ cookies }: ReturnType<typeof someone>) => {
    for (const [name, value] of cookies)
      if (value.length > 20) mint(`the cookie ${name} ${value.slice(-6)}`, decodeURIComponent(value));
  };
  const mailedToken = (page: string) =>
    eventually(() => {
      const link = smtp.linkFor(EMAIL);
      return link?.includes(`/console/${page}?`) ? tokenOf(link) : undefined;
    });

  const operator = someone();
  expect((await operator.get(`/ops/link?token=${tokenOf(ready.ops_url)}`)).status).toBe(303);
  for (const page of ["/ops", "/ops/houses", "/ops/people", "/ops/mails", "/ops/link?token=x"])
    await operator.get(page);
  keepCookies(operator);

  const [password, next] = [mint("a password"), mint("the next password")];
  const ann = someone();
  await ann.post("/console/sign-up", { email: EMAIL, password, terms: "on", adult: "on" });
  const confirm = mint("the link that confirms", await mailedToken("confirm"));
  expect((await ann.get(`/console/confirm?token=${confirm}`)).status).toBe(200);
  expect((await ann.post("/console/confirm", { token: confirm, password })).status).toBe(303);
  keepCookies(ann);
  await someone().post("/console/sign-in", { email: EMAIL, password: mint("a wrong password") });
  await someone().post("/console/sign-in", { email: mint("a password typed as an address"), password });

  const shownOnce = async (path: string, fields: Record<string, string>) => {
    const page = await (await ann.post(path, fields)).text();
    return mint(`the key of ${path}`, /rh_live_[0-9A-Za-z]{38}/.exec(page)?.[0] ?? "none");
  };
  const key = await shownOnce("/console/keys", { name: "server" });
  const id = /\/console\/keys\/(\d+)\/rotate/.exec(await (await ann.get("/console/keys")).text())?.[1] ?? "";
  const rotated = await shownOnce(`/console/keys/${id}/rotate`, { overlap: "24h" });
  expect([key, rotated]).not.toContain("none");
  const typo = mint("a key with a typing error", `${rotated.slice(0, -1)}_`);
  for (const one of [ready.api_key, key, rotated, typo, `${rotated}, ${key}`]) {
    await fetch(`${ready.url}/api/v1/games`, { headers: { "X-Api-Key": one, Authorization: `Bearer ${one}` } });
    await fetch(`${ready.url}/api/v1/games?api_key=${one}`);
    await fetch(`${ready.url}/api/v1/${one}?x=${one}`, {
      headers: { Cookie: `key=${one}`, Referer: `http://a/${one}` },
    });
  }
  for (const bearer of [minted.get("METRICS_TOKEN"), mint("a wrong METRICS_TOKEN")]) {
    await fetch(`${ready.url}/metrics`, { headers: { authorization: `Bearer ${bearer}` } });
  }

  const enroll = await (await ann.post("/console/security/two-factor/enable", { password })).text();
  const secret = mint("the secret of a second factor", /secret: <code>([A-Z2-7]+)</.exec(enroll)?.[1] ?? "none");
  for (const [, code = ""] of enroll.matchAll(/<li><code>([^<]+)</g)) mint(`the backup code ${code.slice(-3)}`, code);
  expect((await ann.post("/console/security/two-factor/verify", { code: totp(secret) })).status).toBe(303);

  expect((await ann.post("/console/top-up/binance-pay", { amount: "25.17" })).status).toBe(303);
  const pay = { "BinancePay-Signature": mint("the signature of a notice"), "content-type": "application/json" };
  await fetch(`${ready.url}/topups/binance-pay/notify`, { method: "POST", headers: pay, body: '{"bizType":"PAY"}' });

  await someone().post("/console/forgot", { email: EMAIL });
  const reset = mint("the link that resets", await mailedToken("reset"));
  const forgetful = someone();
  await forgetful.get(`/console/reset?token=${reset}`);
  expect((await forgetful.post("/console/reset", { token: reset, next, again: next })).status).toBe(303);
  keepCookies(ann);

  // all external services were requested, and echoed the requests
  const outside = [...Object.keys(feeds).map((path) => `/${path}?key=${token}`), "/binancepay/openapi/v3/order"];
  await eventually(
    () => outside.every((path) => heard.has(path)) && [...heard].some((path) => path.startsWith("/rpc/")),
  );
  await eventually(() => /"queue":"normalize-rounds"/.test(running.output.stderr));
  running.kill("SIGTERM");
  expect(await running.ended).toMatchObject({ code: 0 });

  const { stdout, stderr } = running.output;
  const [first = "", ...more] = stdout.split("\n");
  expect(JSON.parse(first)).toMatchObject({ api_key: ready.api_key }); // what a start is asked to print, once
  const files = await readdir(dataDir, { recursive: true, withFileTypes: true });
  const logs = files.filter((file) => file.isFile() && /\.log/.test(file.name));
  const written = await Promise.all(logs.map(({ parentPath, name }) => readFile(join(parentPath, name), "utf8")));
  const text = [stderr, ...more, ...written].join("\n");
  expect(text.split("\n").length).toBeGreaterThan(100);
  expect(minted.size).toBeGreaterThan(30);
  const leaked = [...minted].filter(([, value]) =>
    [value, encodeURIComponent(value), Buffer.from(value).toString("base64")].some((form) => text.includes(form)),
  );
  expect(leaked.map(([name, value]) => `${name}: ${text.split("\n").find((line) => line.includes(value))}`)).toEqual(
    [],
  );
});
