-- The part of the 0.6 host that deals with a mode: reads its description, loads what it names, and calls its methods
-- with the terminal in the state the host guarantees. Whatever a mode raises "ends the shell" here as it does there.

local standin = require("standin")

local die = function(self, where, problem)
	self.dead = where .. ": " .. tostring(problem)
	error("THE SHELL DIED: " .. self.dead, 0)
end

local call = function(self, where, fn, ...)
	local out = { standin.within(self.host, fn, ...) }
	if not out[1] then
		die(self, where, out[2])
	end
	return unpack(out, 2, 8)
end

local available = function(name)
	if package.loaded[name] then
		return true
	end
	for _, searcher in ipairs(package.loaders) do
		if type(searcher(name)) == "function" then
			return true
		end
	end
	return false
end

local load_module = function(self, name)
	if not available(name) then
		die(self, "start", "no such module: " .. name)
	end
	return call(self, "load " .. name, require, name)
end

local new_completion = function(self, cfg)
	local module = load_module(self, cfg.path)
	local completion = { __state = { candidates = {}, meta = {}, chosen = 0, sources = {} }, search = module.search }
	completion.flush = function(me)
		me.__state.candidates, me.__state.meta, me.__state.chosen = {}, {}, 0
	end
	completion.provide = function(me, list)
		assert(type(list) == "table")
		me.__state.candidates = list
	end
	completion.set_meta = function(me, meta)
		me.__state.meta = meta
	end
	completion.available = function(me)
		local any = #me.__state.candidates > 0
		me.__state.chosen = any and math.max(me.__state.chosen, 1) or 0
		return any
	end
	completion.source = function(me, name)
		return me.__state.sources[name]
	end
	completion.count = function(me)
		return #me.__state.candidates
	end
	completion.chosen_index = function(me)
		return me.__state.chosen
	end
	completion.meta_at = function(me, index)
		return me.__state.meta[index]
	end
	for _, path in ipairs(cfg.sources or {}) do
		local source = call(self, "source " .. path, load_module(self, path).new)
		completion.__state.sources[path:match("[^.]+$")] = source
	end
	for _, source in pairs(completion.__state.sources) do
		if source.update then
			call(self, "update", source.update, source)
		end
	end
	return completion
end

local new_input = function(self, prompt, completion)
	local input = { lines = { "" }, position = { 1, 1 }, flushed = 0, displayed = 0 }
	input.get_content = function(me)
		return table.concat(me.lines, "\n")
	end
	input.set_content = function(me, text)
		assert(type(text) == "string")
		me.lines = {}
		for line in (text .. "\n"):gmatch("([^\n]*)\n") do
			me.lines[#me.lines + 1] = line
		end
	end
	input.buffer_empty = function(me)
		return #me.lines == 1 and me.lines[1] == ""
	end
	input.flush = function(me)
		me.lines, me.flushed = { "" }, me.flushed + 1
	end
	input.display = function(me)
		me.displayed = me.displayed + 1
		me:prompt_set({ lines = #me.lines, line = #me.lines })
		return me:prompt_get()
	end
	input.set_position = function(me, line, column)
		me.position = { line, column }
	end
	input.prompt_set = function(_, options)
		prompt:set(options)
	end
	input.prompt_get = function()
		return prompt:get()
	end
	input.completion_update = function()
		for _, source in pairs(completion.__state.sources) do
			source:update()
		end
	end
	input.completion_update_source = function(_, name, ...)
		local source = completion:source(name)
		if source and source.update then
			source:update(...)
		end
	end
	input.add_to_history = function() end
	input.max_width = function()
		return self.host.cols
	end
	return setmetatable(input, {
		__index = function(_, key)
			local what = "the input has no " .. tostring(key)
			self.host.violations[#self.host.violations + 1] = debug.traceback(what, 2)
			error(what, 2)
		end,
	})
end

-- The host's promises to a run, and what it needs back.
local check_after = function(self, where)
	local host = self.host
	for what, wrong in pairs({
		["a raw terminal"] = host.raw,
		["the second screen"] = host.alternate,
		["a hidden cursor"] = host.cursor_hidden,
		["keyboard flags"] = host.keyboard ~= 0,
		["bracketed paste"] = host.paste,
		["SIGINT that kills the shell"] = host.sigint ~= "harmless",
	}) do
		if wrong then
			error(where .. " left " .. what, 0)
		end
	end
end

local redraw = function(self)
	return call(self, "prompt", self.input.display, self.input)
end

-- ENTER on `line`. Gives what the mode's run gave.
local enter = function(self, line)
	self.input:set_content(line)
	self.host.raw, self.host.keyboard, self.host.paste = false, 0, false
	self.host.output[#self.host.output + 1] = "\r\n"
	local status, err, next_input, skip = call(self, "run", self.mode.run, self.mode)
	check_after(self, "run()")
	if status == nil and err == nil then
		status = 0
	end
	assert(type(status) == "number", "run() gives a number")
	assert(next_input == nil or type(next_input) == "string", "the prefill is text")
	local text = self.host.text()
	local at_line_start = text:sub(-1) == "\n" or text:match("\r\27%[J$") or text:match("\r\27%[%d+A\27%[J$")
	if not at_line_start then
		error("the prompt would overwrite the last line of: " .. text:sub(-60), 0)
	end
	self.input.lines = { "" }
	if next_input then
		self.input:set_content(next_input)
	end
	redraw(self)
	return status, err, next_input, skip
end

-- A key combination at the prompt; says whether the mode took it.
local combo = function(self, name)
	local can = call(self, "can_handle_combo", self.mode.can_handle_combo, self.mode, name)
	if can then
		self.host.raw, self.host.keyboard, self.host.paste = false, 0, false
		local again = call(self, "handle_combo", self.mode.handle_combo, self.mode, name)
		check_after(self, "handle_combo()")
		if again then
			redraw(self)
		end
	end
	return can
end

-- Characters typed at the end of the line; gives the candidates after the last.
local type_text = function(self, text)
	local state = self.completion.__state
	for char in text:gmatch("[%z\1-\127\194-\244][\128-\191]*") do
		local last = #self.input.lines
		self.input.lines[last] = self.input.lines[last] .. char
		if char:match("%s") then
			self.completion:flush()
		else
			self.host.raw, self.host.keyboard, self.host.paste = true, 1, true
			call(self, "completion", self.completion.search, self.completion, self.input.lines[last], nil)
			call(self, "prompt", self.input.prompt_get, self.input)
			self.host.raw, self.host.keyboard, self.host.paste = false, 0, false
		end
	end
	return state.candidates, state.meta
end

local activate = function(self)
	local ok, err = call(self, "on_activate", self.mode.on_activate, self.mode)
	check_after(self, "on_activate()")
	redraw(self)
	return ok, err
end

-- What our own host does between the start and the first line.
local greet = function(self)
	call(self, "greet", self.mode.greet, self.mode)
	check_after(self, "greet()")
	redraw(self)
end

-- Starts the shell with a mode's description. Raises where the real one would not start.
local new = function(host, description)
	local self = { host = host, dead = nil }
	local prompt = call(self, "prompt.new", load_module(self, description.prompt).new)
	self.completion = new_completion(self, description.completion)
	local module = load_module(self, description.path)
	self.input = new_input(self, prompt, self.completion)
	self.mode = call(self, "new()", module.new, self.input, description)
	for _, name in ipairs({ "get_input", "can_handle_combo", "handle_combo", "run" }) do
		if type(self.mode[name]) ~= "function" then
			die(self, "start", "the mode has no " .. name)
		end
	end
	self.enter, self.combo, self.type, self.activate, self.greet = enter, combo, type_text, activate, greet
	return self
end

return { new = new }
