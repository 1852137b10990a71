-- The mode: what happens on a line, on a key combination and on a switch to it.

local keys = require("agent_smith.keys")
local hosts = require("agent_smith.host")
local input_loop = require("agent_smith.input_loop")
local sessions = require("agent_smith.session")
local writers = require("agent_smith.writer")

-- The name of the completion source: the last part of its module's name.
local SOURCE = "source"
-- The command that shows the conversation.
local CONVERSATION = "/pager"

-- A problem in one line, the next step in brackets.
local explain = function(problem)
	local text = "agent_smith: " .. problem.message
	if problem.hint then
		text = text .. " (" .. problem.hint .. ")"
	end
	return (text:gsub("%s*[\r\n]+%s*", " "))
end

local __writer = function(self, lead)
	return writers.new(self.host, { transients = self.host:is_screen(), lead = lead })
end

-- Brings prompt, keys and completion to what the core says now.
local __refresh = function(self)
	local state = self.__state
	local status = state.session:is_open() and state.session:status() or nil
	local shown = { online = status ~= nil }
	if type(status) == "table" then
		shown.text = status.prompt
		shown.label = status.label
		shown.model = status.model
		shown.state = status.state
		state.combos = keys.actions(status.keys or self.cfg.keys)
	end
	state.input:prompt_set(shown)
	state.input:completion_update_source(SOURCE, function(line, cursor)
		if not state.session:is_open() then
			return nil
		end
		return state.session:complete(line, cursor)
	end)
end

-- Colours the user changed since the session last heard of them.
local __follow_theme = function(self)
	local state = self.__state
	local styles = self.host:theme_styles("agent_smith")
	local palette, version = require("agent_smith.theme").palette()
	if state.session:is_open() and (styles ~= state.styles or version ~= state.palette_version) then
		state.session:theme({ palette = palette, styles = styles })
	end
	state.styles, state.palette_version = styles, version
end

-- Runs a line to its end; gives what the loop gives. Ctrl-C is watched from before the line goes out until after its
-- last event, whatever happens in between.
local __work = function(self, line, lead)
	local state = self.__state
	local writer = self:__writer(lead)
	self.host:arm_cancel()
	local ok, outcome = pcall(function()
		self:__follow_theme()
		state.session:fit()
		return input_loop.new(self.host, state.session, writer):run(line)
	end)
	self.host:disarm_cancel()
	if not ok then
		state.session:cancel("turn")
		writer:finish()
		error(outcome, 0)
	end
	if outcome.closing then
		state.session:close()
		state.wants_exit = true
	end
	return outcome, writer
end

-- Opens the session where there is none, and tells where an earlier one was lost. Gives what it still had for the input
-- line; false and the problem where no session can be had.
local __open = function(self)
	local session = self.__state.session
	local open, problem = session:ensure()
	if not open then
		return false, problem
	end
	local writer = self:__writer("")
	local waiting, lost = input_loop.new(self.host, session, writer):drain()
	if lost and not session:is_open() then
		writer:line(explain(lost))
		open, problem = session:ensure()
		if not open then
			return false, problem
		end
	end
	return waiting
end

local run = function(self)
	local state = self.__state
	local line = state.input:get_content()
	state.wants_exit = false
	local outcome, writer, waiting, problem
	-- Twice at most: a session that was gone before it took the line is opened anew.
	for _ = 1, 2 do
		waiting, problem = self:__open()
		if waiting == false then
			return 1, explain(problem), line
		end
		outcome, writer = self:__work(line, "")
		if outcome.accepted or not outcome.problem.lost then
			break
		end
	end
	self:__refresh()
	if outcome.problem then
		return 1, explain(outcome.problem), not outcome.accepted and line or nil
	end
	if not outcome.closing then
		writer:set_apart()
	end
	return 0, nil, outcome.prefill or waiting
end

local can_handle_combo = function(self, combo)
	return self.__state.combos[combo] ~= nil
end

local combo_actions = {}

-- At the prompt no turn runs: what is in the background stops, and the line is given up.
combo_actions.cancel = function(self)
	local state = self.__state
	if state.session:is_open() then
		state.session:cancel("all")
	end
	state.input:flush()
	return true
end

-- What a combination prints stays above the input line.
local keep_above = function(self, writer)
	if writer:wrote() then
		self.host:place_input(self.__state.input)
	end
	return true
end

-- Runs the command that opens the conversation's view.
combo_actions.conversation = function(self)
	local open, problem = self.__state.session:ensure()
	local writer
	if open then
		local outcome
		outcome, writer = self:__work(CONVERSATION, "\n")
		problem = outcome.problem
	end
	if problem then
		writer = writer or self:__writer("\n")
		writer:line(explain(problem))
	end
	self:__refresh()
	return keep_above(self, writer)
end

combo_actions.inspect = function(self)
	local writer = self:__writer("\n")
	writer:line("The inspector is not there yet. " .. CONVERSATION .. " shows the conversation.")
	return keep_above(self, writer)
end

local handle_combo = function(self, combo)
	local action = combo_actions[self.__state.combos[combo]]
	return action ~= nil and action(self)
end

local on_activate = function(self)
	self.__state.session:ensure()
	self:__refresh()
	return true
end

-- Tells what there is to tell before the first line, where the host shows what is written between two lines.
local greet = function(self)
	local waiting, problem = self:__open()
	if waiting == false then
		self:__writer(""):line(explain(problem))
	elseif waiting then
		self.__state.input:set_content(waiting)
	end
	self:__refresh()
end

local wants_exit = function(self)
	return self.__state.wants_exit
end

-- Tells what went wrong where nothing could be printed.
local report = function(self, faults)
	local writer = self:__writer("")
	for _, fault in ipairs(faults) do
		writer:line("agent_smith: " .. fault)
	end
end

local new = function(input, cfg)
	local host = hosts.new(cfg)
	return {
		cfg = cfg,
		host = host,
		__state = {
			input = input,
			session = sessions.new(host, cfg),
			combos = keys.actions(cfg.keys),
			styles = nil,
			palette_version = nil,
			wants_exit = false,
		},
		__writer = __writer,
		__open = __open,
		__refresh = __refresh,
		__follow_theme = __follow_theme,
		__work = __work,
		run = run,
		can_handle_combo = can_handle_combo,
		handle_combo = handle_combo,
		on_activate = on_activate,
		greet = greet,
		wants_exit = wants_exit,
		report = report,
	}
end

return { new = new }
