/** The finding of one check; `advice` is the remedy when the status is not ok. */
export interface Finding {
  check: string;
  status: "ok" | "warn" | "fail";
  found: string;
  advice: string | null;
}

/** A finding that needs nothing done. */
export function ok(check: string, found: string): Finding {
  return { check, status: "ok", found, advice: null };
}

/** A finding that something works and should be changed. */
export function warn(check: string, found: string, advice: string): Finding {
  return { check, status: "warn", found, advice };
}

/** A finding that something does not work. */
export function fail(check: string, found: string, advice: string): Finding {
  return { check, status: "fail", found, advice };
}
