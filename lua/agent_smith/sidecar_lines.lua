--[[
Lines to and from a sidecar: JSON objects, answers by id, events in order.

`self` is a session of `agent_smith.sidecar`. No write is longer at once than a writable pipe surely takes, and each asks
first whether the child lives: Lua can mask no SIGPIPE.
]]

local process = require("agent_smith.sidecar_process")
local failure, bury = process.failure, process.bury

local take_line = function(self, line)
	local state = self.__state
	local message = self.__host.json.decode(line)
	if type(message) ~= "table" then
		-- No line of ours: something the host had buffered when it forked, or a complaint of the system.
		state.said = (state.said .. line .. "\n"):sub(-self.cfg.keep_bytes)
	elseif type(message.event) == "table" then
		state.events[#state.events + 1] = message.event
	elseif message.id == state.awaited then
		-- Any other answers a call that was interrupted, or that waited long enough.
		state.answer = message
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
	local ready, room = process.wait(self, receivers, senders, math.min(seconds, self.cfg.slice_ms / 1000))
	for _, item in ipairs(ready) do
		if item == state.errors_end then
			process.read_errors(self)
		else
			read_output(self)
		end
	end
	return room ~= nil and #room > 0
end

-- Writes a line whole, or gives the sidecar up: half a line would spoil every later one. What an interrupt leaves
-- unwritten goes before the next line.
local send = function(self, line, id, deadline)
	local state = self.__state
	state.unsent, state.written = state.unsent:sub(state.written + 1) .. line, 0
	state.awaited, state.answer = id, nil
	while state.written < #state.unsent do
		local room = pump(self, deadline - self.__host.now(), true)
		if state.gone then
			return nil, state.gone
		end
		if room then
			if not process.alive(self) then
				-- Its last words are still in the pipe.
				while not state.gone do
					pump(self, self.cfg.slice_ms / 1000)
				end
				return nil, state.gone
			end
			local piece = state.unsent:sub(state.written + 1, state.written + self.cfg.write_bytes)
			local written, err = state.to:write(piece, #piece)
			if not written then
				bury(self, failure("internal", "sidecar_write", "the agent-smith process cannot be reached: " .. tostring(err)))
				return nil, state.gone
			end
			state.written = state.written + written
		elseif self.__host.now() >= deadline then
			if process.alive(self) then
				self.__host.ps.kill(state.pid, process.SIGKILL)
			end
			bury(self, failure("internal", "sidecar_stuck", "the agent-smith process takes no input and was ended"))
			return nil, state.gone
		end
	end
	return true
end

-- The answer to the line that was sent last.
local receive = function(self, deadline)
	local state = self.__state
	while true do
		local answer = state.answer
		if answer then
			state.answer, state.awaited = nil, nil
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

return { pump = pump, send = send, receive = receive }
