import pLimit, { type LimitFunction } from "p-limit";

/** Concurrent polls of one house: a slow house must leave capacity for the others. */
const POLLS_OF_HOUSE = 16;
/** Bytes of responses after which a poll sends no more requests; its other tables go first next time. */
const BYTES_OF_POLL = 8 << 20;
/** Bytes of responses held by a worker after which it starts no more polls, and those of one house: the rest is for others. */
const BYTES_OF_WORKER = 128 << 20;
const BYTES_OF_HOUSE = BYTES_OF_WORKER / 2;

/** The memory limit of the polls of one worker process: they mostly wait for houses, which costs only memory. */
export interface PollRoom {
  /** Runs a poll when its house has capacity; null if the worker holds too many responses, of all houses or of this one. */
  enter<Result>(house: string, poll: (budget: PollBudget) => Promise<Result>): Promise<Result | null>;
}

/** The limits of one poll. */
export interface PollBudget {
  /** Concurrent requests: the fewer, the larger the responses of the house are. */
  parallel: (most: number) => number;
  /** Counts a response until the poll is over. */
  add: (bytes: number) => void;
  isSpent: () => boolean;
}

/** Creates the capacity limits of a worker. */
export function createPollRoom(): PollRoom {
  const turns = new Map<string, LimitFunction>();
  const largest = new Map<string, number>();
  const heldOf = new Map<string, number>();
  let held = 0;
  const hold = (house: string, bytes: number) => {
    held += bytes;
    heldOf.set(house, (heldOf.get(house) ?? 0) + bytes);
  };
  const isFull = (house: string) => held >= BYTES_OF_WORKER || (heldOf.get(house) ?? 0) >= BYTES_OF_HOUSE;
  return {
    async enter(house, poll) {
      const turn = turns.get(house) ?? pLimit(POLLS_OF_HOUSE);
      turns.set(house, turn);
      return turn(async () => {
        if (isFull(house)) return null;
        let own = 0;
        let most: number | null = null; // the largest of this poll
        const known = largest.get(house);
        const budget: PollBudget = {
          parallel: (wanted) => {
            return Math.max(1, Math.min(wanted, Math.floor(BYTES_OF_POLL / Math.max(known ?? 0, most ?? 0))));
          },
          add: (bytes) => {
            own += bytes;
            hold(house, bytes);
            most = Math.max(most ?? 0, bytes);
          },
          isSpent: () => own >= BYTES_OF_POLL || isFull(house),
        };
        try {
          return await poll(budget);
        } finally {
          hold(house, -own);
          // a repeat has no body, but the house may send as much as before
          if (most !== null) largest.set(house, most === 0 ? (known ?? 0) : Math.max(most, (known ?? 0) / 2));
        }
      });
    },
  };
}
