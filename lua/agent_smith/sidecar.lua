--[[
The client of `agent-smith serve`: a session in a process of its own, for hosts that cannot load the core.

Same methods, answers and errors as the native session (`agent_smith.core`). One JSON object a line goes each way.
The host gives pipes, processes and select; Lua can mask no signals, so a write to a dead child would end the user's
shell by SIGPIPE, and a write to a full pipe would hang it. Therefore this client keeps its own read end of the child's
stdin open, asks whether the child lives before each write, and writes no more at once than a writable pipe surely takes.

`sidecar_process` is the child and its pipes, `sidecar_lines` what goes over them, and this file the session's methods.
]]

local process = require("agent_smith.sidecar_process")
local lines = require("agent_smith.sidecar_lines")
local closed_error = process.closed_error

local cfg = {
	command = "agent-smith",
	args = { "serve" },
	start_ms = 15000, -- for the answer to `hello`: the store may be busy
	answer_ms = 5000, -- for any other answer; no op waits for a turn
	close_ms = 1500, -- for the end of a closed sidecar
	slice_ms = 100, -- no wait is longer at once: SIGINT does not interrupt select
	-- What a pipe that select calls writable takes without blocking: one page on Linux, PIPE_BUF elsewhere.
	write_bytes = jit.os == "Linux" and 4096 or 512,
	read_bytes = 65536,
	max_fd = 1024, -- select knows no descriptor from here on, and raises
	keep_bytes = 2048, -- of what the child wrote to stderr, for the reason of its end
}

-- What the host has; `given` may bring other versions of it.
local host_calls = function(given)
	given = given or {}
	local socket = given.socket or require("socket")
	return {
		ps = given.ps or require("std.ps"),
		json = given.json or require("cjson.safe"),
		select = socket.select,
		now = socket.gettime,
	}
end

-- Whether this is still the process that started the sidecar: a fork of it must not write into the same pipe.
local forked = function(self)
	local state = self.__state
	if state.owner and self.__host.ps.getpid() ~= state.owner then
		return process.failure(
			"policy",
			"forked",
			"this process was forked from the one the session belongs to and cannot use it",
			"use agent_smith in the shell itself, not in a background job or a pipeline of it"
		)
	end
end

local checked = function(op, given)
	if given == nil then
		return {}
	end
	if type(given) ~= "table" then
		error(("bad argument to `%s`: a table is expected, not a %s"):format(op, type(given)), 3)
	end
	if #given > 0 then
		error(("bad argument to `%s`: a table with names is expected, not a list"):format(op), 3)
	end
	return given
end

local encode = function(self, op, given, id)
	local message = {}
	for key, value in pairs(given) do
		message[key] = value
	end
	message.op = op
	message.id = id
	local ok, line, err = pcall(self.__host.json.encode, message)
	if not ok or not line then
		error(("bad argument to `%s`: %s"):format(op, tostring(ok and err or line)), 3)
	end
	return line .. "\n"
end

local call = function(self, op, given)
	local state = self.__state
	given = checked(op, given)
	local line = encode(self, op, given, state.next_id)
	local err = forked(self) or (state.closed and closed_error()) or state.gone
	if err then
		return nil, err
	end
	local id = state.next_id
	state.next_id = id + 1
	local ms = op == "hello" and self.cfg.start_ms or self.cfg.answer_ms
	local deadline = self.__host.now() + ms / 1000
	local sent
	sent, err = lines.send(self, line, id, deadline)
	if not sent then
		return nil, err
	end
	return lines.receive(self, deadline)
end

local poll = function(self, ms)
	local state = self.__state
	local seconds = 0
	if ms ~= nil then
		seconds = tonumber(ms)
		if not seconds then
			error(("bad argument to `poll`: a number is expected, not a %s"):format(type(ms)), 2)
		end
		seconds = seconds > 0 and seconds / 1000 or 0
	end
	local err = forked(self)
	if err then
		return nil, err
	end
	local now = self.__host.now
	local deadline = now() + seconds
	local left = #state.events == 0 and seconds or 0
	while true do
		if not state.gone then
			lines.pump(self, left)
		end
		if #state.events > 0 then
			local events = state.events
			state.events = {}
			return events
		end
		if state.gone then
			return nil, state.gone
		end
		left = deadline - now()
		if left <= 0 then
			return {}
		end
	end
end

local close = function(self, given)
	local state = self.__state
	local line = encode(self, "close", checked("close", given), state.next_id)
	local err = forked(self)
	if err then
		return nil, err
	end
	if state.closed or state.gone then
		state.closed = true
		return true
	end
	local deadline = self.__host.now() + self.cfg.close_ms / 1000
	lines.send(self, line, state.next_id, deadline)
	state.closed = true
	while not state.gone do
		local left = deadline - self.__host.now()
		if left <= 0 then
			process.bury(self)
			break
		end
		lines.pump(self, left)
	end
	return true
end

local welcome = function(self)
	return self.__state.welcome
end

local op = function(name)
	return function(self, given)
		return call(self, name, given)
	end
end

--[[
new(hello, settings) -> session | nil, err

`settings` replaces members of `cfg`; its `host = {ps, socket, json}` replaces the host's own modules.
]]
local new = function(hello, settings)
	settings = settings or {}
	local merged = {}
	for key, value in pairs(cfg) do
		merged[key] = value
	end
	for key, value in pairs(settings) do
		merged[key] = value
	end
	local host = host_calls(settings.host)
	local state, err = process.launch(merged, host.ps)
	if not state then
		return nil, err
	end
	local session = {
		cfg = merged,
		__host = host,
		__state = state,
		submit = op("submit"),
		cancel = op("cancel"),
		answer = op("answer"),
		complete = op("complete"),
		status = op("status"),
		resize = op("resize"),
		theme = op("theme"),
		view_key = op("view_key"),
		poll = poll,
		close = close,
		welcome = welcome,
	}
	local ok, said
	ok, said, err = pcall(call, session, "hello", hello)
	if not ok or not said then
		close(session)
		if not ok then
			error(said, 2)
		end
		return nil, err
	end
	state.welcome = said
	return session
end

return { new = new }
