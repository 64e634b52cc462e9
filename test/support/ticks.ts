/**
 * Runs something and counts the ticks of the event loop meanwhile, at most one per millisecond: none if the work blocks the
 * loop. A thread may be done before the first tick.
 */
export async function countTicks<Result>(run: () => Promise<Result>): Promise<{ result: Result; ticks: number }> {
  let ticks = 0;
  let isOver = false;
  const count = () => {
    ticks += 1;
    if (!isOver) setTimeout(count, 1); // setImmediate would take a core
  };
  setImmediate(count);
  try {
    return { result: await run(), ticks };
  } finally {
    isOver = true;
  }
}
