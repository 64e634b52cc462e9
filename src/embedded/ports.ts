import { createServer } from "node:net";

/** What a server writes when someone took its port before it did, and how often another port is then tried. */
export const PORT_TAKEN = /address already in use/i;
export const PORT_ATTEMPTS = 5;

/**
 * A port of 127.0.0.1 that was free a moment ago. Someone else may take it before its server does: be ready to ask
 * again.
 */
export async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => {
        if (address !== null && typeof address === "object") resolve(address.port);
        else reject(new Error("the system gave no port"));
      });
    });
  });
}
