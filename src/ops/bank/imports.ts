import { z } from "zod";
import { appendAudit } from "../../audit/store.ts";
import { PageError } from "../../frame/errors.ts";
import { inFours } from "../../config/iban.ts";
import { thousands } from "../../money.ts";
import { amountText } from "../../topups/bank/statements/amount.ts";
import { findImport, findSameImport, markImported, saveImport } from "../../topups/bank/statements/import-store.ts";
import { saveLines } from "../../topups/bank/line-store.ts";
import { countRows, isImported, previewStatement } from "../../topups/bank/statements/preview.ts";
import { readStatement } from "../../topups/bank/statements/statement.ts";
import { auditEntry } from "../audit-entry.ts";
import { opsAction, opsPage } from "../contract.ts";
import { idOf } from "../../frame/path-id.ts";
import { roles } from "./line-action.ts";

/** The largest statement, in bytes and characters; the table holds no longer text. */
const LARGEST_FILE = 1_048_576;
const LONGEST_FILE_NAME = 200;

const crumbs = [
  { label: "Bank transfers", href: "/ops/bank" },
  { label: "Import a statement", href: "/ops/bank/import" },
];

/** A form for a statement: a file, or its text. */
export const bankImportPage = opsPage({
  path: "/bank/import",
  show({ settings }, { visitor }) {
    const data = {
      bank: settings.BANK_NAME ?? "",
      isOnePerson: settings.BANK_ONE_PERSON,
      mayAct: visitor.role === "operator" || visitor.role === "admin",
    };
    return Promise.resolve({ template: "bank/import", title: "Import a statement", data, crumbs: crumbs.slice(0, 1) });
  },
});

const previewForm = z
  .object({
    bank: z
      .string()
      .trim()
      .toLowerCase()
      .regex(/^[a-z0-9][a-z0-9 ._-]{0,39}$/, "expected a short name of the bank: letters, digits, spaces, . _ -"),
    statement: z.string().max(LARGEST_FILE).default(""),
    file: z.string("expected one file").max(LARGEST_FILE).default(""),
    file_file: z
      .string()
      .default("")
      .transform((name) => name.replaceAll(/[\p{Cc}\p{Cf}]/gu, "").slice(0, LONGEST_FILE_NAME)),
  })
  .refine(({ statement, file }) => (statement.trim() === "") !== (file === ""), {
    error: "expected a file or a pasted text, and not both",
  });

/** Stores a statement as it was sent and leads to its preview; nothing is imported yet. */
export const previewImportAction = opsAction({
  name: "bank.import.preview",
  path: "/bank/import",
  roles,
  isDangerous: false,
  form: previewForm,
  file: { field: "file", maxBytes: LARGEST_FILE },
  async run({ sql, settings }, { visitor, form: { bank, statement, file, file_file: name } }) {
    const body = file === "" ? statement : file;
    const read = await readStatement(body, { bank, currencies: settings.BANK_CURRENCIES });
    if (!read.ok) return read;
    const sent = { bank, body, fileName: name === "" ? null : name, by: visitor.operatorId };
    const known = await findSameImport(sql, sent);
    if (known !== null) {
      const message = "This statement was sent before; this is its preview.";
      return { ok: true, message, location: `/ops/bank/imports/${known}`, didNothing: true };
    }
    const { lines, refused, skipped, format } = read.statement;
    const id = await sql.begin(async (tx) => {
      const saved = await saveImport(tx, sent);
      const after = { bank, format, lines: lines.length, refused: refused.length, skipped, sha256: saved.sha256 };
      const entry = { action: "bank.import.preview", target: `bank import ${saved.id}`, after };
      await appendAudit(tx, auditEntry(visitor, entry));
      return saved.id;
    });
    return { ok: true, message: "", location: `/ops/bank/imports/${id}` };
  },
});

/** Every row of a statement, and what importing it would do. */
export const bankImportPreviewPage = opsPage({
  path: "/bank/imports/:id",
  async show({ sql, settings }, { visitor, params }) {
    const id = idOf(params["id"]);
    const stored = id === null ? null : await findImport(sql, id);
    if (stored === null) return null;
    const read = await readStatement(stored.body, { bank: stored.bank, currencies: settings.BANK_CURRENCIES });
    const rows = read.ok ? await previewStatement(sql, read.statement) : [];
    const { body: _, ...facts } = stored;
    const data = {
      stored: facts,
      problem: read.ok ? null : read.problem,
      rows,
      counts: countRows(rows),
      skipped: read.ok ? read.statement.skipped : 0,
      format: read.ok ? read.statement.format : "",
      isOnePerson: settings.BANK_ONE_PERSON,
      mayAct: visitor.role === "operator" || visitor.role === "admin",
      isImported,
      amountText: (minor: bigint, currency: string) => thousands(amountText(minor, currency)),
      inFours,
    };
    return { template: "bank/import-preview", title: `Statement ${stored.id}`, data, crumbs };
  },
});

/**
 * Imports the lines of a statement; stored lines are not changed. A statement that was imported before leads to its lines
 * and changes nothing.
 */
export const runImportAction = opsAction({
  name: "bank.import.run",
  path: "/bank/imports/:id/import",
  roles,
  isDangerous: false,
  async run({ sql, settings }, { visitor, params }) {
    const id = idOf(params["id"]);
    const stored = id === null ? null : await findImport(sql, id);
    if (id === null || stored === null) throw new PageError(404, "there is no such statement");
    const read = await readStatement(stored.body, { bank: stored.bank, currencies: settings.BANK_CURRENCIES });
    if (!read.ok) return read;
    const location = `/ops/bank?import=${id}`;
    return sql.begin(async (tx) => {
      if (!(await markImported(tx, id))) {
        const message = `Statement ${id} was imported before. These are its transfers.`;
        return { ok: true, message, location, didNothing: true } as const;
      }
      const lines = read.statement.lines.map(({ line }) => line);
      // entered by who sent the statement: that person must not approve what is in it
      const saved = await saveLines(tx, lines, { by: stored.enteredById, importId: id });
      const count = (is: string) => saved.filter((one) => one.is === is).length;
      const after = {
        added: count("new"),
        lines: saved.flatMap((one) => (one.is === "new" && one.id !== null ? [String(one.id)] : [])),
        duplicates: count("same") + read.statement.repeated.length,
        conflicts: count("other"),
        refused: read.statement.refused.length,
      };
      await appendAudit(tx, auditEntry(visitor, { action: "bank.import.run", target: `bank import ${id}`, after }));
      return { ok: true, message: resultText(after), location } as const;
    });
  },
});

/** The outcome of an import, in the words of its preview. */
function resultText({
  lines,
  duplicates,
  conflicts,
  refused,
}: Record<"duplicates" | "conflicts" | "refused", number> & { lines: readonly string[] }): string {
  const left = [
    [duplicates, "duplicate", "duplicates"],
    [conflicts, "conflict", "conflicts"],
    [refused, "refused row", "refused rows"],
  ] as const;
  const rest = left.flatMap(([n, one, more]) => (n === 0 ? [] : [`${n} ${n === 1 ? one : more}`]));
  return `Imported ${transfersText(lines.length)}.${rest.length === 0 ? "" : ` Left out: ${rest.join(", ")}.`}`;
}

/** `1 transfer`, `12 transfers` */
export function transfersText(count: number): string {
  return count === 1 ? "1 transfer" : `${count} transfers`;
}
