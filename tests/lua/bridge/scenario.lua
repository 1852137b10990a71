-- Plays a scripted scenario through one carrier and prints, a JSON line each: what the ops answered, and every event.

package.path = "tests/lua/bridge/?.lua;" .. package.path
local script = require("session")
local plan = script.plan

local session = assert(script.open(plan))
local tell = function(event)
	script.say({ event = event })
end
-- Events may come in the same batch as the one that is waited for; a later wait has to see them.
local seen = {}
local wait = function(kind)
	while true do
		for index, event in ipairs(seen) do
			if event.type == kind then
				for _ = 1, index do
					table.remove(seen, 1)
				end
				return
			end
		end
		seen = {}
		script.wait_for(session, kind, function(event)
			tell(event)
			seen[#seen + 1] = event
		end)
	end
end

for _, step in ipairs(plan.steps) do
	if step.wait then
		wait(step.wait)
	else
		local ok, err = session[step["do"]](session, step.args)
		script.say({ answer = { op = step["do"], ok = ok, err = err } })
	end
end
assert(session:close())
while true do
	local events, err = session:poll(100)
	if not events then
		assert(err.code == "session_closed", err.message)
		break
	end
	for _, event in ipairs(events) do
		tell(event)
	end
end
