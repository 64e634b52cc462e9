import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../../src/embedded/process.ts";
import { type NameServer, startNameServer } from "../support/name-server.ts";
import { isInMountNamespace, mount } from "./disks.ts";

const RESOLV_CONF = "/etc/resolv.conf";
const PORT = 53;

/**
 * Starts a name server that the C library uses in the processes that this one starts from now on, until `close`. Returns
 * null if nothing can be mounted or the port is not available.
 */
export async function startMachineResolver(folder: string): Promise<NameServer | null> {
  if (!isInMountNamespace()) return null;
  // unique to this process, since another simulation may run on the machine
  const host = `127.53.${(process.pid >> 8) & 255}.${process.pid & 255}`;
  const names = await startNameServer({ host, port: PORT }).catch(() => null);
  if (names === null) return null;
  const file = join(folder, "resolv.conf");
  await writeFile(file, `nameserver ${host}\noptions timeout:5 attempts:2\n`, { mode: 0o644 });
  await mount(["--bind", file, RESOLV_CONF]);
  return {
    ...names,
    async close() {
      await run({ command: "umount", args: ["-l", RESOLV_CONF] });
      await names.close();
    },
  };
}
