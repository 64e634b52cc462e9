import { Command } from "commander";
import { reasonOf } from "../../errors.ts";
import { examples } from "../arguments.ts";
import { checkHere, checkHousesFile, checkServers } from "./checks.ts";
import { fail, type Finding, ok } from "./finding.ts";
import { checkDatabase } from "./database.ts";
import { checkMail } from "./mail.ts";
import { checkUsdt } from "./usdt.ts";
import { type HouseChecks, openHouseChecks } from "../houses/house-check.ts";
import { paint, print, printJson, printTable } from "../output.ts";
import { type Found, findServers } from "../session.ts";

/** `roundhouse doctor`: problems and their remedies. Exit code 1 if a check fails. */
export function doctorCommand(): Command {
  return new Command("doctor")
    .description("check this machine, the servers, the schema, the houses file and the work in progress")
    .option("--houses", "also request each house once", false)
    .option("--json", "print one JSON object", false)
    .addHelpText("after", examples("doctor", "doctor --houses --json"))
    .action(async ({ houses: ask, json }: { houses: boolean; json: boolean }) => {
      const found = await findServers();
      const { findings: fileFindings, houses } = checkHousesFile(found.settings);
      const servers = await checkServers(found);
      const findings = [
        ...(await checkHere(found)),
        ...servers,
        ...(await checkDatabase(found, servers.find(({ check }) => check === "migrations")?.status)),
        await checkMail(found.settings),
        ...(await checkUsdt(found)),
        ...fileFindings,
        ...(ask && houses.length > 0 ? await askHouses(found, houses) : []),
      ];
      const isGood = findings.every(({ status }) => status !== "fail");
      if (json) await printJson({ ok: isGood, checks: findings });
      else await show(findings, isGood);
      if (!isGood) process.exitCode = 1;
    });
}

async function askHouses(found: Found, houses: readonly string[]): Promise<Finding[]> {
  const checks = openHouseChecks(found);
  try {
    return await Promise.all(houses.map((house) => askHouse(checks, house)));
  } finally {
    await checks.close();
  }
}

async function askHouse(checks: HouseChecks, house: string): Promise<Finding> {
  const check = `house ${house}`;
  const advice = `look closer with \`roundhouse house check ${house} --explain\``;
  try {
    const tables = await checks.check(house);
    const bad = tables.filter((table) => !table.ok);
    const slowest = Math.max(...tables.map(({ elapsed_ms }) => elapsed_ms));
    if (bad.length === 0) {
      return ok(check, `${tables.length} tables responded within ${slowest} ms`);
    }
    return fail(check, bad.map(({ table, reason }) => `${table}: ${reason}`).join("; "), advice);
  } catch (error) {
    return fail(check, reasonOf(error), advice);
  }
}

async function show(findings: Finding[], isGood: boolean): Promise<void> {
  await printTable(
    ["", "check", "found"],
    findings.map(({ status, check, found }) => [MARKS[status], check, found]),
  );
  const advised = findings.filter(({ advice }) => advice !== null);
  if (advised.length > 0) {
    await print(
      ["", paint.bold("what to do"), ...advised.map(({ check, advice }) => `- ${check}: ${advice}`)].join("\n"),
    );
  }
  const warnings = findings.some(({ status }) => status === "warn");
  await print(`\n${isGood ? (warnings ? "it works; see the warnings" : "all is well") : "something is wrong"}`);
}

const MARKS: Record<Finding["status"], string> = {
  ok: paint.green("ok"),
  warn: paint.yellow("warn"),
  fail: paint.red("fail"),
};
