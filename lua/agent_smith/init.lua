-- The mode's entry: whatever the host calls goes through here, and nothing it calls can raise.
--
-- The host does not contain a mode's errors: one that escapes ends the user's shell, some of them with the terminal
-- left raw. So this file is plain Lua that needs nothing, loads all the rest when it is first used, and calls it under
-- pcall only.

local MAX_FAULTS = 5

-- A load that failed leaves a mark with which the next one would only say "loop or previous error".
local forget_failed_loads = function()
	for name, value in pairs(package.loaded) do
		if type(value) ~= "table" and tostring(name):match("^agent_smith%.") then
			package.loaded[name] = nil
		end
	end
end

-- The adapter that does the work, made at its first use; nil and the reason where it cannot be made.
local __adapter = function(self)
	local state = self.__state
	if state.adapter then
		return state.adapter
	end
	local ok, made = pcall(function()
		return require("agent_smith.mode").new(state.input, self.cfg)
	end)
	if not ok then
		pcall(forget_failed_loads)
		return nil, made
	end
	state.adapter = made
	return made
end

local __call = function(self, method, ...)
	local adapter, problem = self:__adapter()
	if not adapter then
		return false, problem
	end
	return pcall(adapter[method], adapter, ...)
end

-- Keeps what went wrong where nothing can be printed, to be told with the next line.
local __fault = function(self, where, problem)
	local faults = self.__state.faults
	if #faults < MAX_FAULTS then
		faults[#faults + 1] = where .. ": " .. tostring(problem)
	end
end

-- Whatever state the terminal was left in, back to what the host expects; `in_output`: the cursor may be in a line.
local __recover = function(in_output)
	pcall(function()
		require("agent_smith.host").recover(in_output)
	end)
end

local get_input = function(self)
	return self.__state.input
end

local run = function(self)
	local faults = self.__state.faults
	if #faults > 0 then
		self.__state.faults = {}
		self:__call("report", faults)
	end
	local ok, status, err, next_input, skip_history = self:__call("run")
	if ok then
		return status, err, next_input, skip_history
	end
	self.__recover(true)
	-- The line comes back into the input: a fault of ours must not cost what the user typed.
	local kept, line = pcall(function()
		return self.__state.input:get_content()
	end)
	return 1, "agent_smith: " .. tostring(status), kept and line or nil
end

local can_handle_combo = function(self, combo)
	local ok, can = self:__call("can_handle_combo", combo)
	if not ok then
		self:__fault("keys", can)
		return false
	end
	return can == true
end

local handle_combo = function(self, combo)
	local ok, redraw = self:__call("handle_combo", combo)
	if not ok then
		self.__recover()
		self:__fault(tostring(combo), redraw)
		return true
	end
	return redraw == true
end

-- Always true: the host wipes what a refused activation has to say, so it is said with the first line instead.
local on_activate = function(self)
	local ok, problem = self:__call("on_activate")
	if not ok then
		self.__recover()
		self:__fault("activation", problem)
	end
	return true
end

-- For hosts that can show something before the first line.
local greet = function(self)
	local ok, problem = self:__call("greet")
	if not ok then
		self.__recover(true)
		self:__fault("greeting", problem)
	end
end

-- For hosts that can end with the mode: whether the user asked to leave.
local wants_exit = function(self)
	local ok, wants = self:__call("wants_exit")
	return ok and wants == true
end

local new = function(input, cfg)
	return {
		cfg = type(cfg) == "table" and cfg or {},
		__state = { input = input, adapter = nil, faults = {} },
		__adapter = __adapter,
		__call = __call,
		__fault = __fault,
		__recover = __recover,
		get_input = get_input,
		run = run,
		can_handle_combo = can_handle_combo,
		handle_combo = handle_combo,
		on_activate = on_activate,
		greet = greet,
		wants_exit = wants_exit,
	}
end

return { new = new }
