import type { Parsed } from "./amount.ts";
import type { RawRow } from "./statement-csv.ts";
import { elementsAt, parseXml, textAt, type XmlElement } from "./xml.ts";

/** Each message's element and the elements that list entries: camt.052, camt.053, camt.054. */
const MESSAGES = [
  ["BkToCstmrAcctRpt", "Rpt"],
  ["BkToCstmrStmt", "Stmt"],
  ["BkToCstmrDbtCdtNtfctn", "Ntfctn"],
] as const;
/** What banks write if there is no reference. */
const NO_REFERENCE = ["NOTPROVIDED", "NONREF"];

/**
 * Reads the booked credits of an ISO 20022 message (camt.052, 053 or 054, any version and prefix). An entry with
 * several transactions gives one row for each. `skipped` counts debits, reversals and entries that are not booked.
 *
 * A row's bank reference is one that a bank gave to the entry or the transaction. Without one it is the number of the
 * entry with the id of its statement, since many banks count the entries of each file from 1, and what the payer chose.
 *
 * @example
 * const entry = "<Ntry><Amt Ccy='EUR'>10.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts><AcctSvcrRef>A1</AcctSvcrRef></Ntry>";
 * const camt = "<Document><BkToCstmrStmt><Stmt>" + entry + "</Stmt></BkToCstmrStmt></Document>";
 * readCamt(camt).value.rows[0].fields.amount; // => "10.00"
 * readCamt(camt.replace("CRDT", "DBIT")).value.skipped; // => 1
 * readCamt("<html></html>").problem; // => "expected a statement with entries (camt.052, camt.053 or camt.054), got <html>"
 */
export function readCamt(text: string): Parsed<{ rows: RawRow[]; skipped: number }> {
  const xml = parseXml(text);
  if (!xml.ok) return xml;
  const statements = documentsOf(xml.value).flatMap((document) =>
    MESSAGES.flatMap((path) => elementsAt(document, ...path)),
  );
  const entries = statements.flatMap((statement) => {
    const id = referenceAt(statement, "Id");
    return elementsAt(statement, "Ntry").map((entry) => ({ entry, number: numberOf(entry, id) }));
  });
  if (entries.length === 0) {
    const problem = `expected a statement with entries (camt.052, camt.053 or camt.054), got <${xml.value.name.slice(0, 40)}>`;
    return { ok: false, problem };
  }
  const rows: RawRow[] = [];
  let skipped = 0;
  let at = 0;
  for (const { entry, number } of entries) {
    const parts = elementsAt(entry, "NtryDtls", "TxDtls");
    const isBatch = parts.length > 1;
    for (const part of parts.length === 0 ? [null] : parts) {
      at += 1;
      if (isBookedCredit(entry, isBatch ? part : null)) {
        rows.push({ at, ...rowOf({ entry, number }, part, isBatch) });
      } else skipped += 1;
    }
  }
  return { ok: true, value: { rows, skipped } };
}

/** Banks may wrap the document in an envelope with a header. */
function documentsOf(element: XmlElement): XmlElement[] {
  return element.name === "Document" ? [element] : element.children.flatMap(documentsOf);
}

function isBookedCredit(entry: XmlElement, part: XmlElement | null): boolean {
  const direction = (part !== null && textAt(part, "CdtDbtInd")) || textAt(entry, "CdtDbtInd");
  // a code up to version 7, a choice of two elements from version 8
  const status = textAt(entry, "Sts") || textAt(entry, "Sts", "Cd") || textAt(entry, "Sts", "Prtry");
  const isReversal = ["true", "1"].includes(textAt(entry, "RvslInd"));
  return direction === "CRDT" && !isReversal && (status === "" || status === "BOOK");
}

/** An entry, and its number within its statement with the id of that; empty if either is missing. */
interface Entry {
  entry: XmlElement;
  number: string;
}

function rowOf({ entry, number }: Entry, part: XmlElement | null, isBatch: boolean): Omit<RawRow, "at"> {
  const booked = elementsAt(entry, "Amt")[0];
  const currency = booked?.attributes["Ccy"] ?? "";
  // A batch is booked as one sum. For a single transaction the booked amount counts: its details also contain the
  // amount before charges and in the payer's currency.
  const amount = isBatch && part !== null ? amountOf(part, currency) : (booked?.text.trim() ?? "");
  const ownRef = part === null ? "" : referenceOf(part, ["AcctSvcrRef", "TxId", "EndToEndId", "UETR", "InstrId"]);
  const ownBankRef = part === null ? "" : referenceOf(part, ["AcctSvcrRef", "TxId", "UETR"]);
  const entryRef = referenceAt(entry, "AcctSvcrRef");
  const texts = [
    ...(part === null ? [] : elementsAt(part, "RmtInf", "Ustrd")),
    ...(part === null ? [] : elementsAt(part, "RmtInf", "Strd", "CdtrRefInf", "Ref")),
    ...elementsAt(entry, "AddtlNtryInf"),
  ];
  const fields = {
    bankRef: (isBatch ? joined(entryRef, entryRef && ownRef) : entryRef) || ownBankRef || joined(number, ownRef),
    valueDate: (dateAt(entry, "ValDt") || dateAt(entry, "BookgDt")).slice(0, 10),
    amount: amount ?? "",
    currency,
    sender: part === null ? "" : senderOf(part),
    remittance: texts.map(({ text }) => text.trim()).join(" "),
  };
  const isBankRef = isBatch
    ? ownBankRef !== "" && (entryRef === "" || ownRef === ownBankRef)
    : [entryRef, ownBankRef, number].some((ref) => ref !== "");
  if (amount !== undefined) return { fields, isBankRef };
  const problem = `expected an amount in ${currency}, the currency of the entry, in each transaction of it; enter this line manually`;
  return { fields, isBankRef, problem };
}

/** The amount of one transaction of a batch in the currency of the batch. */
function amountOf(part: XmlElement, currency: string): string | undefined {
  return [
    ...elementsAt(part, "Amt"),
    ...elementsAt(part, "AmtDtls", "TxAmt", "Amt"),
    ...elementsAt(part, "AmtDtls", "CntrValAmt", "Amt"),
  ]
    .find(({ attributes }) => attributes["Ccy"] === currency)
    ?.text.trim();
}

function joined(...refs: readonly string[]): string {
  return refs.filter((ref) => ref !== "").join(" ");
}

/** The first of these references that the transaction has. */
function referenceOf(part: XmlElement, names: readonly string[]): string {
  return names.map((name) => referenceAt(part, "Refs", name)).find((ref) => ref !== "") ?? "";
}

function numberOf(entry: XmlElement, statementId: string): string {
  const number = referenceAt(entry, "NtryRef");
  return number === "" || statementId === "" ? "" : joined(statementId, number);
}

/** A reference; empty if there is none, or a text that states so. */
function referenceAt(element: XmlElement, ...path: string[]): string {
  const ref = textAt(element, ...path);
  return NO_REFERENCE.includes(ref) ? "" : ref;
}

function dateAt(entry: XmlElement, name: string): string {
  return textAt(entry, name, "Dt") || textAt(entry, name, "DtTm");
}

/** The payer's name. From version 8 a payer is a party or a bank, one level deeper. */
function senderOf(part: XmlElement): string {
  const parties = ["Dbtr", "UltmtDbtr"].flatMap((name) => elementsAt(part, "RltdPties", name));
  const names = parties.flatMap((party) => [
    textAt(party, "Nm"),
    textAt(party, "Pty", "Nm"),
    textAt(party, "Agt", "FinInstnId", "Nm"),
  ]);
  return [...names, textAt(part, "RltdPties", "DbtrAcct", "Nm")].find((name) => name !== "") ?? "";
}
