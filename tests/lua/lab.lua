-- A fresh host, shell and fake core for one test: nothing of an earlier test is left in package.loaded.

local fake_core = require("fake_core")
local json = require("json")
local shell = require("shell")
local standin = require("standin")

local read_file = function(path)
	local file = assert(io.open(path, "rb"))
	local text = file:read("*a")
	file:close()
	return text
end

local manifest = function()
	return assert(json.decode(read_file("lilpack.json")))
end

local forget = function()
	for name in pairs(package.loaded) do
		if name:match("^agent_smith") then
			package.loaded[name] = nil
		end
	end
	for name in pairs(package.preload) do
		if name:match("^agent_smith") then
			package.preload[name] = nil
		end
	end
end

-- `options`: what standin.new takes; `core = false` leaves the core out; `mode`: more members of the mode's description;
-- `before(core)`: called before the shell starts.
local new = function(options)
	options = options or {}
	forget()
	local host = standin.new(options)
	local core = fake_core.new()
	if options.core ~= false then
		package.preload["agent_smith.core"] = function()
			return core
		end
	end
	local description = manifest().modes.agent_smith
	for key, value in pairs(options.mode or {}) do
		description[key] = value
	end
	if options.before then
		options.before(core, host)
	end
	return shell.new(host, description), core, host
end

return { new = new, manifest = manifest, forget = forget, read_file = read_file }
