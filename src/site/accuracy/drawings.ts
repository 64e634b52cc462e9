import { within } from "../../http/within.ts";
import { type Figure, figureOf } from "../../frame/figure.ts";
import type { Log } from "../../log.ts";
import { timedCache } from "../timed-cache.ts";
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

/** A finished or pending drawing. */
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
  const kept = timedCache<View>({ forMs: DRAWN_FOR_MS, most: MOST_KEPT });
  let minute = { begun: -Infinity, drawn: 0 };

  function mayDraw(): boolean {
    const now = performance.now();
    if (now - minute.begun > 60_000) minute = { begun: now, drawn: 0 };
    minute.drawn += 1;
    return minute.drawn <= VIEWS_PER_MINUTE;
  }

  function draw(name: string, planned: Planned): View {
    const { all } = planned;
    const figures = Promise.all(all.map(({ plot, columns, rows }) => figureOf(log, plot, { columns, rows })));
    const view = kept.keep(name, { ...planned, figures });
    void forgetFailed(name, view);
    return view;
  }

  /** The next request retries a view that failed. */
  async function forgetFailed(name: string, view: View): Promise<void> {
    const made = await view.figures;
    if (view.missing !== "" || made.some(({ svg }) => svg === null)) kept.forget(name, view);
  }

  /** `name` identifies the view; `plan` returns the plots if they have to be drawn. */
  return async (name: string, plan: (isAllowed: boolean) => Promise<Planned>): Promise<Drawn> => {
    const found = kept.find(name);
    if (found !== undefined) return waitFor(found);
    const isAllowed = mayDraw();
    const planned = await plan(isAllowed);
    if (planned.all.length === 0) {
      if (isAllowed) minute.drawn -= 1; // nothing was drawn, so it does not count
      return { figures: [], missing: planned.missing };
    }
    if (isAllowed) return waitFor(draw(name, planned));
    return { figures: bare(planned.all), missing: TOO_MANY };
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
