/** The stylesheet and the script: outside of `/ops`, where nothing is answered without signing in. */
export const STYLE_PATH = "/ops.css";
export const SCRIPT_PATH = "/ops.js";

/** Whether a path is answered by `/ops`: everything below it, and its stylesheet and script. */
export function isOpsPath(path: string): boolean {
  return path === "/ops" || path.startsWith("/ops/") || path === STYLE_PATH || path === SCRIPT_PATH;
}
