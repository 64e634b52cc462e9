import { LRUCache } from "lru-cache";
import { within } from "../../within.ts";
import { type Figure, figureOf } from "../../frame/figure.ts";
import type { Log } from "../../log.ts";
import { PART_TIMEOUT_MS } from "../loader.ts";
import type { ToDraw } from "./plots.ts";

/** A drawing is cached this long, even if a forecast is scored meanwhile. */
const DRAWN_FOR_MS = 60_000;
const MOST_KEPT = 100;
/** New drawings per minute for all visitors: each is three plots of 20 ms and one statement. */
const VIEWS_PER_MINUTE = 30;

const TOO_MANY = "Too many plots are requested at the moment. Please try again shortly.";
const TOO_SLOW = "The plots could not be drawn in time. Please try again shortly.";

/** The plots to draw, and why some are missing (empty if none is). */
export interface Planned {
  all: readonly ToDraw[];
  missing: string;
}

type Plan = (isAllowed: boolean) => Promise<Planned>;

/** A planned view, and its drawings. */
interface View extends Planned {
  figures: Promise<Figure[]>;
}

/** The plots of a view; without drawings if they are not drawn now. */
export interface Drawn {
  figures: Figure[];
  /** Why some plots are missing; empty if none is. */
  missing: string;
}

/**
 * Draws views for visitors: each at most once a minute, and a limited number per minute, so that visitors without a key
 * cannot keep this process busy. Above the limit, or when drawing takes too long, only the numbers are shown.
 */
export function drawing(log: Log) {
  const kept = new LRUCache<string, Promise<View>>({ max: MOST_KEPT, ttl: DRAWN_FOR_MS });
  let minute = { begun: -Infinity, drawn: 0 };

  function mayDraw(): boolean {
    const now = performance.now();
    if (now - minute.begun > 60_000) minute = { begun: now, drawn: 0 };
    minute.drawn += 1;
    return minute.drawn <= VIEWS_PER_MINUTE;
  }

  async function draw(plan: Plan): Promise<View> {
    const planned = await plan(true);
    if (planned.all.length === 0) minute.drawn -= 1; // nothing is drawn, so it does not count
    const figures = Promise.all(planned.all.map(({ plot, columns, rows }) => figureOf(log, plot, { columns, rows })));
    return { ...planned, figures };
  }

  /** The next request retries a view that failed or is empty. */
  async function forgetFailed(name: string, drawn: Promise<View>): Promise<void> {
    const isGood = await drawn
      .then(async ({ all, missing, figures }) => {
        return all.length > 0 && missing === "" && (await figures).every(({ svg }) => svg !== null);
      })
      .catch(() => false);
    if (!isGood && kept.peek(name) === drawn) kept.delete(name);
  }

  /** `name` identifies the view; `plan` returns the plots if they have to be drawn. */
  return async (name: string, plan: Plan): Promise<Drawn> => {
    const found = kept.get(name);
    if (found !== undefined) return waitFor(await found);
    if (mayDraw()) {
      const drawn = draw(plan);
      kept.set(name, drawn); // before it is planned: those who come meanwhile share it
      void forgetFailed(name, drawn);
      return waitFor(await drawn);
    }
    const { all, missing } = await plan(false);
    return { figures: bare(all), missing: all.length === 0 ? missing : TOO_MANY };
  };
}

async function waitFor({ figures, all, missing }: View): Promise<Drawn> {
  try {
    return { figures: await within(PART_TIMEOUT_MS, "the plots", figures), missing };
  } catch {
    return { figures: bare(all), missing: TOO_SLOW };
  }
}

function bare(all: readonly ToDraw[]): Figure[] {
  return all.map(({ plot, columns, rows }) => ({ title: plot.title, svg: null, columns, rows }));
}
