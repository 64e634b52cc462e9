import { execFile } from "node:child_process";
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "roundhouse-deploy-"));
  await cp(join(import.meta.dirname, "../../deploy"), join(folder, "deploy"), { recursive: true });
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Runs a script of `deploy`; returns what it prints. */
async function script(file: string, ...args: string[]): Promise<string> {
  const env = { PATH: `${join(folder, "bin")}:${process.env["PATH"]}` };
  return (await promisify(execFile)(join(folder, "deploy", file), args, { env })).stdout;
}
const secret = (name: string) => readFile(join(folder, "secrets", name), "utf8");
const setSecret = async (name: string, text: string) => {
  await rm(join(folder, "secrets", name), { force: true });
  await writeFile(join(folder, "secrets", name), text);
};

describe("deploy/secrets.sh", () => {
  it("keeps what is there, and makes what is missing", async () => {
    await script("secrets.sh");
    const before = await secret("database_url");
    await setSecret("smtp_url", "smtp://mail.example");
    await rm(join(folder, "secrets/staff_webhook_url"));
    expect(await script("secrets.sh")).toBe("secrets/ is ready; the database is roundhouse\n");
    expect([await secret("database_url"), await secret("smtp_url"), await secret("staff_webhook_url")]).toEqual([
      before,
      "smtp://mail.example",
      "",
    ]);
  });

  it("empties database_read_url when the database changes, since its replica has the former one", async () => {
    await script("secrets.sh");
    await setSecret("database_read_url", "postgres://api@replica:5432/roundhouse");
    await script("secrets.sh");
    expect(await secret("database_read_url")).not.toBe("");
    expect(await script("secrets.sh", "fresh")).toContain("secrets/database_read_url is empty now");
    expect([await secret("database_read_url"), await secret("database_url")]).toEqual([
      "",
      expect.stringMatching(/@postgres:5432\/fresh$/),
    ]);
    expect(await script("secrets.sh", "fresh")).not.toContain("database_read_url");
  });

  it("keeps URLs that lead to another server, and reports them", async () => {
    await script("secrets.sh");
    await setSecret("database_url_api", "postgres://api@promoted:5432/roundhouse");
    expect(await script("secrets.sh")).toContain("secrets/database_url_api leads to another server and was kept");
    expect(await secret("database_url_api")).toBe("postgres://api@promoted:5432/roundhouse");
  });

  it("lets URLs of another server lead to the database that is named, as after a restore", async () => {
    await script("secrets.sh");
    await setSecret("database_url_api", "postgres://api@pgbouncer:6432/roundhouse?sslmode=require");
    await setSecret("redis_url", "redis://elsewhere:6379/1");
    expect(await script("secrets.sh", "fresh")).toContain("secrets/database_url_api leads to another server: now to");
    expect(await secret("database_url_api")).toBe("postgres://api@pgbouncer:6432/fresh?sslmode=require");
    expect(await secret("redis_url")).toBe("redis://elsewhere:6379/1");
  });
});

describe("deploy/upgrade.sh", () => {
  /** Puts a program named docker first in the PATH. */
  async function makeDocker(text: string): Promise<void> {
    await mkdir(join(folder, "bin"));
    await writeFile(join(folder, "bin/docker"), `#!/bin/sh\n${text}\n`);
    await chmod(join(folder, "bin/docker"), 0o755);
  }

  /** A docker whose containers are files; `up` and `stop` fail as long as there is a file of that name. */
  async function makeContainers(...names: string[]): Promise<void> {
    await makeDocker(`
cd ${folder}/containers
case $* in
  "compose ps --quiet "* | "compose ps --all --quiet "*)
    for service; do :; done
    ls | grep "^$service-" || true ;;
  "compose up "*)
    for service; do :; done
    count=\${*##*--scale "$service="}
    for n in $(seq \${count%% *}); do
      [ "$(ls | grep -c "^$service-")" -ge "\${count%% *}" ] || touch "$service-$(ls | wc -l)-$(date +%N)"
    done
    [ ! -e ../fail-up ] ;;
  stop*) [ ! -e ../fail-stop ] ;;
  "rm --force "*) shift 2; rm "$@" ;;
  rm*) shift; rm "$@" ;;
esac`);
    await mkdir(join(folder, "containers"));
    for (const name of names) await writeFile(join(folder, "containers", name), "");
  }
  const containers = () => readdir(join(folder, "containers"));
  const upgrade = () => script("upgrade.sh", "1.2.3");

  it("makes secrets that the new version needs before it migrates", async () => {
    await script("secrets.sh");
    const added = ["database_read_url", "staff_webhook_url"].map((name) => join(folder, "secrets", name));
    for (const file of added) await rm(file);
    // a docker that refuses, as Compose does, to mount a file that is missing
    await makeDocker(`case $* in *migrate) cat ${added.join(" ")} ;; esac`);
    await upgrade();
    for (const file of added) expect((await stat(file)).size).toBe(0);
    expect(await readFile(join(folder, ".env"), "utf8")).toBe("ROUNDHOUSE_VERSION=1.2.3\n");
  });

  it("replaces each process by one, and keeps the mode of .env", async () => {
    await makeContainers("api-a", "api-b", "worker-a");
    await writeFile(join(folder, ".env"), "COMPOSE_PROFILES=demo\n", { mode: 0o600 });
    await upgrade();
    const left = await containers();
    expect(left.map((name) => name.split("-")[0])).toEqual(["api", "api", "worker"]);
    expect(left).not.toEqual(expect.arrayContaining(["api-a"]));
    expect((await stat(join(folder, ".env"))).mode & 0o777).toBe(0o600);
    expect(await readFile(join(folder, ".env"), "utf8")).toBe("COMPOSE_PROFILES=demo\nROUNDHOUSE_VERSION=1.2.3\n");
  });

  it("fails without a process more or less if new ones do not become healthy", async () => {
    await makeContainers("api-a", "api-b", "worker-a");
    await writeFile(join(folder, "fail-up"), "");
    await expect(upgrade()).rejects.toThrow("api of 1.2.3 did not become healthy");
    expect(await containers()).toEqual(["api-a", "api-b", "worker-a"]);
  });

  it("fails if old processes cannot be stopped", async () => {
    await makeContainers("api-a");
    await writeFile(join(folder, "fail-stop"), "");
    await expect(upgrade()).rejects.toThrow("end them before the next upgrade: docker rm --force api-a");
  });
});
