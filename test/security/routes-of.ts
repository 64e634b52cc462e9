import diagnostics from "node:diagnostics_channel";
import type { ServerResponse } from "node:http";
import type { Express } from "express";

/** A layer of Express's router: a route, or something that is used at a path. */
interface Layer {
  rawPath: unknown;
  slash: boolean;
  route?: { path: string; methods: Record<string, boolean> };
}

/**
 * Returns the routes of the Express app that responds to a path: `GET /console/keys`, and `USE /path` for what is mounted
 * at a path and routes by itself. Methods that a path refuses are no routes.
 */
export async function routesAt(url: string, path: string): Promise<string[]> {
  const app = await appAt(url, path);
  return (app.router.stack as unknown as Layer[]).flatMap(({ rawPath, slash, route }) => {
    if (route === undefined) return slash ? [] : [`USE ${String(rawPath)}`];
    const methods = Object.keys(route.methods).filter((method) => !["_all", "options"].includes(method));
    return methods.map((method) => `${method.toUpperCase()} ${route.path}`);
  });
}

/** The app that a request reaches: Express gives it to the request, and Node gives the request to its channel. */
async function appAt(url: string, path: string): Promise<Express> {
  const found: Express[] = [];
  const note = (message: unknown) => {
    const { request } = message as { request: { url: string; app?: Express }; response: ServerResponse };
    if (request.url === path && request.app !== undefined) found.push(request.app);
  };
  diagnostics.subscribe("http.server.response.finish", note);
  try {
    await (await fetch(url + path, { redirect: "manual" })).text();
  } finally {
    diagnostics.unsubscribe("http.server.response.finish", note);
  }
  const [app] = found;
  if (app === undefined) throw new Error(`expected an Express app to respond at ${url}${path}`);
  return app;
}
