-- The host's side of a mode: the input line, the completion and the prompt a mode is given, and one table of functions
-- through which the line editor reaches all of them.
--
-- The objects are those of the first generation's shell, as far as a mode may use them; here the line itself lives in
-- the line editor, and these only carry it there and back.

local new_completion = function(description, load)
	local state = { candidates = {}, meta = {}, sources = {} }
	local completion = { __state = state, search = load(description.path).search }
	completion.flush = function()
		state.candidates, state.meta = {}, {}
	end
	completion.provide = function(_, list)
		state.candidates = list or {}
	end
	completion.set_meta = function(_, meta)
		state.meta = meta or {}
	end
	completion.available = function()
		return #state.candidates > 0
	end
	completion.count = function()
		return #state.candidates
	end
	completion.chosen_index = function()
		return #state.candidates > 0 and 1 or 0
	end
	completion.meta_at = function(_, index)
		return state.meta[index]
	end
	completion.source = function(_, name)
		return state.sources[name]
	end
	completion.update = function()
		for _, source in pairs(state.sources) do
			if source.update then
				source:update()
			end
		end
	end
	for _, path in ipairs(description.sources or {}) do
		state.sources[path:match("[^.]+$")] = load(path).new()
	end
	completion:update()
	return completion
end

local new_input = function(prompt, completion, width)
	local state = { content = "" }
	local input = { __state = state }
	input.get_content = function()
		return state.content
	end
	input.set_content = function(_, text)
		state.content = tostring(text or "")
	end
	input.flush = function()
		state.content = ""
	end
	input.buffer_empty = function()
		return state.content == ""
	end
	-- The line editor finds its place by itself and draws after every call.
	input.set_position = function() end
	input.display = function() end
	input.add_to_history = function() end
	input.max_width = function()
		return width()
	end
	input.prompt_set = function(_, options)
		if prompt and prompt.set then
			prompt:set(options)
		end
	end
	input.prompt_get = function()
		return prompt and prompt:get() or ""
	end
	input.completion_update = function()
		if completion then
			completion:update()
		end
	end
	input.completion_update_source = function(_, name, ...)
		local source = completion and completion:source(name)
		if source and source.update then
			source:update(...)
		end
	end
	return input
end

-- The candidates for `line`, the cursor at its end: `{ value, start, display, hint }`, `value` replacing the line from
-- byte `start` on.
local complete = function(completion, line)
	if not completion or not completion:search(line, nil) then
		return {}
	end
	local out = {}
	local word = (line:find("%S*$") or #line + 1) - 1
	for index, suffix in ipairs(completion.__state.candidates) do
		local meta = completion:meta_at(index) or {}
		local item = { display = meta.display, hint = meta.hint }
		if type(meta.replace_prompt) == "string" then
			-- What stays of the line is not part of the replacement.
			local kept = #meta.replace_prompt
			local same = kept <= #line and line:sub(1, kept) == meta.replace_prompt
			item.start = same and kept or 0
			item.value = same and suffix or meta.replace_prompt .. suffix
		else
			item.start = word
			item.value = line:sub(word + 1) .. suffix
			item.suffix = suffix
		end
		out[#out + 1] = item
	end
	return out
end

-- `description`: a mode as the manifest has it; `load`: gives a module by its name; `width`: the terminal's columns.
return function(description, load, width)
	local prompt = description.prompt and load(description.prompt).new()
	local completion = description.completion and new_completion(description.completion, load)
	local input = new_input(prompt, completion, width)
	local mode = load(description.path).new(input, description)
	local handle = {}
	handle.prompt = function()
		return tostring(input:prompt_get() or "")
	end
	handle.set_lines = function(lines, line)
		input:prompt_set({ lines = lines, line = line })
	end
	handle.run = function(line)
		input:set_content(line)
		local status, err, next_input, skip_history = mode:run()
		if status == nil and err == nil then
			status = 0
		end
		local leave = type(mode.wants_exit) == "function" and mode:wants_exit() == true
		input:flush()
		return status, err, next_input, skip_history == true, leave
	end
	handle.takes = function(combo)
		return mode:can_handle_combo(combo) == true
	end
	handle.combo = function(combo, line)
		input:set_content(line)
		mode:handle_combo(combo)
		local content = input:get_content()
		input:flush()
		return content
	end
	handle.activate = function()
		if type(mode.on_activate) ~= "function" then
			return true
		end
		return mode:on_activate()
	end
	-- Gives what the first line begins with.
	handle.greet = function()
		if type(mode.greet) == "function" then
			mode:greet()
		end
		local content = input:get_content()
		input:flush()
		return content
	end
	handle.complete = function(line)
		return complete(completion, line)
	end
	return handle
end
