--[[
The client of `agent-smith serve`: a session in a process of its own, for hosts that cannot load the core.

Same methods, answers and errors as the native session (`agent_smith.core`). One JSON object a line goes each way.
The host gives pipes, processes and select; Lua can mask no signals, so a write to a dead child would end the user's
shell by SIGPIPE, and a write to a full pipe would hang it. Therefore this client keeps its own read end of the child's
stdin open, asks whether the child lives before each write, and writes no more at once than a writable pipe surely takes.
]]

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

local SIGKILL, SIGTERM = 9, 15

local failure = function(kind, code, message, hint)
	return { kind = kind, code = code, message = message, hint = hint, retryable = false, origin = "sidecar" }
end

local closed_error = function()
	return failure("policy", "session_closed", "the session is closed")
end

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

-- Runs in the fork, where an error raised would go on as a second shell: nothing may leave it.
local exec_in_fork = function(name, args, ps)
	pcall(function()
		if ps.setsid then
			ps.setsid() -- Ctrl-C is for the shell alone
		end
		local _, err = ps.exec(name, unpack(args))
		io.stderr:write(name, ": ", tostring(err or "cannot be run"), "\n")
	end)
	return 255
end

local readable = function(fd)
	return {
		getfd = function()
			return fd
		end,
		dirty = function()
			return false
		end,
	}
end

-- A wait; select with nothing to wait for is a sleep. Not in a pcall: an interrupt that the host raises by a hook comes
-- out of here, where nothing is half done.
local wait = function(self, receivers, senders, seconds)
	return self.__host.select(receivers, senders, math.max(seconds, 0))
end

local close_pipes = function(self)
	local state = self.__state
	state.to:close_inn()
	state.to:close_out()
	state.from:close_out()
	state.errors:close_out()
end

-- Whether the child runs; collects it if not. A child somebody else collected is gone too, with an unknown status.
local alive = function(self)
	local state = self.__state
	if state.collected then
		return false
	end
	local pid, status = self.__host.ps.waitpid(state.pid)
	if pid == 0 then
		return true
	end
	state.collected = true
	state.status = pid == state.pid and status or nil
	return false
end

local alive_after = function(self, seconds)
	local deadline = self.__host.now() + seconds
	while alive(self) do
		if self.__host.now() >= deadline then
			return true
		end
		wait(self, {}, nil, 0.005)
	end
	return false
end

local read_errors = function(self)
	local state = self.__state
	local text = state.errors:read(self.cfg.read_bytes)
	if not text or text == "" then
		state.errors_ended = true
		return
	end
	state.said = (state.said .. text):sub(-self.cfg.keep_bytes)
end

local why_it_ended = function(self)
	local state = self.__state
	local first = state.said:match("[^\r\n]+")
	local detail = first and (": " .. first) or ""
	if state.status == 255 and not state.welcome then
		return failure(
			"policy",
			"sidecar_missing",
			("`%s` cannot be run%s"):format(self.cfg.command, detail),
			"install the agent-smith executable and put it on the PATH"
		)
	end
	local how = state.status and ("with status %d"):format(state.status) or "by a signal"
	return failure(
		"internal",
		"sidecar_died",
		("the agent-smith process ended %s%s"):format(how, detail),
		"everything up to its last finished step is kept; the next line starts it anew"
	)
end

-- After the end of the child's output: makes sure that it ends, and keeps why.
local bury = function(self, reason)
	local state = self.__state
	if state.gone then
		return
	end
	local ps = self.__host.ps
	if alive_after(self, self.cfg.close_ms / 1000) then
		ps.kill(state.pid, SIGTERM) -- it stops its tools before it goes
		if alive_after(self, self.cfg.close_ms / 1000) then
			ps.kill(state.pid, SIGKILL)
			alive_after(self, self.cfg.close_ms / 1000)
		end
	end
	while not state.errors_ended do
		if #wait(self, { state.errors_end }, nil, 0) == 0 then
			break
		end
		read_errors(self)
	end
	close_pipes(self)
	if reason then
		state.gone = reason
	elseif state.closed or (state.welcome and state.status == 0) then
		state.gone = closed_error()
	else
		state.gone = why_it_ended(self)
	end
end

local take_line = function(self, line)
	local state = self.__state
	local message = self.__host.json.decode(line)
	if type(message) ~= "table" then
		-- No line of ours: something the host had buffered when it forked, or a complaint of the system.
		state.said = (state.said .. line .. "\n"):sub(-self.cfg.keep_bytes)
	elseif type(message.event) == "table" then
		state.events[#state.events + 1] = message.event
	elseif message.id ~= nil then
		state.answers[message.id] = message
	end
end

local read_output = function(self)
	local state = self.__state
	local data = state.from:read(self.cfg.read_bytes)
	if not data or data == "" then
		bury(self)
		return
	end
	data = state.partial .. data
	local start = 1
	while true do
		local stop = data:find("\n", start, true)
		if not stop then
			break
		end
		take_line(self, data:sub(start, stop - 1))
		start = stop + 1
	end
	state.partial = data:sub(start)
end

-- Takes in what the child has written; waits up to `seconds` for something, or, where `writable`, for room to write.
-- Returns whether there is room.
local pump = function(self, seconds, writable)
	local state = self.__state
	local receivers = { state.from_end }
	if not state.errors_ended then
		receivers[2] = state.errors_end
	end
	local senders = writable and { state.to_end } or nil
	local ready, room = wait(self, receivers, senders, math.min(seconds, self.cfg.slice_ms / 1000))
	for _, item in ipairs(ready) do
		if item == state.errors_end then
			read_errors(self)
		else
			read_output(self)
		end
	end
	return room ~= nil and #room > 0
end

-- Writes a line whole, or gives the sidecar up: half a line would spoil every later one.
local send = function(self, line, deadline)
	local state = self.__state
	local rest = line
	while rest ~= "" do
		local room = pump(self, deadline - self.__host.now(), true)
		if state.gone then
			return nil, state.gone
		end
		if room then
			if not alive(self) then
				-- Its last words are still in the pipe.
				while not state.gone do
					pump(self, self.cfg.slice_ms / 1000)
				end
				return nil, state.gone
			end
			local count = math.min(#rest, self.cfg.write_bytes)
			local written, err = state.to:write(rest:sub(1, count), count)
			if not written then
				bury(self, failure("internal", "sidecar_write", "the agent-smith process cannot be reached: " .. tostring(err)))
				return nil, state.gone
			end
			rest = rest:sub(written + 1)
		elseif self.__host.now() >= deadline then
			if alive(self) then
				self.__host.ps.kill(state.pid, SIGKILL)
			end
			bury(self, failure("internal", "sidecar_stuck", "the agent-smith process takes no input and was ended"))
			return nil, state.gone
		end
	end
	return true
end

local receive = function(self, id, deadline)
	local state = self.__state
	while true do
		local answer = state.answers[id]
		if answer then
			state.answers[id] = nil
			if answer.ok ~= nil then
				return answer.ok
			elseif type(answer.err) == "table" then
				return nil, answer.err
			end
			return nil, failure("protocol", "unreadable", "`" .. self.cfg.command .. "` does not answer as agent-smith does")
		end
		if state.gone then
			return nil, state.gone
		end
		local left = deadline - self.__host.now()
		if left <= 0 then
			return nil, failure("internal", "sidecar_timeout", "the agent-smith process gave no answer in time")
		end
		pump(self, left)
	end
end

-- Whether this is still the process that started the sidecar: a fork of it must not write into the same pipe.
local forked = function(self)
	local state = self.__state
	if state.owner and self.__host.ps.getpid() ~= state.owner then
		return failure(
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
	sent, err = send(self, line, deadline)
	if not sent then
		return nil, err
	end
	return receive(self, id, deadline)
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
			pump(self, left)
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
	send(self, line, deadline)
	state.closed = true
	while not state.gone do
		local left = deadline - self.__host.now()
		if left <= 0 then
			bury(self)
			break
		end
		pump(self, left)
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

-- Starts the child. Returns what is known of it, or nil and the error.
local launch = function(settings, ps)
	local pipes = {}
	for _, name in ipairs({ "to", "from", "errors" }) do
		local pipe, err = ps.pipe()
		if not pipe then
			for _, open in pairs(pipes) do
				open:close_inn()
				open:close_out()
			end
			return nil, failure("internal", "sidecar_pipe", "no pipe for the agent-smith process: " .. tostring(err))
		end
		pipes[name] = pipe
	end
	if math.max(pipes.to.inn, pipes.from.out, pipes.errors.out) >= settings.max_fd then
		for _, pipe in pairs(pipes) do
			pipe:close_inn()
			pipe:close_out()
		end
		return nil, failure("internal", "sidecar_select", "too many files are open here to listen to another process")
	end
	local program = { name = settings.command, func = exec_in_fork, extra = ps }
	local pid, err = ps.launch(program, pipes.to.out, pipes.from.inn, pipes.errors.inn, unpack(settings.args))
	pipes.from:close_inn()
	pipes.errors:close_inn()
	if not pid then
		pipes.to:close_inn()
		pipes.to:close_out()
		pipes.from:close_out()
		pipes.errors:close_out()
		return nil, failure("internal", "sidecar_fork", "the agent-smith process cannot be started: " .. tostring(err))
	end
	return {
		pid = pid,
		owner = ps.getpid and ps.getpid() or nil,
		to = pipes.to,
		from = pipes.from,
		errors = pipes.errors,
		to_end = readable(pipes.to.inn),
		from_end = readable(pipes.from.out),
		errors_end = readable(pipes.errors.out),
		errors_ended = false,
		partial = "",
		said = "",
		events = {},
		answers = {},
		next_id = 1,
		closed = false,
		collected = false,
		status = nil,
		gone = nil,
		welcome = nil,
	}
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
	local state, err = launch(merged, host.ps)
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
