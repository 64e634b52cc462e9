/**
 * Runs something and counts the turns of the event loop meanwhile. Work in the event loop never lets it turn; a thread may
 * be done before it has turned once.
 */
export async function countTurns<Result>(run: () => Promise<Result>): Promise<{ result: Result; turns: number }> {
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  try {
    return { result: await run(), turns };
  } finally {
    isOver = true;
  }
}
