import { thousands, usd, usdCents } from "../../money.ts";
import { escape } from "./escape.ts";
import { highlight } from "./highlight.ts";
import { grouped } from "../nav.ts";
import { prose } from "./prose.ts";
import { sparkline } from "./sparkline.ts";

/**
 * Formatters for templates, so that a time, a share or a sort link looks the same on every page.
 *
 * Those that return HTML escape their input, and are written with `<%~ %>`; the others with `<%= %>`.
 */

const NUMBERS = new Intl.NumberFormat("en-US", { maximumFractionDigits: 3 });
const DASH = '<span class="quiet">–</span>';
/** A hyphen before a digit that no letter, digit or hyphen precedes: the sign of a number, not part of a name or a date. */
const SIGN = /(?<![\p{L}\d-])-(?=\d)/gu;
const BYTE_UNITS = ["B", "kB", "MB", "GB", "TB"];

/** The meaning of a fact as a color; the text has the same meaning without it. */
export type Tone = "good" | "warn" | "bad" | "info" | "quiet";

/** Changes to the URL's parameters: null removes one. */
export type Changes = Readonly<Record<string, string | number | boolean | null>>;

/** The visible part of a list; pages are counted from 1. */
export interface Paging {
  page: number;
  perPage: number;
  total: number | bigint;
}

/** The helpers of one response. */
export type Helpers = ReturnType<typeof helpersFor>;

/**
 * Formats a length of time in its two largest units.
 *
 * @example
 * duration(0.2); // => "0 s"
 * duration(59); // => "59 s"
 * duration(90); // => "1 min 30 s"
 * duration(3_600); // => "1 h"
 * duration(200_000); // => "2 d 7 h"
 */
export function duration(seconds: number): string {
  let left = Math.max(0, Math.floor(seconds));
  if (left < 60) return `${left} s`;
  const parts: string[] = [];
  for (const [unit, size] of [
    ["d", 86_400],
    ["h", 3_600],
    ["min", 60],
    ["s", 1],
  ] as const) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0) parts.push(`${count} ${unit}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}

/**
 * Formats parts per million as a percentage.
 *
 * @example
 * percent(517_000); // => "51.7 %"
 * percent(811_376, 3); // => "81.138 %"
 */
export function percent(ppm: number | bigint, digits = 1): string {
  return `${(Number(ppm) / 10_000).toFixed(digits)} %`;
}

/**
 * Formats a number of bytes in decimal units.
 *
 * @example
 * bytes(999); // => "999 B"
 * bytes(1_234_567); // => "1.2 MB"
 */
export function bytes(count: number | bigint): string {
  let size = Number(count);
  let unit = 0;
  while (size >= 1_000 && unit < BYTE_UNITS.length - 1) {
    size /= 1_000;
    unit += 1;
  }
  return `${unit === 0 ? size : size.toFixed(1)} ${BYTE_UNITS[unit] ?? ""}`;
}

/** Formats a number with thousands separators. */
export function number(value: number | bigint): string {
  return NUMBERS.format(value);
}

/**
 * Replaces the hyphen before each negative number by a minus sign, which is as wide as a plus.
 *
 * @example
 * minus("-1.5 % to 2 %"); // => "−1.5 % to 2 %"
 * minus("k7@1-72 of 2026-11-21"); // => "k7@1-72 of 2026-11-21"
 */
export function minus(text: string): string {
  return text.replaceAll(SIGN, "−");
}

/** Formats a time: `2026-11-21 04:00:12Z`. */
export function timeText(at: Date): string {
  return `${at.toISOString().slice(0, 19).replace("T", " ")}Z`;
}

/**
 * Makes the helpers of one response. Ages are relative to `now`; links of a list keep the parameters of `url`, such as
 * `/ops/audit?page=2`.
 */
export function helpersFor({ now, url }: { now: Date; url: string }) {
  const asDate = (at: Date | string) => (typeof at === "string" ? new Date(at) : at);
  const element = (at: Date, text: string) =>
    `<time datetime="${at.toISOString()}" title="${timeText(at)}">${escape(text)}</time>`;
  const [path = "", search = ""] = url.split("?");

  /** The URL of this page with some parameters changed. Any change but that of the page number returns to page 1. */
  function link(changes: Changes): string {
    const query = new URLSearchParams(search);
    if (!("page" in changes)) query.delete("page");
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === "") query.delete(name);
      else query.set(name, String(value));
    }
    const text = query.toString();
    return text === "" ? path : `${path}?${text}`;
  }

  return {
    escape,
    grouped,
    highlight,
    sparkline,
    duration,
    percent,
    bytes,
    number,
    timeText,
    attributes,
    money,
    exactMoney,
    badge,
    orDash,
    minus,
    unbroken,
    sentence,
    prose,
    thousands,
    link,
    sortHead: (name: string, label: string, head: SortHead) => sortHead(link, name, label, head),
    pager: (paging: Paging) => pager(link, paging),
    /** A parameter of this page; empty if absent. */
    param: (name: string) => new URLSearchParams(search).get(name) ?? "",
    /** HTML: a time in UTC; a dash for null. */
    time(at: Date | string | null | undefined): string {
      if (at === null || at === undefined) return DASH;
      return element(asDate(at), timeText(asDate(at)));
    },
    /** HTML: how long ago (or ahead) a time is; a dash for null. */
    age(at: Date | string | null | undefined): string {
      if (at === null || at === undefined) return DASH;
      const date = asDate(at);
      const seconds = (now.getTime() - date.getTime()) / 1_000;
      const text = seconds <= -1 ? `in ${duration(-seconds)}` : `${duration(seconds)} ago`;
      return `<time datetime="${date.toISOString()}" title="${timeText(date)}" data-age="${Math.round(seconds)}">${text}</time>`;
    },
  };
}

type Link = (changes: Changes) => string;

/** HTML: attributes of an element; undefined ones are left out. */
function attributes(values: Readonly<Record<string, string | number | undefined>>): string {
  return Object.entries(values)
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([name, value]) => ` ${name}="${escape(String(value))}"`)
    .join("");
}

/** HTML: an amount of 1e-6 USD in cents, with the exact amount as its title if it has more digits. */
function money(micros: bigint): string {
  const isExact = micros % 10_000n === 0n;
  const cents = minus(usdCents(micros));
  return isExact ? cents : `<span title="${exactMoney(micros)} USD">${cents}</span>`;
}

/** An amount of 1e-6 USD with all its digits: what is charged is stated exactly. */
function exactMoney(micros: bigint): string {
  return minus(thousands(usd(micros)));
}

/**
 * A text as a sentence: with a capital letter and a full stop.
 *
 * @example
 * sentence("3 rounds are missing; trying to fetch them"); // => "3 rounds are missing; trying to fetch them."
 * sentence("it is stored."); // => "It is stored."
 */
export function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

/**
 * HTML: a text in which names such as `demo-simulated/comet/turbo` break after a slash and never at a hyphen.
 *
 * @example
 * unbroken("demo-x/comet/turbo"); // => '<span class="nowrap">demo-x/</span><wbr>comet/<wbr>turbo'
 * unbroken("bustabit/crash/global"); // => "bustabit/crash/global"
 * unbroken("two-factor sign-in"); // => "two-factor sign-in"
 */
export function unbroken(text: string): string {
  const whole = (part: string) => (part.includes("-") ? `<span class="nowrap">${escape(part)}</span>` : escape(part));
  return text
    .split(" ")
    .map((word) =>
      word.includes("-") && word.includes("/")
        ? word
            .split(/(?<=\/)/)
            .map(whole)
            .join("<wbr>")
        : escape(word),
    )
    .join(" ");
}

/** HTML: a text with a color mark. */
function badge(text: string, tone: Tone = "quiet"): string {
  return `<span class="badge ${escape(tone)}">${escape(text)}</span>`;
}

/** HTML: a text, or a dash if there is none. */
function orDash(text: string | number | bigint | null | undefined): string {
  return text === null || text === undefined || text === "" ? DASH : escape(String(text));
}

/**
 * HTML: a column head with a sort link (`sort=name`, then `sort=-name`). `first` is the order of the first click.
 */
function sortHead(
  link: Link,
  name: string,
  label: string,
  { sort, first = "up", numeric = false, classes = "" }: SortHead,
): string {
  const isUp = sort === name;
  const isDown = sort === `-${name}`;
  const next = isUp ? `-${name}` : isDown ? name : first === "up" ? name : `-${name}`;
  const state = isUp ? ' aria-sort="ascending"' : isDown ? ' aria-sort="descending"' : "";
  const mark = isUp ? '<span class="sort up"></span>' : isDown ? '<span class="sort"></span>' : "";
  const classNames = `${numeric ? "num" : ""} ${classes}`.trim();
  return `<th scope="col"${classNames === "" ? "" : ` class="${escape(classNames)}"`}${state}><a href="${escape(link({ sort: next }))}">${escape(label)}</a>${mark}</th>`;
}

/** HTML: links to the other pages of a list, and the total. */
function pager(link: Link, { page, perPage, total }: Paging): string {
  const pages = Math.max(1, Math.ceil(Number(total) / perPage));
  const from = Math.min(Number(total), (page - 1) * perPage + 1);
  const to = Math.min(Number(total), page * perPage);
  const step = (at: number, label: string, rel: string) =>
    at < 1 || at > pages
      ? `<span class="off">${label}</span>`
      : `<a rel="${rel}" href="${escape(link({ page: at === 1 ? null : at }))}">${label}</a>`;
  const range =
    page > pages
      ? `none on page ${page}, ${number(total)} in all`
      : `${number(from)}–${number(to)} of ${number(total)}`;
  if (pages === 1 && page === 1) return Number(total) === 0 ? "" : `<p class="pager"><span>${range}</span></p>`;
  return `<nav class="pager" aria-label="pages">${step(Math.min(page - 1, pages), "Previous", "prev")} <span>${range}</span> ${step(page + 1, "Next", "next")}</nav>`;
}

interface SortHead {
  /** The current sort order. */
  sort: string;
  first?: "up" | "down";
  numeric?: boolean;
  /** Such as its priority: `low`. */
  classes?: string;
}
