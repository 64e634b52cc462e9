import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { reasonOf } from "../errors.ts";
import { dieWithUs, findPrograms, programOf, run } from "./process.ts";

/** Debian's or Ubuntu's packages, as they are unpacked into a folder of ours. */
export interface Packages {
  /** @throws Error where one of them cannot be fetched, with what went wrong before it too. */
  unpack(names: readonly string[]): Promise<void>;
  /** The libraries that a package needs, without the C library, which is always there. */
  librariesOf(name: string): Promise<string[]>;
  /** Takes the lists and caches away; what was unpacked stays. */
  close(): Promise<void>;
}

/**
 * Opens the distribution's packages for a folder: they are fetched and unpacked there, which needs no root and installs
 * nothing; apt checks their signatures. Null where this system has no apt. Lists and caches are in the folder until
 * `close`, so that the system's are neither needed nor touched.
 */
export async function openPackages(folder: string, searchPath?: string): Promise<Packages | null> {
  const tools = await findPrograms(["apt-get", "apt-cache", "dpkg-deb"], searchPath);
  if (tools.size < 3) return null;
  const apt = join(folder, "apt");
  for (const inside of ["lists/partial", "cache/archives/partial", "deb"])
    await mkdir(join(apt, inside), { recursive: true });
  const settings = [
    `Dir::State::Lists=${apt}/lists`,
    `Dir::Cache=${apt}/cache`,
    "Dir::Cache::pkgcache=",
    "Dir::Cache::srcpkgcache=",
    "APT::Sandbox::User=root", // it could not write into our folder as _apt
    "Debug::NoLocking=1", // the lock is the system's, which we do not touch
    "Acquire::Languages=none", // descriptions are megabytes
    "Acquire::http::Timeout=20",
    "Acquire::https::Timeout=20",
  ].flatMap((setting) => ["-o", setting]);
  const wrap = await dieWithUs("TERM");
  const tool = async (name: string, args: string[]) => {
    // env sets LC_ALL, because the output is parsed and must be English.
    const outcome = await run(
      programOf([...wrap, "/usr/bin/env", "LC_ALL=C", tools.get(name) ?? name, ...args], { cwd: join(apt, "deb") }),
      { timeoutMs: 180_000 },
    );
    if (outcome.code !== 0) throw new Error(`${name}: ${outcome.stderr.trim().slice(-500) || "took more than 180 s"}`);
    return outcome.stdout;
  };
  // One broken source of many fails the update; what counts is whether the packages come.
  const update = await tool("apt-get", [...settings, "update"]).then(
    () => null,
    (error: Error) => error,
  );
  async function explained<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (update === null) throw error;
      throw new Error(`${update.message}; ${reasonOf(error)}`, { cause: error });
    }
  }
  return {
    unpack: (names) =>
      explained(async () => {
        await tool("apt-get", [...settings, "download", ...names]);
        for (const file of await readdir(join(apt, "deb"))) {
          await tool("dpkg-deb", ["-x", join(apt, "deb", file), folder]);
          await rm(join(apt, "deb", file));
        }
      }),
    librariesOf: (name) =>
      explained(async () => {
        const depends = await tool("apt-cache", [...settings, "depends", "--important", name]);
        const names = [...depends.matchAll(/^ *\|?Depends: (\S+)$/gm)].map((match) => match[1] ?? "");
        return names.filter((one) => one.startsWith("lib") && one !== "libc6");
      }),
    close: () => rm(apt, { recursive: true, force: true }),
  };
}

/** Which system the packages are of, such as `debian12`: libraries of one release need not fit the next. */
export async function releaseName(): Promise<string> {
  const text = await readFile("/etc/os-release", "utf8").catch(() => "");
  const field = (name: string) => new RegExp(`^${name}="?([\\w.-]*)"?$`, "m").exec(text)?.[1] ?? "";
  return `${field("ID") || "linux"}${field("VERSION_ID")}`;
}

/** What programs unpacked into a folder need in their environment, to find the libraries next to them. */
export async function environmentOf(folder: string): Promise<Record<string, string>> {
  const lib = join(folder, "usr", "lib");
  const triplets = (await readdir(lib)).filter((name) => name.includes("-linux-"));
  const libraries = [...triplets.map((name) => join(lib, name)), lib];
  return { LD_LIBRARY_PATH: libraries.join(":") };
}
