import { within } from "../../http/within.ts";
import { type Figure, figureOf } from "../../frame/figure.ts";
import type { Log } from "../../log.ts";
import { keeping } from "../keeping.ts";
import { PATIENCE_MS } from "../loader.ts";
import type { ToDraw } from "./plots.ts";

/** What was drawn is shown so long, although a forecast was judged since. */
const DRAWN_FOR_MS = 60_000;
const MOST_KEPT = 100;
/** Views that are drawn anew in a minute, whoever asks: each is three plots of 20 ms, and one statement. */
const VIEWS_PER_MINUTE = 30;

const TOO_MANY = "Many plots are asked for at the moment. Please try again shortly.";
const TOO_SLOW = "The plots take longer than a page waits. Please try again shortly.";

/** What is to be drawn, and why there is less than there should be (empty where there is not). */
export interface Planned {
  all: readonly ToDraw[];
  missing: string;
}

/** What is drawn, or on its way. */
interface View extends Planned {
  figures: Promise<Figure[]>;
}

/** The plots of a view, without their drawings where they are not made now. */
export interface Drawn {
  figures: Figure[];
  /** Why there is less than there should be; empty where there is not. */
  missing: string;
}

/**
 * Draws views for visitors, each at most once a minute and so many a minute at all, so that nobody without a key keeps
 * this process drawing. Beyond that, and where it takes longer than a page waits, there are the numbers alone.
 */
export function drawing(log: Log) {
  const kept = keeping<View>({ forMs: DRAWN_FOR_MS, most: MOST_KEPT });
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

  /** What is not whole is tried again by the next who looks. */
  async function forgetFailed(name: string, view: View): Promise<void> {
    const made = await view.figures;
    if (view.missing !== "" || made.some(({ svg }) => svg === null)) kept.forget(name, view);
  }

  /** `name` is what is asked for; `plan` says what is to be drawn where it is drawn anew. */
  return async (name: string, plan: (isAllowed: boolean) => Promise<Planned>): Promise<Drawn> => {
    const found = kept.find(name);
    if (found !== undefined) return waitFor(found);
    const isAllowed = mayDraw();
    const planned = await plan(isAllowed);
    if (planned.all.length === 0) {
      if (isAllowed) minute.drawn -= 1; // nothing is drawn, and soon there may be something to draw
      return { figures: [], missing: planned.missing };
    }
    if (isAllowed) return waitFor(draw(name, planned));
    return { figures: bare(planned.all), missing: TOO_MANY };
  };
}

async function waitFor({ figures, all, missing }: View): Promise<Drawn> {
  try {
    return { figures: await within(PATIENCE_MS, "the plots", figures), missing };
  } catch {
    return { figures: bare(all), missing: TOO_SLOW };
  }
}

function bare(all: readonly ToDraw[]): Figure[] {
  return all.map(({ plot, columns, rows }) => ({ title: plot.title, svg: null, columns, rows }));
}
