/**
 * A token bucket for Redis, instead of the fixed window of rate-limiter-flexible: a full bucket may be spent
 * immediately, and a token returns every `seconds / points`. A fixed window would let twice its points pass around its
 * end.
 *
 * The state is one number, the time at which the bucket is full again (GCRA, the generic cell rate algorithm of ATM
 * Forum TM 4.0, with the theoretical arrival time as state), by Redis' own clock in microseconds. A full bucket has no
 * key, so losing Redis only fills every bucket.
 *
 * Arguments, as the library passes them: requested tokens, its whole seconds (unused), points, seconds. Returns what
 * the library takes for the points consumed, which exceeds `points` by exactly the refused tokens, and the milliseconds
 * until the next token. If fewer tokens remain than requested, those are granted. A request for 0 changes nothing.
 */
export const TOKEN_BUCKET = `
local asked, points, refill = tonumber(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[4]) * 1000000
local clock = redis.call('time')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local each = refill / points
-- no later than an empty bucket would be full: the plan may have shrunk, or the clock been set back
local full_at = math.min(math.max(tonumber(redis.call('get', KEYS[1]) or 0), now), now + refill)
-- a millionth, because 20 tokens may be computed as 19.9999999
local left = math.floor((now + refill - full_at) / each + 0.000001)
local granted = math.min(asked, left)
if granted > 0 then
  full_at = full_at + granted * each
  redis.call('set', KEYS[1], string.format('%.17g', full_at), 'px', math.ceil((full_at - now) / 1000))
end
local wait = math.max(0, full_at + each - refill - now)
return { points - (left - granted) + (asked - granted), math.ceil(wait / 1000) }
`;
