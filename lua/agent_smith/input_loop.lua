-- One line from its submission until the session waits for the user again: events come in and are written, asked or
-- shown; Ctrl-C, typed lines and a new window size go out.

local POLL_MS = 50
-- How long a cancelled turn may take to end before the prompt comes back without it.
local CANCEL_PATIENCE_S = 15

local handlers = {}

handlers.render = function(self, data)
	self.writer:render(tostring(data.ansi or ""), data.transient == true)
end

handlers.prefill = function(self, data)
	local prefill = self.__state.prefill
	prefill[#prefill + 1] = tostring(data.text or "")
end

handlers.question = function(self, data)
	self.__state.question, self.__state.asked = data, false
end

-- What came together with the view's opening goes to it first, its first picture is among it; what is not its own comes
-- back to be handled after it.
handlers.open_view = function(self, data)
	self.writer:finish()
	local view = require("agent_smith.view").new(self.host, self.session, data.view_id)
	local waiting = self.__state.waiting
	self.__state.waiting = {}
	local others, problem = view:show(waiting)
	if not others then
		self.writer:line("The view cannot be shown: " .. tostring(problem) .. ".")
		others = waiting
	end
	self.__state.waiting = others
end

handlers.notify = function(self, data)
	self.host:notify(tostring(data.title or ""), tostring(data.body or ""))
end

-- The session waits for input again. It counts the lines it has worked off: those of an earlier run that was left
-- behind do not end this one.
handlers.input_settled = function(self, data)
	local state = self.__state
	if (tonumber(data.inputs) or 0) >= self.session:submitted() then
		state.settled = true
		state.question = nil
	end
	if data.closing == true then
		state.closing = true
	end
end

local __handle = function(self, event)
	local handler = type(event) == "table" and handlers[event.type]
	if handler then
		handler(self, type(event.data) == "table" and event.data or {})
	end
end

local __handle_all = function(self, events)
	local state = self.__state
	state.waiting = events
	while #state.waiting > 0 do
		self:__handle(table.remove(state.waiting, 1))
	end
end

local __watch_cancel = function(self)
	local state = self.__state
	if self.host:cancelled() then
		self.writer:interrupted()
		state.cancels = state.cancels + 1
		state.cancelled_at = state.cancelled_at or self.host:now()
		self.session:cancel(state.cancels == 1 and "turn" or "all")
		state.question = nil
	end
	if state.cancelled_at == nil then
		return
	end
	if state.cancels > 2 or self.host:now() - state.cancelled_at > CANCEL_PATIENCE_S then
		state.left = true
		self.writer:line("The turn is still stopping; its end is shown with your next line.")
	end
end

local __answer = function(self, text)
	local question = self.__state.question
	local value, complaint = require("agent_smith.question").resolve(question, text)
	if value == nil then
		self.writer:line(complaint)
		self.__state.asked = false
		return
	end
	self.__state.question = nil
	self.session:answer(question.id, value)
end

-- Lines typed while the core works: the answer where something was asked, else something to join the turn.
local __watch_typing = function(self)
	if self.__state.question and not self.cfg.screen then
		local text = self.host:next_line()
		if text then
			self:__answer(text)
		else
			self.session:cancel("turn")
			self.__state.question = nil
		end
		return
	end
	local lines = {}
	local text = self.host:typed_line()
	while text do
		self.writer:echoed(text)
		if self.__state.question then
			self:__answer(text)
		elseif text:match("%S") then
			lines[#lines + 1] = text
		end
		text = self.host:typed_line()
	end
	if #lines > 0 then
		self.session:submit(table.concat(lines, "\n"))
	end
end

-- Hands `line` over and stays until the session has worked it off. Gives `{ accepted, prefill, closing, problem }`;
-- a line that was not accepted never reached the core.
local run = function(self, line)
	local state = self.__state
	local accepted, problem = self.session:submit(line)
	while accepted and not state.settled and not state.left do
		local events
		events, problem = self.host:poll(self.session, POLL_MS)
		if not events then
			break
		end
		self:__handle_all(events)
		if #events == 0 and state.question and not state.asked and self.cfg.screen then
			-- By now everything that belongs to the question is shown.
			self.writer:ask()
			state.asked = true
		end
		if not state.settled then
			self:__watch_cancel()
			self:__watch_typing()
			self.session:fit()
		end
	end
	self.writer:finish()
	return {
		accepted = accepted ~= nil,
		prefill = #state.prefill > 0 and table.concat(state.prefill, "\n") or nil,
		closing = state.closing,
		problem = problem,
	}
end

-- Writes what came since the last run, without waiting for more. Gives the prefill, and the problem where the session
-- was lost meanwhile.
local drain = function(self)
	local events, problem = self.session:poll(0)
	for _, event in ipairs(events or {}) do
		if event.type ~= "open_view" and event.type ~= "question" then
			self:__handle(event)
		end
	end
	self.writer:finish()
	return #self.__state.prefill > 0 and table.concat(self.__state.prefill, "\n") or nil, problem
end

local new = function(host, session, writer)
	return {
		cfg = { screen = host:is_screen() },
		host = host,
		session = session,
		writer = writer,
		__state = {
			-- Events that came and are not handled yet.
			waiting = {},
			prefill = {},
			question = nil,
			-- Whether the sign to answer it is shown.
			asked = false,
			settled = false,
			closing = false,
			left = false,
			cancels = 0,
			cancelled_at = nil,
		},
		__handle = __handle,
		__handle_all = __handle_all,
		__answer = __answer,
		__watch_cancel = __watch_cancel,
		__watch_typing = __watch_typing,
		run = run,
		drain = drain,
	}
end

return { new = new }
