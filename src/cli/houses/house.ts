import { Command } from "commander";
import { askHouseNow, startHouse, stopHouse } from "../../houses/polling/control-store.ts";
import { readHouses } from "../../health/house-facts-store.ts";
import { statusOf } from "../../houses/status.ts";
import { examples, houseId, someText } from "../arguments.ts";
import { decisionCommand, type Given } from "../decision.ts";
import { checkHouse, type TableCheck } from "./house-check.ts";
import { listCommand } from "../list-command.ts";
import { coloredStatus, paint, print, printJson, printTable, shortTime, snakeKeys } from "../output.ts";
import { findServers } from "../session.ts";

const SHOWN_ROUNDS = 5;

/** `roundhouse house …`: the polled houses, their health, and pausing one. */
export function houseCommand(): Command {
  const command = new Command("house")
    .description("the houses that are polled")
    .addHelpText("after", examples("house list", "house check bustabit --explain"));
  addList(command);
  addCheck(command);
  addPause(command);
  addResume(command);
  addProbe(command);
  return command;
}

function addList(command: Command): void {
  listCommand(command, {
    description: "list houses: whether they are live, their last response and last error",
    examples: ["house list", "house list --json"],
    async read({ sql, settings }) {
      const houses = await readHouses(sql);
      return houses.map((house) => ({ ...house, status: statusOf(house, settings.LIVE_WINDOW_SECONDS * 1_000) }));
    },
    columns: [
      ["house", ({ id, simulated }) => (simulated ? `${id} (simulated)` : id)],
      ["status", (house) => coloredStatus(house.status)],
      ["last ok", (house) => shortTime(house.lastOkAt)],
      ["last status", (house) => house.lastStatus],
      ["circuit", (house) => house.circuit],
      ["next poll", (house) => shortTime(house.nextPollAt)],
      ["last error", (house) => house.pauseReason ?? house.lastError],
    ],
    toJson({ id, name, simulated, status, ...house }) {
      const { lastOkAt, lastStatus, lastError, lastErrorAt, circuit, nextPollAt, pauseReason } = house;
      const polls = { lastOkAt, lastStatus, lastError, lastErrorAt, circuit, nextPollAt, pauseReason };
      return { house: id, name, simulated, status, ...snakeKeys(polls) };
    },
  });
}

function addCheck(command: Command): void {
  command
    .command("check")
    .description("request a house once and read its responses; nothing is stored")
    .argument("<id>", "the house, from the houses file or the database", houseId)
    .option("--explain", "show requests, headers (secrets replaced) and items", false)
    .option("--json", "print a JSON object", false)
    .addHelpText("after", examples("house check bustabit", "house check bustabit --explain"))
    .action(async (id: string, { explain, json }: { explain: boolean; json: boolean }) => {
      const tables = await checkHouse(await findServers(), id);
      const ok = tables.every((table) => table.ok);
      if (json) await printJson({ house: id, ok, tables: tables.map((table) => forPrograms(table, explain)) });
      else for (const table of tables) await showCheck(table, explain);
      if (!ok) process.exitCode = 1;
    });
}

function addPause(command: Command): void {
  const pause = command
    .command("pause")
    .description("stop polling a house until it is resumed; its tables are shown as paused")
    .argument("<id>", "the house", houseId)
    .requiredOption("--reason <text>", "the reason, shown to staff", someText)
    .addHelpText("after", examples('house pause bustabit --reason "they asked us to wait"'));
  decisionCommand(pause, {
    action: "house.pause",
    isPublished: true,
    decide: (tx, { subject: house, by, reason }: Given<string>) => stopHouse(tx, { house, by, reason }),
    json: (_, { subject: house, reason }) => ({ house, paused: true, reason }),
  });
}

function addResume(command: Command): void {
  const resume = command
    .command("resume")
    .description("poll a paused house again")
    .argument("<id>", "the house", houseId)
    .addHelpText("after", examples('house resume bustabit --reason "they are back"'));
  decisionCommand(resume, {
    action: "house.resume",
    isPublished: true,
    decide: (tx, { subject: house }: Given<string>) => startHouse(tx, { house }),
    json: (_, { subject: house, reason }) => ({ house, paused: false, reason }),
  });
}

function addProbe(command: Command): void {
  const probe = command
    .command("probe")
    .description("request a house at its next poll although its circuit is open")
    .argument("<id>", "the house", houseId)
    .option("--close", "also close the circuit and reset its failures", false)
    .addHelpText("after", examples('house probe bustabit --reason "they say they are back"'));
  decisionCommand(probe, {
    decide: (tx, { subject: house, close }: Given<string, { close: boolean }>) =>
      askHouseNow(tx, { house, forget: close }),
    action: ({ close }) => (close ? "house.close-circuit" : "house.probe"),
    isPublished: true,
    json: (_, { subject: house, close, reason }) => ({ house, closed: close, reason }),
  });
}

async function showCheck(check: TableCheck, explain: boolean): Promise<void> {
  const { table, ok, status, elapsed_ms, reason, items, rounds, refused } = check;
  const outcome = ok ? `${items} items, ${rounds.length} rounds, ${refused.length} refused` : reason;
  await print(`${ok ? paint.green("ok") : paint.red("failed")}  ${table}  ${status} in ${elapsed_ms} ms: ${outcome}`);
  if (explain) await showExchange(check);
  if (rounds.length > 0) {
    const shown = explain ? rounds : rounds.slice(0, SHOWN_ROUNDS);
    await printTable(
      ["  round", "multiplier", "color", "occurred at"],
      shown.map((round) => [`  ${round.round_id}`, round.multiplier.toFixed(2), round.color, round.occurred_at]),
    );
    if (shown.length < rounds.length) await print(`  and ${rounds.length - shown.length} more`);
  }
  for (const item of refused) {
    await print(`  refused ${item.round_id ?? "an item without id"}: ${item.reason}`);
    if (explain) await print(`    ${JSON.stringify(item.item)}`);
  }
}

async function showExchange({ exchange, status, elapsed_ms }: TableCheck): Promise<void> {
  const headers = (from: Record<string, string>, mark: string) =>
    Object.entries(from).map(([name, value]) => `  ${mark} ${name}: ${value}`);
  const body = exchange.request_body === null ? [] : [`  > ${exchange.request_body}`];
  const size = exchange.bytes === null ? [] : [`  < ${exchange.bytes} bytes`];
  await print(
    [
      `  > ${exchange.method} ${exchange.url}`,
      ...headers(exchange.request_headers, ">"),
      ...body,
      `  < ${status} in ${elapsed_ms} ms`,
      ...headers(exchange.response_headers, "<"),
      ...size,
    ].join("\n"),
  );
}

function forPrograms({ exchange, ...check }: TableCheck, explain: boolean): object {
  return explain ? { ...check, exchange } : { ...check, rounds: check.rounds.slice(0, SHOWN_ROUNDS) };
}
