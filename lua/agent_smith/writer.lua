-- The one writer of a run: finished pieces from the core go to the terminal through here and nowhere else.
--
-- A transient piece (spinner, status) stands below everything else until the next piece comes, which erases it first.
-- Lines of the core end with "\n"; where the terminal is raw they need "\r\n".

local cells = require("agent_smith.cells")

-- The text without escape sequences.
local visible = function(text)
	return (text:gsub("\27%][^\7\27]*\7", ""):gsub("\27%][^\27]*\27\\", ""):gsub("\27%[[0-9;:?<>=]*[ -/]*[@-~]", ""))
end

-- By how many rows `text` moves the cursor down in a terminal of `cols` columns.
local rows_down = function(text, cols)
	local rows = 0
	for line, line_end in visible(text):gmatch("([^\n]*)(\n?)") do
		local wide = cells.of(line)
		if cols > 0 and wide > cols then
			rows = rows + math.floor((wide - 1) / cols)
		end
		if line_end == "\n" then
			rows = rows + 1
		end
	end
	return rows
end

local __emit = function(self, text)
	local state = self.__state
	if state.lead ~= "" then
		text, state.lead = state.lead .. text, ""
	end
	state.wrote = true
	if self.host:is_raw() then
		text = text:gsub("\r?\n", "\r\n")
	end
	self.host:write(text)
end

-- What erases the transient piece that is shown, as escape sequences; the cursor is then where it began.
local __erasure = function(self)
	local state = self.__state
	if not state.transient then
		return ""
	end
	-- Measured by the width of now: a terminal that became narrower has broken its lines anew.
	local _, cols = self.host:window_size()
	local rows = rows_down(state.transient, cols or 80)
	state.transient = nil
	local up = rows > 0 and ("\27[" .. rows .. "A") or ""
	return "\r" .. up .. "\27[J"
end

-- Writes a piece of the core's rendering.
local render = function(self, ansi, transient)
	local state = self.__state
	local out = self:__erasure()
	if transient then
		-- Never on a line that stays: what begins in its middle could not be taken back without it.
		if self.cfg.transients and state.line_start then
			state.transient = ansi
			out = out .. ansi
		end
		if out ~= "" then
			self:__emit(out)
		end
		return
	end
	if ansi == "" and out == "" then
		return
	end
	local seen = visible(ansi)
	if seen ~= "" then
		state.line_start = seen:sub(-1) == "\n"
	end
	self:__emit(out .. ansi)
end

-- Writes a line of the shim's own.
local line = function(self, text)
	local state = self.__state
	self:render((state.line_start and "" or "\n") .. text .. "\n", false)
end

-- The terminal echoed a line the user typed and its end.
local echoed = function(self, text)
	local state = self.__state
	if state.transient then
		state.transient = state.transient .. text .. "\n"
	end
	state.line_start = true
end

-- Ends the run's output: nothing transient stays, and the cursor is at the start of a line.
local finish = function(self)
	local state = self.__state
	local out = self:__erasure()
	if not state.line_start then
		out = out .. "\n"
		state.line_start = true
	end
	if out ~= "" then
		self:__emit(out)
	end
end

-- Sets what was written apart from what comes next.
local set_apart = function(self)
	if self.__state.wrote then
		self:render("\n", false)
	end
end

local wrote = function(self)
	return self.__state.wrote
end

-- `options.transients`: whether the terminal can take back what was written; `options.lead`: what has to go out before
-- the first piece.
local new = function(host, options)
	options = options or {}
	return {
		cfg = { transients = options.transients ~= false },
		host = host,
		__state = { line_start = true, transient = nil, lead = options.lead or "", wrote = false },
		__emit = __emit,
		__erasure = __erasure,
		render = render,
		line = line,
		echoed = echoed,
		finish = finish,
		set_apart = set_apart,
		wrote = wrote,
	}
end

return { new = new, visible = visible, rows_down = rows_down }
