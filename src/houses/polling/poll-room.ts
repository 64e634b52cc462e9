import pLimit, { type LimitFunction } from "p-limit";
import { CONNECTIONS_OF_HOUSE, LARGEST_BODY } from "./http.ts";

/** Concurrent polls of one house: a slow house must leave capacity for the others. */
const POLLS_OF_HOUSE = 16;
/** Bytes of responses after which a poll sends no more requests; its other tables go first next time. */
const BYTES_OF_POLL = 8 << 20;
/** Bytes of responses held by a worker after which it starts no poll and sends no request. */
const BYTES_OF_WORKER = 128 << 20;
/** The most for one house, its requests without a response included: the rest is for others. */
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
  /**
   * Sends a request when the house has a free connection, and counts the bytes of its response until the poll is over. Null
   * if there is no memory for the response, which may be as large as the largest.
   */
  send: <Sent extends SentRequest>(request: (wait: ConnectionWait) => Promise<Sent>) => Promise<Sent | null>;
  isSpent: () => boolean;
}

/** What the house did with a request. */
interface SentRequest {
  /** Of the response. */
  bytes: number;
  /** Whether the house responded; absent if nothing was sent. */
  hasResponse?: boolean;
}

/** What happened while a request waited for a connection. */
interface ConnectionWait {
  /** Other requests to the house ended, and all of them without a response. */
  isSilent: boolean;
}

/** What a worker holds of one house. */
interface HouseRoom {
  polls: LimitFunction;
  requests: LimitFunction;
  /** Requests without a response. */
  sent: number;
  /** Bytes of the responses of polls that are not over. */
  held: number;
  /** Bytes of its largest recent response; 0 if unknown. */
  largest: number;
  /** Requests that ended with a response, and without one. */
  responses: number;
  silences: number;
}

/** Creates the capacity limits of a worker. */
export function createPollRoom(): PollRoom {
  const houses = new Map<string, HouseRoom>();
  let held = 0;
  const hold = (house: HouseRoom, bytes: number) => {
    held += bytes;
    house.held += bytes;
  };
  const isFull = (house: HouseRoom) =>
    held >= BYTES_OF_WORKER || house.held + (house.sent + 1) * LARGEST_BODY > BYTES_OF_HOUSE;
  return {
    async enter(name, poll) {
      const house = houses.get(name) ?? newRoom();
      houses.set(name, house);
      return house.polls(async () => {
        if (isFull(house)) return null;
        let own = 0;
        let most: number | null = null; // the largest of this poll
        const known = house.largest;
        const isSpent = () => own >= BYTES_OF_POLL || isFull(house);
        const budget: PollBudget = {
          parallel: (wanted) => Math.max(1, Math.min(wanted, Math.floor(BYTES_OF_POLL / Math.max(known, most ?? 0)))),
          send: async (request) => {
            const { responses, silences } = house;
            return house.requests(async () => {
              if (isSpent()) return null;
              house.sent += 1;
              try {
                const isSilent = house.responses === responses && house.silences > silences;
                const sent = await request({ isSilent });
                if (sent.hasResponse === true) house.responses += 1;
                if (sent.hasResponse === false) house.silences += 1;
                own += sent.bytes;
                hold(house, sent.bytes);
                most = Math.max(most ?? 0, sent.bytes);
                return sent;
              } finally {
                house.sent -= 1;
              }
            });
          },
          isSpent,
        };
        try {
          return await poll(budget);
        } finally {
          hold(house, -own);
          // a repeat has no body, but the house may send as much as before
          if (most !== null) house.largest = most === 0 ? known : Math.max(most, known / 2);
        }
      });
    },
  };
}

function newRoom(): HouseRoom {
  const [polls, requests] = [pLimit(POLLS_OF_HOUSE), pLimit(CONNECTIONS_OF_HOUSE)];
  return { polls, requests, sent: 0, held: 0, largest: 0, responses: 0, silences: 0 };
}
