/** Why a request for a page is answered with an error page: its status, and what to say. */
export class PageError extends Error {
  override name = "PageError";
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}
