-- The cost of both carriers as a Lua host sees it: arg = {plan}. Prints a JSON object of figures in microseconds.

package.path = "tests/lua/bridge/?.lua;" .. package.path
local script = require("session")
local now = require("ffi_std").socket.gettime
local plan = script.plan

local session = assert(script.open(plan))
while #assert(session:poll(50)) > 0 do
end

local POLLS = 20000
local began = now()
for _ = 1, POLLS do
	session:poll(0)
end
local poll0 = (now() - began) / POLLS * 1e6

-- From typing a command until its answer, an event, is here: the op there, the event back.
local trips = {}
for index = 1, plan.trips do
	local start = now()
	assert(session:submit({ line = "/usage" }))
	local found
	repeat
		for _, event in ipairs(assert(session:poll(100))) do
			found = found or event.type == "command_output"
		end
	until found
	trips[index] = (now() - start) * 1e6
end
table.sort(trips)
assert(session:close())

script.say({
	poll0 = poll0,
	trip_p50 = trips[math.ceil(#trips * 0.5)],
	trip_p99 = trips[math.ceil(#trips * 0.99)],
})
