import { withConnections } from "../../db/with-connections.ts";
import { reasonOf } from "../../errors.ts";
import { checkEndpoints, keyProblem, settingProblem } from "../../topups/usdt/ready.ts";
import { findUsdtProblems } from "../../topups/usdt/problem-store.ts";
import { type Usdt, usdtOf } from "../../config/usdt.ts";
import { fail, type Finding, ok, warn } from "./finding.ts";
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
  if (problem !== null) return [fail("usdt", problem, "correct the setting")];
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
  try {
    return await withConnections(databaseUrl, { name: "doctor", max: 1 }, async (sql) => {
      const wrongKey = await keyProblem(sql, usdt);
      if (wrongKey !== null) return fail(check, wrongKey, "set the former key again");
      const problems = await findUsdtProblems(sql, usdt);
      return problems.length === 0
        ? ok(check, "read up to now, no deposit disputed")
        : fail(check, problems.map(({ text }) => text).join("; "), "see /ops/deposits");
    });
  } catch (error) {
    // an unreachable PostgreSQL or an old schema is reported by another check
    return warn(check, `not looked at: ${reasonOf(error)}`, "see the findings above");
  }
}
