import { FUNCTION_GRANTS, GRANTS, type Part, ROLES, withSchema } from "./role-grants.ts";

const PRIVILEGES = { r: "SELECT", a: "INSERT", w: "UPDATE", d: "DELETE" } as const;

/** Something that a role may do: a privilege on a table, on one of its columns, on a sequence or on a function. */
export interface Grant {
  role: string;
  kind: "table" | "sequence" | "function";
  /** With its schema. */
  object: string;
  column: string | null;
  privilege: string;
}

/** The whole list as single grants. */
export function wantedGrants(): Grant[] {
  const tables = Object.entries(GRANTS).flatMap(([table, grants]) =>
    Object.entries(grants).flatMap(([part, text]) =>
      privilegesOf(text).map(({ privilege, column }): Grant => {
        return { role: ROLES[part as Part], kind: "table", object: withSchema(table), column, privilege };
      }),
    ),
  );
  const functions = Object.entries(FUNCTION_GRANTS).flatMap(([name, parts]) =>
    parts.map((part): Grant => {
      return { role: ROLES[part], kind: "function", object: withSchema(name), column: null, privilege: "EXECUTE" };
    }),
  );
  return [...tables, ...functions];
}

function privilegesOf(text: string): { privilege: string; column: string | null }[] {
  return [...text.matchAll(/([rawd]+)(?:\(([a-z0-9_,]+)\))?/g)].flatMap(([, letters = "", columns]) =>
    [...letters].flatMap((letter) =>
      (columns?.split(",") ?? [null]).map((column) => ({ privilege: PRIVILEGES[letter as "r"], column })),
    ),
  );
}
