import { connect } from "../../db/client.ts";
import { reasonOf } from "../../errors.ts";
import { checkEndpoints, keyProblem, settingProblem } from "../../topups/usdt/ready.ts";
import { findUsdtProblems } from "../../topups/usdt/problem-store.ts";
import { type Usdt, usdtOf } from "../../config/usdt.ts";
import type { Finding } from "./checks.ts";
import type { Found } from "../session.ts";

const ADVICE = {
  ok: null,
  wrong:
    "set USDT_RPC_URLS to endpoints of that chain, or correct the USDT_ settings; nothing is read through it until then",
  away: "wait, or set USDT_RPC_URLS to an endpoint that responds; nothing is lost meanwhile",
} as const;
const STATUS = { ok: "ok", wrong: "fail", away: "warn" } as const;

/** Checks USDT: the key, each endpoint's chain and token, and the watcher. Nothing if USDT is not accepted. */
export async function checkUsdt({ settings, databaseUrl }: Found): Promise<Finding[]> {
  const usdt = usdtOf(settings);
  if (usdt === null) return [];
  const problem = await settingProblem(usdt);
  if (problem !== null) return [{ check: "usdt", status: "fail", found: problem, advice: "correct the setting" }];
  const checked = await checkEndpoints(usdt);
  return [
    ...checked.map(({ host, state, text }): Finding => {
      const found = state === "ok" ? `${usdt.chain.name}, ${usdt.chain.decimals} decimals` : text;
      return { check: `usdt ${host}`, status: STATUS[state], found, advice: ADVICE[state] };
    }),
    ...(databaseUrl === undefined ? [] : [await checkWatch(usdt, settings.DATABASE_DIRECT_URL ?? databaseUrl)]),
  ];
}

async function checkWatch(usdt: Usdt, databaseUrl: string): Promise<Finding> {
  const check = "usdt watch";
  const sql = connect(databaseUrl, { name: "doctor", max: 1 });
  try {
    const wrongKey = await keyProblem(sql, usdt);
    if (wrongKey !== null) return { check, status: "fail", found: wrongKey, advice: "set the former key again" };
    const problems = await findUsdtProblems(sql, usdt);
    return problems.length === 0
      ? { check, status: "ok", found: "read up to now, no deposit disputed", advice: null }
      : { check, status: "fail", found: problems.map(({ text }) => text).join("; "), advice: "see /ops/deposits" };
  } catch (error) {
    // an unreachable PostgreSQL or an old schema is reported by another check
    return { check, status: "warn", found: `not looked at: ${reasonOf(error)}`, advice: "see the findings above" };
  } finally {
    await sql.end({ timeout: 5 });
  }
}
