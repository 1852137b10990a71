-- The host: the only file that knows which shell this is, of which generation, and what its modules are called.
--
-- Two generations are in the field. The first has blocking calls only. The second runs everything inside an event loop
-- (`lev`) that a blocked call would stop for everybody, so waiting there means sleeping in that loop. Everything else
-- is asked for by name and done without where it is missing.
--
-- Nothing in here raises: a call that fails gives nil and the reason.

local SIGINT = 2
-- How long one sleep in the second generation's loop lasts: what an event waits at most.
local LOOP_SLICE_MS = 15
local STDIN = {
	getfd = function()
		return 0
	end,
	dirty = function()
		return false
	end,
}

local optional = function(name)
	local ok, module = pcall(require, name)
	if ok and type(module) == "table" then
		return module
	end
	return nil
end

local try = function(fn, ...)
	if type(fn) ~= "function" then
		return nil, "the host does not offer this"
	end
	local ok, a, b, c = pcall(fn, ...)
	if ok then
		return a, b, c
	end
	return nil, tostring(a)
end

-- `module[name](...)`, nil and the reason where that cannot be.
local __do = function(self, module, name, ...)
	local loaded = self.__state.modules[module]
	if loaded == nil then
		loaded = optional(module) or false
		self.__state.modules[module] = loaded
	end
	if not loaded then
		return nil, "the host has no module " .. module
	end
	local ok, fn = pcall(function()
		return loaded[name]
	end)
	return try(ok and fn or nil, ...)
end

local write = function(self, bytes)
	return self:__do("term", "write", bytes)
end

-- Rows and columns; asked for each time, because the flag that says they changed belongs to the host's own input.
local window_size = function(self)
	local rows, cols = self:__do("term", "window_size")
	return tonumber(rows), tonumber(cols)
end

local is_raw = function(self)
	return self:__do("term", "raw_mode") == true
end

local env = function(_, name)
	return try(os.getenv, name)
end

local is_dumb = function(self)
	local kind = self:env("TERM") or ""
	return kind == "dumb" or kind == ""
end

-- Whether this is a terminal that can move its cursor.
local is_screen = function(self)
	return self:__do("term", "is_tty") == true and not self:is_dumb()
end

local colors = function(self)
	local no_color = self:env("NO_COLOR")
	if (no_color and no_color ~= "") or not self:is_screen() then
		return 0
	end
	local depth = self:env("COLORTERM")
	local kind = self:env("TERM") or ""
	local true_color = { "kitty", "ghostty", "alacritty", "foot", "wezterm", "direct" }
	if depth == "truecolor" or depth == "24bit" then
		return 16777216
	end
	for _, word in ipairs(true_color) do
		if kind:find(word, 1, true) then
			return 16777216
		end
	end
	if kind:find("256color", 1, true) or kind:find("tmux", 1, true) or kind:find("screen", 1, true) then
		return 256
	end
	return 16
end

local speaks_kitty = function(self)
	return self:is_screen()
		and ((self:env("TERM") or ""):find("kitty", 1, true) ~= nil or self:env("KITTY_WINDOW_ID") ~= nil)
end

local is_unicode = function(self)
	for _, name in ipairs({ "LC_ALL", "LC_CTYPE", "LANG" }) do
		local value = self:env(name)
		if value and value ~= "" then
			return value:upper():find("UTF%-?8") ~= nil
		end
	end
	return false
end

-- What the contract's `hello` says of the terminal.
local term_info = function(self)
	local rows, cols = self:window_size()
	return {
		cols = cols or 80,
		rows = rows or 24,
		colors = self:colors(),
		unicode = self:is_unicode(),
		graphics = self:speaks_kitty(),
		text_sizing = false,
		is_tty = self:is_screen(),
	}
end

-- What the contract's `hello` says of the program around us.
local describe = function(self)
	local told = self.cfg.host
	if type(told) == "table" and type(told.name) == "string" then
		return { name = told.name, version = tostring(told.version or "") }
	end
	return { name = "lilush", version = self.__state.lev and "current" or "0.6" }
end

local cwd = function(self)
	local std = optional("std")
	local dir = try(std and std.fs and std.fs.cwd)
	return dir or self:env("PWD") or "/"
end

-- The environment as it is now; nil where the host cannot tell.
local environ = function(self)
	local vars = self:__do("std", "environ")
	return type(vars) == "table" and vars or nil
end

-- JSON's null, which is the same value for both carriers.
local null = function()
	local json = optional("cjson.safe")
	return json and json.null
end

-- This process, for the record of which terminal has which conversation open.
local pid = function(self)
	local std = optional("std")
	local stat = try(std and std.fs and std.fs.read_file, "/proc/self/stat")
	return tonumber(type(stat) == "string" and stat:match("^(%d+)") or nil) or 0
end

local now = function(self)
	return tonumber((self:__do("socket", "gettime"))) or os.time()
end

-- The session's next events; waits up to `ms` for the first.
local poll = function(self, session, ms)
	local lev = self.__state.lev
	if not lev then
		return session:poll(ms)
	end
	while true do
		local events, problem = session:poll(0)
		if not events or #events > 0 or ms <= 0 then
			return events, problem
		end
		local slice = math.min(ms, LOOP_SLICE_MS)
		try(lev.sleep, slice / 1000)
		ms = ms - slice
	end
end

-- From here on Ctrl-C is noted and does not end anything.
local arm_cancel = function(self)
	self:__do("term", "install_cancel_handler")
end

-- Whether Ctrl-C came since it was last asked.
local cancelled = function(self)
	return self:__do("term", "check_cancel") == true
end

-- The end of `arm_cancel`. Taking the handler off leaves SIGINT at its default, with which the next Ctrl-C would end the
-- whole shell; the host's own harmless handler goes back in its place.
local disarm_cancel = function(self)
	self:__do("term", "remove_cancel_handler")
	self:__do("std.core", "register_signal", SIGINT)
end

-- A whole line typed meanwhile, without waiting; nil where there is none. The terminal is in its line mode, so what is
-- readable is a line.
local typed_line = function(self)
	if self:__do("term", "is_tty") ~= true then
		return nil
	end
	local ready = self:__do("socket", "select", { STDIN }, nil, 0)
	if type(ready) ~= "table" or #ready == 0 then
		return nil
	end
	return (try(io.read, "*l"))
end

-- The next line of standard input, however long it takes; nil at its end. For answers where nobody sits at a terminal.
local next_line = function(_)
	return (try(io.read, "*l"))
end

-- A full-screen surface: `key()` gives the next key's name, nil after a moment, or nil and the reason where keys cannot
-- be read; `close()` brings back what was there.
local screen = function(self)
	local surface = self:__do("term", "alt_screen")
	if type(surface) ~= "table" then
		return nil
	end
	return {
		key = function()
			local name, problem = self:__do("term", "simple_get")
			return name, problem
		end,
		close = function()
			try(surface.done, surface)
			self:__do("term", "show_cursor")
			self:__do("term", "set_sane_mode")
		end,
	}
end

-- After a combination printed something: tells the input where the cursor is now, or its redraw overwrites it.
local place_input = function(self, input)
	self:__do("term", "set_raw_mode")
	local row = self:__do("term", "cursor_position")
	self:__do("term", "set_sane_mode")
	if tonumber(row) then
		try(input.set_position, input, row, 1)
	end
end

local notify = function(self, title, body)
	if self:speaks_kitty() then
		self:__do("term", "kitty_notify", title, body)
	end
end

-- The theme section's styles as the user's theme has them, where the host themes sections.
local theme_styles = function(self, section)
	local state = self.__state
	if not state.lev then
		-- The first generation knows its own sections only.
		return nil
	end
	if state.theme_getter == nil then
		state.theme_getter = self:__do("theme", "subscribe", section) or false
	end
	if state.theme_getter then
		local styles = try(state.theme_getter)
		return type(styles) == "table" and styles or nil
	end
	return nil
end

-- Brings the terminal and the signals back to what the host expects, from wherever they are. `in_output`: the cursor may
-- be in the middle of a line, which has to be ended.
local recover = function(in_output)
	local term = optional("term")
	if term then
		if in_output then
			pcall(function()
				term.write("\r\n")
			end)
		end
		for _, name in ipairs({ "show_cursor", "set_sane_mode", "remove_cancel_handler" }) do
			pcall(function()
				term[name]()
			end)
		end
	end
	pcall(function()
		require("std.core").register_signal(SIGINT)
	end)
end

-- `cfg`: the mode's configuration as the host passed it.
local new = function(cfg)
	return {
		cfg = cfg or {},
		__state = { modules = {}, lev = optional("lev"), theme_getter = nil },
		__do = __do,
		write = write,
		window_size = window_size,
		is_raw = is_raw,
		env = env,
		is_dumb = is_dumb,
		is_screen = is_screen,
		colors = colors,
		speaks_kitty = speaks_kitty,
		is_unicode = is_unicode,
		term_info = term_info,
		describe = describe,
		cwd = cwd,
		environ = environ,
		null = null,
		pid = pid,
		now = now,
		poll = poll,
		arm_cancel = arm_cancel,
		cancelled = cancelled,
		disarm_cancel = disarm_cancel,
		typed_line = typed_line,
		next_line = next_line,
		screen = screen,
		place_input = place_input,
		notify = notify,
		theme_styles = theme_styles,
	}
end

return { new = new, recover = recover }
