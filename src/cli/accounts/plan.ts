import { Command, InvalidArgumentError } from "commander";
import { listPlanSettings, type PlanChanges, type PlanSettings, setPlan } from "../../callers/plan-store.ts";
import { nested } from "../../db/nested.ts";
import { UsageError } from "../../errors.ts";
import { parseUsd } from "../../money.ts";
import { commaList, examples, wholeNumber, someText } from "../arguments.ts";
import { type Columns, listCommand, printColumns } from "../list-command.ts";
import { printJson } from "../output.ts";
import { decide } from "../decision.ts";
import { withDatabase } from "../session.ts";

/** `roundhouse plan …`: the plans that callers can buy, and changes of them while callers are connected. */
export function planCommand(): Command {
  const command = new Command("plan")
    .description("plans: which houses they include and how many calls")
    .addHelpText("after", examples("plan list", "plan set Pro --day 200000"));
  addList(command);
  addSet(command);
  return command;
}

function addList(command: Command): void {
  listCommand(command, {
    description: "all plans",
    examples: ["plan list"],
    read: ({ sql }) => listPlanSettings(sql),
    columns: COLUMNS,
  });
}

function addSet(command: Command): void {
  command
    .command("set")
    .description("change a plan, also for accounts that have it; effective within seconds, without a restart")
    .argument("<name>", "the plan")
    .option("--houses <ids>", "the houses it includes, with a comma between, or all", housesOrAll)
    .option("--day <calls>", "calls per UTC day, or none for no limit", numberOrNone)
    .option("--month <calls>", "calls a UTC month, or none for no limit", numberOrNone)
    .option(
      "--ceiling <calls>",
      "calls per UTC day that protect the service if the plan has no limit; not shown to callers",
      numberOrNone,
    )
    .option("--rps <calls>", "sustained calls per second", wholeNumber(1))
    .option("--burst <calls>", "the most calls in one burst", wholeNumber(1))
    .option("--price <usd>", "price in USD", price)
    .option("--days <days>", "days that a purchase lasts", wholeNumber(1))
    .option("--on-sale <yes|no>", "whether it may be bought; those who have it keep it to its end", yesOrNo)
    .option("--reason <text>", "why, for the audit log", someText)
    .option("--json", "print a JSON object", false)
    .addHelpText(
      "after",
      examples(
        "plan set Pro --day 200000 --rps 20 --burst 40",
        "plan set Starter --houses bustabit",
        "plan set Max --on-sale no",
      ),
    )
    .action((name: string, { json, reason, price: priceMicros, ...changes }: GivenChanges) => {
      if (Object.keys(changes).length === 0 && priceMicros === undefined) {
        throw new UsageError("expected at least one thing to change; `roundhouse plan set --help` lists them");
      }
      return withDatabase(async (session) => {
        const { day, month, ceiling } = changes;
        const limits = { day: limitOf(day), month: limitOf(month), ceiling: limitOf(ceiling) };
        const { after } = await decide(session, { action: "plan.set", reason }, (tx) =>
          setPlan(nested(tx), name, { ...changes, ...limits, priceMicros }),
        );
        return json ? printJson(after) : printColumns(COLUMNS, [after]);
      });
    });
}

interface GivenChanges extends Omit<PlanChanges, "day" | "month" | "ceiling" | "priceMicros"> {
  day?: number | "none";
  month?: number | "none";
  ceiling?: number | "none";
  price?: bigint;
  reason?: string;
  json: boolean;
}

/** commander treats null as "not given", so "no limit" stays a word until here. */
function limitOf(given: number | "none" | undefined): number | null | undefined {
  return given === "none" ? null : given;
}

const COLUMNS: Columns<PlanSettings> = [
  ["plan", (plan) => plan.name],
  ["houses", (plan) => plan.houses?.join(", ") ?? "all"],
  ["calls a day", (plan) => plan.day_limit ?? "no limit"],
  ["calls a month", (plan) => plan.month_limit ?? "no limit"],
  ["ceiling a day", (plan) => plan.day_ceiling ?? "none"],
  ["per second", (plan) => plan.burst_per_second],
  ["burst", (plan) => plan.burst],
  ["USD", (plan) => plan.price],
  ["days", (plan) => plan.days],
  ["on sale", (plan) => (plan.on_sale ? "yes" : "no")],
];

function housesOrAll(text: string): string[] | "all" {
  return text === "all" ? "all" : commaList(text);
}

function numberOrNone(text: string): number | "none" {
  if (text === "none") return text;
  if (/^\d+$/.test(text)) return wholeNumber(1)(text);
  throw new InvalidArgumentError("expected a whole number from 1, or none.");
}

function yesOrNo(text: string): boolean {
  if (text === "yes" || text === "no") return text === "yes";
  throw new InvalidArgumentError("expected yes or no.");
}

function price(text: string): bigint {
  const micros = parseUsd(text);
  if (micros !== null) return micros;
  throw new InvalidArgumentError("expected an amount such as 29 or 29.90.");
}
