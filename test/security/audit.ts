// `npm run audit`: asks the package registry for known vulnerabilities of what we ship.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { Command } from "commander";
import { z } from "zod";

/** An advisory that does not apply to us, or is lived with for a while. */
const acceptance = z.strictObject({
  /** Its id, such as GHSA-xxxx-xxxx-xxxx. */
  advisory: z.string().regex(/^GHSA(-[0-9a-z]{4}){3}$/),
  package: z.string().min(1),
  /** Why it is accepted, for the next reader. */
  reason: z.string().min(20),
  /** The last day on which it is accepted: at most half a year ahead. */
  until: z.iso.date(),
});
/** An entry of accepted-advisories.json. */
export type Acceptance = z.infer<typeof acceptance>;

/** What a registry reported of our packages. */
export type Audit =
  | {
      kind: "reported";
      /** Lines of packages with advisories of high severity or worse that are not accepted. */
      grave: string[];
      /** Lines of advisories that are accepted, with the reason. */
      accepted: string[];
      /** Packages with lesser advisories. */
      others: number;
    }
  /** It has no such service, or does not respond. */
  | { kind: "unavailable"; why: string }
  /** The question itself was wrong. */
  | { kind: "broken"; why: string };

const source = z.looseObject({ url: z.string(), severity: z.string() });
const report = z.looseObject({
  auditReportVersion: z.literal(2),
  vulnerabilities: z.record(
    z.string(),
    z.looseObject({
      severity: z.enum(["info", "low", "moderate", "high", "critical"]),
      range: z.string(),
      /** Advisories of the package itself, and names of packages that it has them from. */
      via: z.array(z.union([z.string(), source])),
    }),
  ),
});
type Vulnerabilities = z.infer<typeof report>["vulnerabilities"];
const refusal = z.looseObject({ message: z.string(), statusCode: z.number().optional() });
const failure = z.looseObject({ error: z.looseObject({ code: z.string().nullish(), summary: z.string() }) });

/** Reads the list of accepted advisories. @throws Error if an entry is not complete, or accepts for too long */
export function readAcceptances(json: string, today: string): Acceptance[] {
  const list = z.array(acceptance).parse(JSON.parse(json));
  const latest = new Date(Date.parse(today) + 184 * 86_400_000).toISOString().slice(0, 10);
  for (const { advisory, until } of list) {
    if (until > latest) throw new Error(`${advisory}: expected "until" of at most ${latest}, got ${until}`);
  }
  return list;
}

/** Reads what `npm audit --json` printed. An acceptance counts up to its last day. */
export function readAudit(stdout: string, acceptances: readonly Acceptance[], today: string): Audit {
  let json: unknown;
  try {
    json = JSON.parse(stdout);
  } catch {
    return { kind: "broken", why: `expected JSON from npm audit, got ${JSON.stringify(stdout.slice(0, 200))}` };
  }
  const reported = report.safeParse(json);
  if (reported.success) return assess(reported.data.vulnerabilities, acceptances, today);
  const refused = refusal.safeParse(json);
  if (refused.success) {
    const { statusCode } = refused.data;
    return { kind: "unavailable", why: statusCode === undefined ? "no response" : `${statusCode}` };
  }
  const failed = failure.safeParse(json);
  if (!failed.success) return { kind: "broken", why: "expected a report or a failure from npm audit, got neither" };
  const { code, summary } = failed.data.error;
  // ours: no lockfile, a wrong flag; theirs: no service, no response
  const isOurs = code === undefined || code === null || /^(?:EAUDITNOLOCK|EUSAGE|ELOCKVERIFY)$/.test(code);
  return isOurs ? { kind: "broken", why: summary } : { kind: "unavailable", why: code };
}

const isGrave = (severity: string) => severity === "high" || severity === "critical";

function assess(all: Vulnerabilities, acceptances: readonly Acceptance[], today: string): Audit {
  const accepted = new Set<string>();
  const grave = Object.entries(all).flatMap(([name, { severity, range }]) => {
    if (!isGrave(severity)) return [];
    const advisories = advisoriesOf(all, name);
    const open = advisories.filter(([id, of]) => {
      const found = acceptances.find((one) => one.advisory === id && one.package === of);
      if (found === undefined || found.until < today) return true;
      accepted.add(`${of} ${id}: ${found.reason} (until ${found.until})`);
      return false;
    });
    if (open.length === 0 && advisories.length > 0) return [];
    const expired = open.filter(([id]) => acceptances.some((one) => one.advisory === id));
    const ended = expired.map(([id]) => `; the acceptance of ${id} has ended`).join("");
    return [`${name} ${range}: ${severity}, ${open.map(([id]) => id).join(", ")}${ended}`];
  });
  const others = Object.values(all).filter(({ severity }) => !isGrave(severity)).length;
  return { kind: "reported", grave, accepted: [...accepted], others };
}

/** The grave advisories behind a package's entry, with the package that each is of. */
function advisoriesOf(all: Vulnerabilities, name: string, seen = new Set<string>()): [id: string, of: string][] {
  if (seen.has(name)) return [];
  seen.add(name);
  return (all[name]?.via ?? []).flatMap((via): [string, string][] => {
    if (typeof via === "string") return advisoriesOf(all, via, seen);
    return isGrave(via.severity) ? [[via.url.replace(/^.*\//, ""), name]] : [];
  });
}

function main({ isRequired, file }: { isRequired: boolean; file: string | URL }): number {
  const today = new Date().toISOString().slice(0, 10);
  const acceptances = readAcceptances(readFileSync(file, "utf8"), today);
  const { stdout } = spawnSync("npm", ["audit", "--omit=dev", "--json"], { encoding: "utf8", timeout: 120_000 });
  const audit = readAudit(stdout, acceptances, today);
  if (audit.kind === "reported") {
    console.log(`${audit.grave.length} packages with high or critical advisories, ${audit.others} with lesser ones`);
    for (const line of audit.accepted) console.log(`accepted: ${line}`);
    for (const line of audit.grave) console.error(line);
    return audit.grave.length > 0 ? 1 : 0;
  }
  if (audit.kind === "broken") {
    console.error(`the audit of our packages did not run: ${audit.why}`);
    return 1;
  }
  console.error(`this registry reports no vulnerabilities (${audit.why}): OUR PACKAGES WERE NOT AUDITED`);
  return isRequired ? 1 : 0;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { required, accepted } = new Command("npm run audit --")
    .description(
      "ask the package registry for known vulnerabilities of what we ship; ends with 1 if there are some of high severity or " +
        "worse that are not accepted",
    )
    .option("--required", "end with 1 also if the registry has no such service, or does not respond", false)
    .option("--accepted <file>", "another list of accepted advisories than accepted-advisories.json")
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
    .parse()
    .opts<{ required: boolean; accepted?: string }>();
  process.exitCode = main({
    isRequired: required,
    file: accepted ?? new URL("accepted-advisories.json", import.meta.url),
  });
}
