/** Sends requests to pages as one browser does: it keeps cookies, and follows no redirect. */
export interface CookieClient {
  email: string;
  cookies: Map<string, string>;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  post(path: string, fields?: Record<string, string | string[]>, headers?: Record<string, string>): Promise<Response>;
  /** Sends a multipart form, as one with a file. */
  upload(path: string, form: FormData): Promise<Response>;
}

/**
 * Makes a client whose requests arrive from `address` by their X-Forwarded-For. It accepts no compression, which would
 * take a quarter of the time of a page.
 */
export function openCookieClient(url: string, address: string): CookieClient {
  const cookies = new Map<string, string>();
  async function ask(path: string, init: RequestInit): Promise<Response> {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = {
      cookie,
      "x-forwarded-for": address,
      "accept-encoding": "identity",
      ...(init.headers as Record<string, string>),
    };
    const response = await fetch(url + path, { redirect: "manual", ...init, headers });
    for (const line of response.headers.getSetCookie()) {
      const [pair = ""] = line.split(";");
      const [name = "", ...value] = pair.split("=");
      if (/max-age=0/i.test(line)) cookies.delete(name);
      else cookies.set(name, value.join("="));
    }
    return response;
  }
  return {
    email: "",
    cookies,
    get: (path, headers = {}) => ask(path, { headers }),
    upload: (path, body) =>
      ask(path, { method: "POST", body, headers: { origin: url, "sec-fetch-site": "same-origin" } }),
    post: (path, fields = {}, headers = {}) => {
      const body = new URLSearchParams();
      for (const [name, values] of Object.entries(fields)) {
        for (const value of [values].flat()) body.append(name, value);
      }
      return ask(path, {
        method: "POST",
        body,
        headers: { origin: url, "sec-fetch-site": "same-origin", ...headers },
      });
    },
  };
}
