/**
 * The clock of the demo houses. House time is what would have passed since T0 at speed 1, in milliseconds; game n of
 * the true house ends at house time n seconds. A change of speed moves T0 so that house time continues where it was, and
 * the stretch before it is kept, so that published rounds keep their times.
 */

/** From `sinceMs` on, house time is (now - `t0Ms`) · `speed`; wall times are epoch milliseconds. */
interface Stretch {
  sinceMs: number;
  t0Ms: number;
  speed: number;
}

/** At least one stretch, oldest first; the first also holds for all time before it. */
export type Timeline = readonly [Stretch, ...Stretch[]];

/** Twenty changes of speed are kept; rounds of stretches before that get times as if the oldest kept one held. */
const STRETCHES_KEPT = 20;

/** A new timeline on which `pastMs` of house time have passed already. */
export function beginTimeline(nowMs: number, speed: number, pastMs: number): Timeline {
  return [{ sinceMs: nowMs, t0Ms: nowMs - Math.ceil(pastMs / speed), speed }];
}

/**
 * The same timeline running at `speed` from now on; house time never goes back, and gains at most a millisecond at that
 * speed. If the clock was set back, the stretches that begin after now are forgotten.
 */
export function changeSpeed(timeline: Timeline, nowMs: number, speed: number): Timeline {
  const next = { sinceMs: nowMs, t0Ms: nowMs - Math.ceil(houseMsAt(timeline, nowMs) / speed), speed };
  const earlier = timeline.filter(({ sinceMs }) => sinceMs < nowMs);
  const [first, ...rest] = [...earlier, next].slice(-STRETCHES_KEPT);
  return [first ?? next, ...rest];
}

/** The house time at a wall time; negative before T0. */
export function houseMsAt(timeline: Timeline, wallMs: number): number {
  const stretch = timeline.findLast(({ sinceMs }) => sinceMs <= wallMs) ?? timeline[0];
  return roundToMicros((wallMs - stretch.t0Ms) * stretch.speed);
}

/** The first whole millisecond of wall time at which house time has reached `houseMs`. */
export function wallMsAt(timeline: Timeline, houseMs: number): number {
  const stretch = timeline.findLast(({ sinceMs }) => houseMsAt(timeline, sinceMs) < houseMs) ?? timeline[0];
  const place = timeline.indexOf(stretch);
  const endMs = timeline[place + 1]?.sinceMs ?? Infinity; // what the change of speed gained
  let wallMs = Math.min(Math.ceil(stretch.t0Ms + houseMs / stretch.speed), endMs);
  // The division may be a step off where it meets the rounding of house time.
  while (houseMsAt(timeline, wallMs) < houseMs) wallMs += 1;
  while (houseMsAt(timeline, wallMs - 1) >= houseMs) wallMs -= 1;
  return wallMs;
}

/** The speed in force at a wall time. */
export function speedAt(timeline: Timeline, wallMs: number): number {
  return (timeline.findLast(({ sinceMs }) => sinceMs <= wallMs) ?? timeline[0]).speed;
}

function roundToMicros(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
