import type { Parsed } from "./amount.ts";
import type { RawRow } from "./statement-csv.ts";

/**
 * Rows of a statement as XML of ISO 20022 (camt.052, 053 and 054): each booked entry that came in, and where an entry has
 * several transactions, each of them. Only elements and their texts are read: no document type, no entities beyond the
 * five of XML. Debits and what is not booked yet are left out; `skipped` says how many.
 *
 * @example
 * const entry = "<Ntry><Amt Ccy=\"EUR\">10.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><ValDt><Dt>2026-11-20</Dt></ValDt><AcctSvcrRef>A1</AcctSvcrRef><Nm>Ann &amp; Co</Nm></Ntry>";
 * readCamt("<Document>" + entry + "</Document>").value.rows[0].fields.amount; // => "10.00"
 * readCamt("<Document>" + entry.replace("CRDT", "DBIT") + "</Document>").value.skipped; // => 1
 * readCamt("<html></html>").ok; // => false
 */
export function readCamt(text: string): Parsed<{ rows: RawRow[]; skipped: number }> {
  if (/<!(?:DOCTYPE|ENTITY)/i.test(text))
    return { ok: false, problem: "the XML has a document type; a statement has none" };
  const bare = text.replaceAll(/<!--[\s\S]*?-->/g, "").replaceAll(/<(\/?)[\w.-]+:/g, "<$1"); // whatever their namespace is called
  const entries = all(bare, "Ntry");
  if (entries.length === 0)
    return { ok: false, problem: "the XML has no entries (Ntry); expected a statement such as camt.053" };
  const rows: RawRow[] = [];
  let skipped = 0;
  let at = 0;
  for (const entry of entries) {
    const parts = all(entry, "TxDtls");
    const head = without(entry, "NtryDtls");
    for (const part of parts.length === 0 ? [""] : parts) {
      at += 1;
      const status = textOf(inner(head, "Sts"));
      const own = parts.length > 1 ? textOf(inner(without(part, "Chrgs"), "CdtDbtInd")) : "";
      const way = own || textOf(inner(head, "CdtDbtInd"));
      const isReversal = textOf(inner(head, "RvslInd")) === "true";
      if (way !== "CRDT" || isReversal || (status !== "" && status !== "BOOK")) {
        skipped += 1;
        continue;
      }
      rows.push({ at, fields: fieldsOf(head, part, parts.length > 1) });
    }
  }
  return { ok: true, value: { rows, skipped } };
}

function fieldsOf(head: string, part: string, isOneOfSeveral: boolean): Record<string, string> {
  const whole = part === "" ? head : part;
  // of several in one entry the entry's own reference and sum are of all of them; of one, the sum is what was booked, while
  // its details also tell what was sent, before charges and in another currency
  const bare = without(part, "Chrgs");
  const amount = isOneOfSeveral ? amountOf(without(bare, "AmtDtls") + inner(bare, "TxAmt")) : amountOf(head);
  const own = textOf(inner(part, "AcctSvcrRef")) || textOf(inner(part, "TxId")) || textOf(inner(part, "EndToEndId"));
  const entry = textOf(inner(head, "AcctSvcrRef")) || textOf(inner(head, "NtryRef"));
  const day = inner(head, "ValDt") || inner(head, "BookgDt");
  const debtor = inner(whole, "Dbtr") || inner(whole, "UltmtDbtr") || whole;
  const texts = [
    ...all(whole, "Ustrd"),
    ...all(inner(whole, "Strd"), "Ref"),
    ...(part === "" ? [] : all(head, "AddtlNtryInf")),
  ];
  return {
    bankRef: isOneOfSeveral ? [entry, own].filter((one) => one !== "").join(" ") : entry || own,
    valueDate: (textOf(inner(day, "Dt")) || textOf(inner(day, "DtTm"))).slice(0, 10),
    amount: amount?.text ?? "",
    currency: amount?.currency ?? "",
    sender: textOf(inner(debtor, "Nm")),
    remittance: texts.map(textOf).join(" "),
  };
}

/** The amount that an element begins with, before those of its details. */
function amountOf(text: string): { text: string; currency: string } | null {
  const [, currency, amount] = /<Amt\s[^>]*?Ccy="([A-Za-z]{3})"[^>]*>([^<]*)<\/Amt>/.exec(text) ?? [];
  return currency === undefined || amount === undefined ? null : { text: amount.trim(), currency };
}

/** What is inside each element of a name; none of these is ever inside itself. */
function all(text: string, name: string): string[] {
  return text
    .split(new RegExp(`<${name}(?:\\s[^>]*)?>`))
    .slice(1)
    .map((rest) => rest.split(`</${name}>`, 1)[0] ?? "");
}

function inner(text: string, name: string): string {
  return all(text, name)[0] ?? "";
}

/** A text without the elements of a name. */
function without(text: string, name: string): string {
  const [before = "", ...rest] = text.split(new RegExp(`<${name}(?:\\s[^>]*)?>`));
  return before + rest.map((one) => one.split(`</${name}>`).slice(1).join(`</${name}>`)).join("");
}

const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };

function textOf(xml: string): string {
  return xml
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll(
      /&(?:#(\d{1,7})|#x([\da-f]{1,6})|(lt|gt|amp|quot|apos));/gi,
      (whole, decimal: string, hex: string, name: string) => {
        if (name !== undefined) return ENTITIES[name.toLowerCase()] ?? whole;
        const code = Number.parseInt(decimal ?? hex, decimal === undefined ? 16 : 10);
        return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
      },
    )
    .trim();
}
