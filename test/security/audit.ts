// Asks the package registry for known vulnerabilities of what we ship: node test/security/audit.ts [--required]
// Ends with 1 where there are some of high severity or worse. A registry that has no such service, or does not answer,
// is told and passed over, unless --required says that it must not be.
import { spawnSync } from "node:child_process";
import { pathToFileURL } from "node:url";
import { z } from "zod";

/** What a registry said of our packages. */
export type Audit =
  | { kind: "told"; grave: string[]; others: number }
  /** It has no such service, or does not answer. */
  | { kind: "unavailable"; why: string }
  /** The question itself was wrong. */
  | { kind: "broken"; why: string };

const report = z.looseObject({
  auditReportVersion: z.literal(2),
  vulnerabilities: z.record(
    z.string(),
    z.looseObject({ severity: z.enum(["info", "low", "moderate", "high", "critical"]), range: z.string() }),
  ),
});
const refusal = z.looseObject({ message: z.string(), statusCode: z.number().optional() });
const failure = z.looseObject({ error: z.looseObject({ code: z.string().nullish(), summary: z.string() }) });

/** Reads what `npm audit --json` printed. */
export function readAudit(stdout: string): Audit {
  let json: unknown;
  try {
    json = JSON.parse(stdout);
  } catch {
    return { kind: "broken", why: `expected JSON from npm audit, got ${JSON.stringify(stdout.slice(0, 200))}` };
  }
  const told = report.safeParse(json);
  if (told.success) {
    const all = Object.entries(told.data.vulnerabilities);
    const grave = all.filter(([, { severity }]) => severity === "high" || severity === "critical");
    const lines = grave.map(([name, { severity, range }]) => `${name} ${range}: ${severity}`);
    return { kind: "told", grave: lines, others: all.length - grave.length };
  }
  const refused = refusal.safeParse(json);
  if (refused.success) {
    const { statusCode } = refused.data;
    return { kind: "unavailable", why: statusCode === undefined ? "no answer" : `${statusCode}` };
  }
  const failed = failure.safeParse(json);
  if (!failed.success) return { kind: "broken", why: "expected a report or a failure from npm audit, got neither" };
  const { code, summary } = failed.data.error;
  // ours: no lockfile, a wrong flag; theirs: no service, no answer
  const isOurs = code === undefined || code === null || /^(?:EAUDITNOLOCK|EUSAGE|ELOCKVERIFY)$/.test(code);
  return isOurs ? { kind: "broken", why: summary } : { kind: "unavailable", why: code };
}

function main(isRequired: boolean): number {
  const { stdout } = spawnSync("npm", ["audit", "--omit=dev", "--json"], { encoding: "utf8", timeout: 120_000 });
  const audit = readAudit(stdout);
  if (audit.kind === "told") {
    console.log(`${audit.grave.length} packages with high or critical advisories, ${audit.others} with lesser ones`);
    for (const line of audit.grave) console.error(line);
    return audit.grave.length > 0 ? 1 : 0;
  }
  if (audit.kind === "broken") {
    console.error(`the audit of our packages did not run: ${audit.why}`);
    return 1;
  }
  console.error(`this registry tells nothing of vulnerabilities (${audit.why}): OUR PACKAGES WERE NOT AUDITED`);
  return isRequired ? 1 : 0;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  process.exitCode = main(process.argv.includes("--required"));
}
