-- The session with the core: opened when it is first needed, opened again when it was lost, and the facts that go with
-- every line (where the user is, which variables changed).
--
-- Every method gives its result, or nil and `{ message, hint, lost }`; `lost` says that this session is over and the
-- next line opens another.

local PROTOCOL = 1
local CLIENT = "agent_smith.lua"
-- Codes with which a carrier says that nothing more will come.
local OVER = {
	session_closed = true,
	sidecar_died = true,
	sidecar_missing = true,
	sidecar_select = true,
	sidecar_stuck = true,
	sidecar_write = true,
}

local as_problem = function(problem, lost)
	if type(problem) == "table" then
		return {
			message = tostring(problem.message or problem.code or "the core failed"),
			hint = problem.hint and tostring(problem.hint) or nil,
			code = problem.code,
			lost = lost or OVER[problem.code] or false,
		}
	end
	return { message = tostring(problem or "the core failed"), lost = lost or false }
end

local copy = function(map)
	local out = {}
	for key, value in pairs(map or {}) do
		out[key] = value
	end
	return out
end

-- What changed between two environments: new values by name, and the names that are gone.
local changes = function(before, after)
	local set, gone = {}, {}
	for name, value in pairs(after) do
		if before[name] ~= value then
			set[name] = value
		end
	end
	for name in pairs(before) do
		if after[name] == nil then
			gone[#gone + 1] = name
		end
	end
	return set, gone
end

local __hello = function(self)
	local host = self.host
	local hello = {
		protocol = PROTOCOL,
		client = CLIENT,
		host = host:describe(),
		term = host:term_info(),
		cwd = host:cwd(),
		env = host:environ(),
		pid = host:pid(),
		render = true,
	}
	local palette = require("agent_smith.theme").palette()
	if palette then
		hello.palette = palette
	end
	return hello
end

-- Calls a method of the core's session. A raise counts as the loss of the session: nobody knows what is left of it.
local __call = function(self, method, ...)
	local core = self.__state.core
	if not core then
		return nil, as_problem("there is no session", true)
	end
	local ok, result, problem = pcall(core[method], core, ...)
	if not ok then
		self.__state.core = nil
		return nil, as_problem(result, true)
	end
	if result == nil and problem ~= nil then
		problem = as_problem(problem)
		if problem.lost then
			self.__state.core = nil
		end
		return nil, problem
	end
	return result == nil and true or result
end

-- Opens the session where there is none.
local ensure = function(self)
	local state = self.__state
	if state.core then
		return true
	end
	local ok, core, problem = pcall(function()
		local hello = self:__hello()
		state.env = copy(hello.env)
		state.size = hello.term.cols .. "x" .. hello.term.rows
		return require("agent_smith.carrier").new(hello, self.cfg.core)
	end)
	if not ok then
		return nil, as_problem(core, true)
	end
	if not core then
		return nil, as_problem(problem, true)
	end
	state.core = core
	state.submitted = 0
	return true
end

local is_open = function(self)
	return self.__state.core ~= nil
end

-- Hands a line over.
local submit = function(self, line)
	local state = self.__state
	local request = { line = line, cwd = self.host:cwd() }
	local env = self.host:environ()
	if env then
		local set, gone = changes(state.env or {}, env)
		for _, name in ipairs(gone) do
			set[name] = self.host:null()
		end
		if next(set) ~= nil then
			request.env = set
		end
		state.env = copy(env)
	end
	local result, problem = self:__call("submit", request)
	if result then
		state.submitted = state.submitted + 1
	end
	return result, problem
end

-- How many lines this session was handed.
local submitted = function(self)
	return self.__state.submitted
end

-- The next events, waiting up to `ms` for the first.
local poll = function(self, ms)
	local events, problem = self:__call("poll", ms)
	if events == true then
		events = {}
	end
	return events, problem
end

local cancel = function(self, scope)
	return self:__call("cancel", { scope = scope })
end

local answer = function(self, id, value)
	return self:__call("answer", { question_id = id, value = value })
end

local complete = function(self, line, cursor)
	return self:__call("complete", { line = line, cursor = cursor })
end

local status = function(self)
	return self:__call("status")
end

local view_key = function(self, id, key)
	return self:__call("view_key", { view_id = id, key = key })
end

local theme = function(self, theme_table)
	return self:__call("theme", theme_table)
end

-- Tells the core of a new size, where it is new.
local fit = function(self)
	local rows, cols = self.host:window_size()
	if not rows or not cols then
		return
	end
	local size = cols .. "x" .. rows
	if self.__state.core and size ~= self.__state.size then
		self.__state.size = size
		self:__call("resize", { cols = cols, rows = rows })
	end
end

-- Ends the session for good; the next line opens another.
local close = function(self)
	self:__call("close")
	self.__state.core = nil
end

local new = function(host, cfg)
	return {
		cfg = cfg or {},
		host = host,
		__state = { core = nil, env = nil, size = nil, submitted = 0 },
		__hello = __hello,
		__call = __call,
		ensure = ensure,
		is_open = is_open,
		submit = submit,
		submitted = submitted,
		poll = poll,
		cancel = cancel,
		answer = answer,
		complete = complete,
		status = status,
		view_key = view_key,
		theme = theme,
		fit = fit,
		close = close,
	}
end

return { new = new, changes = changes }
