-- What the Lua scripts of the tests share: the plan they are given, a session through the carrier it names, waiting.
--
-- The plan is a JSON file: {carrier, library, command, hello, ...}. Called as `luajit SCRIPT PLAN` from the package's root.

package.path = "lua/?.lua;tests/lua/bridge/?.lua;" .. package.path

local json = require("json")

local read_plan = function(path)
	local file = assert(io.open(path))
	local plan = assert(json.decode(file:read("*a")))
	file:close()
	return plan
end

-- Opens a session as the plan says; raises where it cannot.
local open = function(plan)
	local settings = { only = plan.carrier, library = plan.library, sidecar = { command = plan.command } }
	if plan.carrier == "sidecar" then
		settings.sidecar.host = require("ffi_std")
		for key, value in pairs(plan.sidecar or {}) do
			settings.sidecar[key] = value
		end
	end
	return require("agent_smith.carrier").new(plan.hello, settings)
end

local say = function(value)
	io.stdout:write(assert(json.encode(value)), "\n")
	io.stdout:flush()
end

-- Polls until an event of this type came, handing each event to `each`. Raises when the session ends before.
local wait_for = function(session, kind, each)
	while true do
		local events, err = session:poll(100)
		if not events then
			error("the session ended before " .. kind .. ": " .. tostring(err.code) .. " " .. err.message)
		end
		local found
		for _, event in ipairs(events) do
			if each then
				each(event)
			end
			if event.type == kind then
				found = found or event
			end
		end
		if found then
			return found
		end
	end
end

return { json = json, open = open, plan = read_plan(arg[1]), say = say, wait_for = wait_for }
