import { z } from "zod";
import { isLoopback } from "../this-machine.ts";

/** The payment app's address, from its public specification. */
const API = "https://bpay.binanceapi.com";

/** The variables of Binance Pay. It is offered if key and secret are set. */
export const binancePayVariables = {
  BINANCE_PAY_URL: z
    .string()
    .default(API)
    .refine(isSafe, { error: "expected a URL that begins with https://, or http:// for this machine alone" })
    .transform((text) => text.replace(/\/+$/, "")),
  BINANCE_PAY_KEY: z.string().trim().min(8, "expected the API key of the merchant, at least 8 characters").optional(),
  BINANCE_PAY_SECRET: z
    .string()
    .trim()
    .min(16, "expected the API secret of the merchant, at least 16 characters")
    .optional(),
};

const variables = z.object(binancePayVariables);
/** The parsed variables. */
export type BinancePaySettings = z.infer<typeof variables>;

/** The access to the payment app. */
export interface BinancePay {
  /** Without a trailing slash. */
  url: string;
  key: string;
  secret: string;
}

/** Returns the payment app's settings; null if it is not configured. */
export function binancePayOf(given: BinancePaySettings): BinancePay | null {
  const { BINANCE_PAY_URL: url, BINANCE_PAY_KEY: key, BINANCE_PAY_SECRET: secret } = given;
  return key === undefined || secret === undefined ? null : { url, key, secret };
}

function isSafe(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return protocol === "https:" || (protocol === "http:" && isLoopback(hostname));
}
