import { readFileSync } from "node:fs";
import { Readable } from "node:stream";
import path from "node:path";
import { csvReader } from "../../src/cli/import/csv-rows.ts";
import { jsonLinesReader } from "../../src/cli/import/jsonl.ts";
import { PLAIN_FORMAT } from "../../src/cli/import/format.ts";
import { readForm } from "../../src/frame/body.ts";
import { PageError } from "../../src/frame/errors.ts";
import { adapterOf, type AdapterName } from "../../src/houses/adapters/index.ts";
import { parseRetryAfter } from "../../src/houses/polling/retry-after.ts";
import { encodedEtag, namedEtag } from "../../src/http/etag.ts";
import { readUrl } from "../../src/http/url.ts";
import { networkOf } from "../../src/limits/address.ts";
import { parseStatement } from "../../src/topups/bank/statements/parse-statement.ts";
import { queriedOrder, certificates, madeOrder, wrapped } from "../../src/topups/binance-pay/responses.ts";
import { readNotice } from "../../src/topups/binance-pay/notice.ts";
import { reduceResponse } from "../../src/topups/usdt/endpoints/reduce-response.ts";

/** A parser of outside text: what valid texts look like, and what holds for every text. `run` throws where it does not. */
export interface Target {
  name: string;
  seeds: string[];
  run(text: string): void | Promise<void>;
}

const fixture = (name: string) => readFileSync(path.join(import.meta.dirname, "../fixtures", name), "utf8");
const NOW = "2026-11-21T04:00:00Z";

function house(name: AdapterName, seeds: string[], options: object = {}, at?: string): Target {
  const adapter = adapterOf({ adapter: name });
  const feed = adapter.options.parse(options);
  return {
    name: `house ${name}${at === undefined ? "" : ` ${at}`}`,
    seeds,
    run(text) {
      const read = adapter.read(feed, Buffer.from(text), NOW, at === undefined ? {} : { path: at });
      if (!read.ok) return bounded(read.reason, 500);
      for (const item of read.items) {
        if (!item.ok) {
          bounded(item.reason, 500);
          bounded(item.roundId ?? "", 128);
          continue;
        }
        const { roundId, hundredths, rawValue } = item.round;
        bounded(roundId, 128);
        bounded(rawValue, 128);
        if (!Number.isSafeInteger(hundredths) || hundredths < 100) throw new Error(`stored ${hundredths} hundredths`);
      }
    },
  };
}

function statement(name: string, seeds: string[]): Target {
  return {
    name,
    seeds: seeds.map(fixture),
    run(text) {
      const read = parseStatement(text, { bank: "main", currencies: ["EUR", "USD"] });
      if (!read.ok) return;
      for (const { line } of read.statement.lines) {
        bounded(line.bankRef, 100);
        bounded(line.sender, 140);
        bounded(line.remittance, 1_000);
        if (line.amountMinor < 1n || line.amountMinor > 1_000_000_000_000n) throw new Error(`${line.amountMinor}`);
      }
    },
  };
}

/** A text that a column takes. */
function bounded(text: string, most: number): void {
  if (text.length > most) throw new Error(`a text of ${text.length} characters, where ${most} fit`);
  if (text.includes("\0")) throw new Error("a text with a zero byte");
}

const formPart = (disposition: string, content: string) =>
  `--cut\r\ncontent-disposition: form-data; ${disposition}\r\n\r\n${content}\r\n`;
const word = (digit: string) => `0x${digit.repeat(64)}`;
const RPC = {
  token: word("c").slice(0, 42),
  logs: [{ topics: ["", null, [word("d")]], fromBlock: "0x1", toBlock: "0xff" }],
};
const rpcLog = {
  address: RPC.token,
  topics: ["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef", word("e"), word("d")],
  data: word("1"),
  transactionHash: word("a"),
  blockHash: word("b"),
  blockNumber: "0x7",
  logIndex: "0x3",
};
const rpcReceipt = { ...rpcLog, status: "0x1", logs: [rpcLog, { ...rpcLog, topics: [] }] };
const rpcSeeds = [[rpcLog, rpcLog], rpcReceipt, { number: "0x7", timestamp: "0x6553f100" }, "0x1"]
  .map((result) => JSON.stringify({ jsonrpc: "2.0", id: 1, result }))
  .concat('{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"too many blocks"}}');
const order = { prepayId: "29383937493038367292", merchantTradeNo: "RH1", status: "PAID", currency: "USDT" };

/** Every parser of text that somebody outside writes. */
export const TARGETS: readonly Target[] = [
  house("blaze", [fixture("blaze/recent.json"), fixture("blaze/history.json")]),
  house("stake", [fixture("stake/list.json"), fixture("stake/errors.json")]),
  house("bcgame", [fixture("bcgame/history.json"), fixture("bcgame/refused.json")]),
  house("roobet", [fixture("roobet/recent.json")]),
  house("lucky-jet", [fixture("lucky-jet/history.json")]),
  house("bustabit", [fixture("bustabit/12639999.html")], { first_round_id: 5 }, "/game/12639999"),
  house("ethercrash", [fixture("ethercrash/7217785.html")], {}, "/game/7217785"),
  house("ethercrash", [fixture("ethercrash/play.html")], {}, "/play"),
  house("ethcrash-io", [fixture("ethcrash-io/88889.json")], { first_round_id: 5 }, "/game/88889.json"),
  house("json", ['{"rounds":[{"id":1,"multiplier":1.10,"at":"2026-11-21T03:00:00Z"}]}'], {
    path: "/rounds",
    items: "rounds",
    round_id: "id",
    multiplier: "multiplier",
    occurred_at: "at",
  }),
  {
    name: "import CSV",
    seeds: [
      fixture("replay/json.csv").slice(0, 2_000),
      'round_id,multiplier\n1,"1,5"\n2,"a\nb"\n',
      'round_id,multiplier\n1,"1\r\r\r\n2,"3\n',
    ],
    run(text) {
      const [first = "", ...lines] = text.split("\n");
      // a header without the columns is refused by an error, which the command shows
      const reader = withoutRefusal(() => csvReader({ line: 1, text: first }));
      reader?.read(lines.map((one, at) => ({ line: at + 2, text: one })));
      reader?.end();
    },
  },
  {
    name: "import JSON lines",
    seeds: ['{"round_id":1,"multiplier":1.10}\n{"round_id":"2","multiplier":"2","occurred_at":null}'],
    run: (text) =>
      void jsonLinesReader(PLAIN_FORMAT).read(text.split("\n").map((one, at) => ({ line: at + 1, text: one }))),
  },
  statement("bank CSV", ["bank/semicolons.csv"]),
  statement("bank camt", ["bank/camt054-prefixed.xml", "bank/camt053-two-accounts.xml"]),
  {
    name: "notices and responses of the payment app",
    seeds: [
      '{"bizType":"PAY","data":"{}","bizIdStr":"29383937493038367292","bizId":2938,"bizStatus":"PAY_SUCCESS"}',
      JSON.stringify({ status: "SUCCESS", code: "000000", data: { ...order, orderAmount: "25.17" } }),
    ],
    run(text) {
      readNotice(Buffer.from(text));
      const json = withoutRefusal(() => JSON.parse(text) as unknown);
      const data = wrapped.safeParse(json).data?.data ?? json;
      const made = madeOrder.safeParse(data);
      if (made.success) new Date(made.data.expireTime).toISOString();
      const asked = queriedOrder.safeParse(data);
      if (asked.success) for (const value of Object.values(asked.data)) bounded(value, 64);
      certificates.safeParse(data);
    },
  },
  {
    name: "multipart forms",
    seeds: [
      formPart('name="reason"', "bank day") + formPart('name="statement"; filename="a.csv"', "a;b\n") + "--cut--\r\n",
    ],
    async run(text) {
      const headers = { "content-type": "multipart/form-data; boundary=cut" };
      const request = Object.assign(Readable.from([Buffer.from(text)]), { headers });
      try {
        const form = await readForm(request, { field: "statement", maxBytes: 1_048_576 });
        for (const value of Object.values(form).flat()) bounded(value, text.length);
      } catch (error) {
        if (!(error instanceof PageError)) throw error;
      }
    },
  },
  {
    name: "RPC",
    seeds: rpcSeeds,
    run(text) {
      for (const method of ["eth_getLogs", "eth_getTransactionReceipt", "eth_getBlockByNumber", "eth_chainId"]) {
        const request = { method, params: RPC.logs, token: RPC.token };
        // a response that is refused is the endpoint's fault
        const left = withoutRefusal(() => reduceResponse(request, Buffer.from(text)));
        if (left !== undefined && left.length > text.length + 1_000)
          throw new Error(`${left.length} characters are left`);
      }
    },
  },
  {
    name: "headers and URLs",
    seeds: ['"abc", W/"def-br", *', "Tue, 17 Mar 2026 15:12:30 GMT", "/api/v1/rounds?house=a%20b&limit=5", "[::1]:80"],
    run(text) {
      const line = text.slice(0, 16_384);
      const named = namedEtag(line, '"abc"');
      if (named !== null && !["br", "gzip", null].some((coding) => named === encodedEtag('"abc"', coding as null)))
        throw new Error(`named ${named}`);
      const wait = parseRetryAfter(line, line, 0);
      if (wait !== null && !(wait >= 1_000 && wait <= 900_000)) throw new Error(`a wait of ${wait} ms`);
      bounded(readUrl(line).loggedPath.replaceAll("\0", ""), 200);
      bounded(networkOf(line.slice(0, 100)), 100);
    },
  },
];

/** Undefined where a text is refused by an error, as documented; a fault of ours is thrown on. */
function withoutRefusal<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) throw error;
    return undefined;
  }
}
