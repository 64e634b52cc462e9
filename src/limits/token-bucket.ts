/**
 * A token bucket for Redis, in the place of the fixed window that rate-limiter-flexible brings: a full bucket is given
 * out at once, and a token comes back every `seconds / points`. A fixed window would let through twice its points
 * around its end.
 *
 * Kept is one number, the time at which the bucket is full again (GCRA, the generic cell rate algorithm of ATM Forum
 * TM 4.0, with the theoretical arrival time as state), by Redis' own clock in microseconds. A bucket that is full is not kept at all, so losing Redis fills
 * every bucket and does no other harm.
 *
 * Arguments as the library gives them: the tokens asked for, its whole seconds (not used), points, seconds. Gives back
 * what the library takes for the points consumed, which is above `points` by exactly the tokens that were refused, and
 * the milliseconds until the next token. Of several tokens as many are given as there are. Asking for none only looks,
 * and for less than none gives tokens back.
 */
export const TOKEN_BUCKET = `
local asked, points, refill = tonumber(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[4]) * 1000000
local clock = redis.call('time')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local each = refill / points
-- no later than an empty bucket would be full: the plan may have shrunk, or the clock gone back
local full_at = math.min(math.max(tonumber(redis.call('get', KEYS[1]) or 0), now), now + refill)
-- a millionth, since 20 tokens may come out as 19.9999999
local left = math.floor((now + refill - full_at) / each + 0.000001)
local granted = math.min(asked, left)
if granted ~= 0 then
  full_at = full_at + granted * each
  if full_at <= now then
    redis.call('del', KEYS[1])
  else
    redis.call('set', KEYS[1], string.format('%.17g', full_at), 'px', math.ceil((full_at - now) / 1000))
  end
end
local wait = math.max(0, full_at + each - refill - now)
return { points - (left - granted) + (asked - granted), math.ceil(wait / 1000) }
`;
