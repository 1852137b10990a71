--[[
The process of a sidecar and its three pipes: start, signs of life, the reason of its end.

`self` is a session of `agent_smith.sidecar`; what is known of its process stands in `self.__state`, and nothing here
knows what goes over the pipes.
]]

local SIGKILL, SIGTERM = 9, 15

local failure = function(kind, code, message, hint)
	return { kind = kind, code = code, message = message, hint = hint, retryable = false, origin = "sidecar" }
end

local closed_error = function()
	return failure("policy", "session_closed", "the session is closed")
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
	local how = state.status and ("ended with status %d"):format(state.status) or "was ended by a signal"
	return failure(
		"internal",
		"sidecar_died",
		("the agent-smith process %s%s"):format(how, detail),
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
		unsent = "",
		written = 0, -- of `unsent`
		said = "",
		events = {},
		awaited = nil,
		answer = nil,
		next_id = 1,
		closed = false,
		collected = false,
		status = nil,
		gone = nil,
		welcome = nil,
	}
end

return {
	failure = failure,
	closed_error = closed_error,
	SIGKILL = SIGKILL,
	launch = launch,
	wait = wait,
	alive = alive,
	read_errors = read_errors,
	bury = bury,
}
