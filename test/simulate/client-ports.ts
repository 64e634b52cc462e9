import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** The local ports of a process's open TCP connections; empty if it has exited. Linux only. */
export function clientPortsOf(pid: number): Set<number> {
  const inodes = socketInodesOf(pid);
  const ports = new Set<number>();
  for (const table of ["tcp", "tcp6"]) {
    for (const line of readFileSync(`/proc/net/${table}`, "utf8").split("\n").slice(1)) {
      const columns = line.trim().split(/\s+/); // proc(5): 1 is local address:port in hexadecimal, 9 the inode
      if (inodes.has(columns[9] ?? "")) ports.add(Number.parseInt(columns[1]?.split(":")[1] ?? "", 16));
    }
  }
  return ports;
}

function socketInodesOf(pid: number): Set<string> {
  const inodes = new Set<string>();
  for (const fd of listDescriptors(pid)) {
    try {
      const [, inode] = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`)) ?? [];
      if (inode !== undefined) inodes.add(inode);
    } catch {
      // closed since it was listed
    }
  }
  return inodes;
}

function listDescriptors(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`);
  } catch {
    return [];
  }
}
