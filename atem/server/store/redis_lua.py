"""What the store says to Redis: a script for each call that changes something.

Rules: Redis runs a script alone. Every value is an argument, and all keys are
made from the name in KEYS[1]; so one Redis keeps them all (no cluster).
"""

from __future__ import annotations

from typing import Final

# KEYS[1] is the name before all keys. A member is "tenant:id". Of a record there are
#   record:MEMBER   hash: owner (of an open one), version, ending, body, items (spaces between)
#   log:MEMBER      stream: the event of number N is N+1-0
#   item:TENANT:ID  the member that was last put with this item
# and of all together
#   put, bytes      counters
#   sizes, logs     hashes: bytes of each record, of each log
#   leases          zset of the open ones, by when their lease runs out
#   closed, silent  zsets of the closed ones, and of those that have a log, by when they were put
# A version is the number of the last put, or of the last change of hands.
COMMON: Final = """
local name = KEYS[1]
local function at(kind, member)
    return name .. ':' .. kind .. (member and ':' .. member or '')
end
local function count(kind, member, change)
    redis.call('HINCRBY', at(kind), member, change)
    redis.call('INCRBY', at('bytes'), change)
end
local function clear(kind, member)
    local size = redis.call('HGET', at(kind), member)
    if size then
        redis.call('HDEL', at(kind), member)
        redis.call('DECRBY', at('bytes'), size)
    end
end
local function forget(member)
    for item in string.gmatch(redis.call('HGET', at('record', member), 'items') or '', '%S+') do
        if redis.call('GET', at('item', item)) == member then
            redis.call('DEL', at('item', item))
        end
    end
    redis.call('DEL', at('record', member))
    redis.call('ZREM', at('leases'), member)
    redis.call('ZREM', at('closed'), member)
    clear('sizes', member)
end
local function drop_log(member)
    redis.call('DEL', at('log', member))
    redis.call('ZREM', at('silent'), member)
    clear('logs', member)
end
local function drop(member)
    forget(member)
    drop_log(member)
end
"""

LOG: Final = """
local function append(member, first)
    local log = at('log', member)
    local last = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)[1]
    last = last and tonumber(string.match(last[1], '%d+')) or 0
    for place = first, #ARGV, 2 do
        if tonumber(ARGV[place]) > last then
            redis.call('XADD', log, ARGV[place] .. '-0', 'e', ARGV[place + 1])
            count('logs', member, #ARGV[place + 1])
        end
    end
end
"""
PUT: Final = """
local member, expected, owner, body, items = unpack(ARGV, 1, 5)
local touched, ends, most, lives, log_lives = unpack(ARGV, 6, 10)
local open = owner ~= ''
local record, log = at('record', member), at('log', member)
local before, ending = unpack(redis.call('HMGET', record, 'version', 'ending'))
if tonumber(expected) ~= tonumber(before or 0) then return 0 end
if not open then ending = '0' end
local version = redis.call('INCR', at('put'))
forget(member)
redis.call('HSET', record, 'owner', owner, 'version', version, 'ending', ending or '0',
    'body', body, 'items', items)
count('sizes', member, #body)
for item in string.gmatch(items, '%S+') do
    if open then
        redis.call('SET', at('item', item), member)
    else
        redis.call('SET', at('item', item), member, 'PX', lives)
    end
end
append(member, 11)
if open then
    redis.call('ZADD', at('leases'), ends, member)
    redis.call('ZREM', at('silent'), member)
    redis.call('PERSIST', log)
else
    redis.call('ZADD', at('closed'), touched, member)
    redis.call('PEXPIRE', record, lives)
    if redis.call('PEXPIRE', log, log_lives) == 1 then
        redis.call('ZADD', at('silent'), touched, member)
    end
end
while tonumber(redis.call('GET', at('bytes'))) > tonumber(most) do
    local oldest = redis.call('ZRANGE', at('closed'), 0, 1)
    local victim = oldest[1] ~= member and oldest[1] or oldest[2]
    if not victim then break end
    drop(victim)
end
return version
"""
DELETE: Final = """
drop(ARGV[1])
"""
APPEND: Final = """
local member, owner = unpack(ARGV, 1, 2)
if redis.call('HGET', at('record', member), 'owner') ~= owner then return 0 end
append(member, 3)
return 1
"""
RENEW: Final = """
local held = {}
for place = 3, #ARGV do
    local owner, ending = unpack(
        redis.call('HMGET', at('record', ARGV[place]), 'owner', 'ending'))
    if owner == ARGV[1] then
        redis.call('ZADD', at('leases'), ARGV[2], ARGV[place])
        table.insert(held, tonumber(ending))
    else
        table.insert(held, -1)
    end
end
return held
"""
CANCEL: Final = """
if (redis.call('HGET', at('record', ARGV[1]), 'owner') or '') == '' then return 0 end
redis.call('HSET', at('record', ARGV[1]), 'ending', 1)
return 1
"""
TAKE_OVER: Final = """
local taken = {}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', at('leases'), '-inf', ARGV[2])) do
    local record = at('record', member)
    redis.call('HSET', record, 'owner', ARGV[1], 'version', redis.call('INCR', at('put')))
    redis.call('ZADD', at('leases'), ARGV[3], member)
    table.insert(taken, redis.call('HMGET', record, 'owner', 'version', 'body'))
end
return taken
"""
EXPIRE: Final = """
local old = redis.call('ZRANGEBYSCORE', at('closed'), '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
for _, member in ipairs(old) do drop(member) end
local silent = redis.call(
    'ZRANGEBYSCORE', at('silent'), '-inf', '(' .. ARGV[2], 'LIMIT', 0, ARGV[3])
for _, member in ipairs(silent) do drop_log(member) end
return {#old, #silent}
"""


SCRIPTS: Final = {
    "put": COMMON + LOG + PUT,
    "append": COMMON + LOG + APPEND,
    "delete": COMMON + DELETE,
    "renew": COMMON + RENEW,
    "cancel": COMMON + CANCEL,
    "take_over": COMMON + TAKE_OVER,
    "expire": COMMON + EXPIRE,
}
