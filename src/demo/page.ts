/** Which rounds a request asks for. */
export interface Page {
  limit: number;
  beforeId: string | null;
}

const LONGEST_PAGE = 200;

/** Reads `?before={id}&limit={limit}`; anything else, a repeated or a wrong parameter is a problem in plain words. */
export function readPage(
  query: URLSearchParams,
  expected: { defaultLimit: number; isId: (text: string) => boolean; idKind: string },
): { ok: true; page: Page } | { ok: false; problem: string } {
  const unknown = [...query.keys()].find((name) => name !== "before" && name !== "limit");
  if (unknown !== undefined) return wrong(`expected only before and limit, got the parameter ${shown(unknown)}`);
  for (const name of ["before", "limit"]) {
    if (query.getAll(name).length > 1) return wrong(`expected ${name} once`);
  }
  const limit = query.get("limit") ?? String(expected.defaultLimit);
  if (!/^[1-9]\d{0,2}$/.test(limit) || Number(limit) > LONGEST_PAGE) {
    return wrong(`expected limit to be a whole number from 1 to ${LONGEST_PAGE}, got ${shown(limit)}`);
  }
  const beforeId = query.get("before");
  if (beforeId !== null && !expected.isId(beforeId)) {
    return wrong(`expected before to be ${expected.idKind}, got ${shown(beforeId)}`);
  }
  return { ok: true, page: { limit: Number(limit), beforeId } };
}

function wrong(problem: string): { ok: false; problem: string } {
  return { ok: false, problem };
}

function shown(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);
}
