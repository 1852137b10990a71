--[[
Which way to the core: in this process where the host can load it, else through a sidecar process.

Both give the same sessions; nothing above this file knows which one it has.
]]

local cfg = {
	module = "agent_smith.core",
	entry = "luaopen_agent_smith_core",
	-- The shared object, for hosts that load one by its path only.
	library = os.getenv("AGENT_SMITH_CORE"),
	-- The executable, where it is not called so on the PATH.
	command = os.getenv("AGENT_SMITH_BIN"),
	-- "native" or "sidecar" to allow only that one.
	only = nil,
}

local first_line = function(text)
	return tostring(text):match("[^\r\n]+") or "no reason given"
end

-- The core as a module of this process, or nil and why not.
local native = function(settings)
	local ok, core = pcall(require, settings.module)
	if ok and type(core) == "table" and core.new then
		return core
	end
	local why = ok and "the module is something else" or first_line(core)
	if settings.library and package.loadlib then
		local open, err = package.loadlib(settings.library, settings.entry)
		if open then
			ok, core = pcall(open)
			if ok and type(core) == "table" then
				package.loaded[settings.module] = core
				return core
			end
			err = core
		end
		why = first_line(err)
	end
	return nil, why
end

--[[
new(hello, settings) -> session, name | nil, err

`name` is "native" or "sidecar". `settings` replaces members of `cfg`; its `sidecar` table goes to the sidecar's client.
]]
local new = function(hello, settings)
	local merged = {}
	for key, value in pairs(cfg) do
		merged[key] = value
	end
	for key, value in pairs(settings or {}) do
		merged[key] = value
	end
	local why
	if merged.only ~= "sidecar" then
		local core
		core, why = native(merged)
		if core then
			local session, err = core.new(hello)
			if session then
				return session, "native"
			end
			return nil, err
		end
		if merged.only == "native" then
			return nil, { kind = "policy", code = "core_missing", message = "the core cannot be loaded: " .. why }
		end
	end
	local own = {}
	for key, value in pairs(merged.sidecar or {}) do
		own[key] = value
	end
	own.command = own.command or merged.command
	local session, err = require("agent_smith.sidecar").new(hello, own)
	if session then
		return session, "sidecar"
	end
	if err.code == "sidecar_missing" then
		err.message = "there is no core: this host loads no " .. merged.module .. ", and " .. err.message
	end
	return nil, err
end

return { new = new, native = native }
