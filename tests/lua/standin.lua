-- A strict stand-in of the 0.6 host's modules: it offers exactly what is known of them, keeps the terminal's state, and
-- remembers every breach of their rules, so that a pcall around the breach does not hide it.
--
--     local host = standin.new()          -- fresh state, its modules in package.loaded
--     host.violations                     -- what was done against the rules
--     host.faults["term.write"] = "boom"  -- from now on that call raises

local json = require("json")

local NAMES = { "term", "term.tss", "theme", "std", "std.core", "std.ps", "cjson", "cjson.safe", "socket", "string.buffer" }

local new = function(options)
	options = options or {}
	local host = {
		violations = {},
		faults = {},
		calls = {},
		raw = false,
		keyboard = 0,
		paste = false,
		cursor_hidden = false,
		alternate = false,
		rows = options.rows or 24,
		cols = options.cols or 80,
		tty = options.tty ~= false,
		output = {},
		screen = {},
		keys = {},
		typed = {},
		-- SIGINT: "harmless" as the host registers it, "noted" with the cancel handler, "default" kills the shell.
		sigint = "harmless",
		interrupted = false,
		env = options.env or { HOME = "/home/u", TERM = "xterm-kitty", LANG = "C.UTF-8", PATH = "/bin" },
		cwd = options.cwd or "/work dir",
		time = 1000,
		before = nil,
	}
	-- The system behind the stand-in, for tests with a core of its own process: `{ ps, socket }`.
	local real = options.real

	local breach = function(what)
		host.violations[#host.violations + 1] = debug.traceback(what, 3)
		error(what, 3)
	end

	local want = function(kind, value, what)
		if type(value) ~= kind then
			breach(what .. " wants a " .. kind .. ", got a " .. type(value))
		end
	end

	-- A module that has these functions and nothing else.
	local strict = function(name, functions)
		local module = {}
		for key, fn in pairs(functions) do
			if type(fn) == "function" then
				local full = name .. "." .. key
				module[key] = function(...)
					host.calls[full] = (host.calls[full] or 0) + 1
					if host.before then
						host.before(full)
					end
					if host.faults[full] then
						error(host.faults[full], 0)
					end
					return fn(...)
				end
			else
				module[key] = fn
			end
		end
		return setmetatable(module, {
			__index = function(_, key)
				breach("the host has no " .. name .. "." .. tostring(key))
			end,
			__newindex = function(_, key)
				breach("nobody changes " .. name .. "." .. tostring(key))
			end,
		})
	end

	local put = function(text)
		host.output[#host.output + 1] = text
	end

	local term = strict("term", {
		write = function(text)
			want("string", text, "term.write")
			if host.raw and not host.alternate and text:gsub("\r\n", ""):find("\n") then
				breach("a bare line feed on a raw terminal: " .. text)
			end
			put(text)
			for mode, hidden in pairs({ ["\27[?25l"] = true, ["\27[?25h"] = false }) do
				if text:find(mode, 1, true) then
					host.cursor_hidden = hidden
				end
			end
		end,
		write_at = function(line, column, text)
			want("number", line, "term.write_at")
			want("number", column, "term.write_at")
			put(text)
		end,
		go = function(line, column)
			want("number", line, "term.go")
			want("number", column, "term.go")
		end,
		move = function(direction)
			want("string", direction, "term.move")
		end,
		clear = function() end,
		clear_line = function() end,
		cursor_position = function()
			if not host.raw then
				breach("term.cursor_position works on a raw terminal only")
			end
			return 7, 1
		end,
		window_size = function()
			return host.rows, host.cols
		end,
		resized = function()
			breach("the flag behind term.resized belongs to the host's input")
		end,
		is_tty = function()
			return host.tty
		end,
		raw_mode = function()
			return host.raw
		end,
		set_raw_mode = function()
			host.raw = true
		end,
		set_sane_mode = function()
			host.raw = false
		end,
		alt_screen = function()
			host.raw, host.alternate, host.cursor_hidden = true, true, true
			host.keyboard, host.paste = host.keyboard + 1, true
			return {
				done = function()
					if not host.alternate then
						breach("alt_screen().done twice")
					end
					host.raw, host.alternate, host.cursor_hidden = false, false, false
					host.keyboard, host.paste = host.keyboard - 1, false
				end,
			}
		end,
		hide_cursor = function()
			host.cursor_hidden = true
		end,
		show_cursor = function()
			host.cursor_hidden = false
		end,
		enable_kkbp = function()
			host.keyboard = host.keyboard + 1
		end,
		disable_kkbp = function()
			host.keyboard = host.keyboard - 1
		end,
		title = function(text)
			want("string", text, "term.title")
		end,
		kitty_notify = function(title, body)
			want("string", title, "term.kitty_notify")
			want("string", body, "term.kitty_notify")
			host.notified = title .. ": " .. body
		end,
		simple_get = function()
			if not host.raw then
				breach("term.simple_get works on a raw terminal only")
			end
			host.time = host.time + 0.1
			return table.remove(host.keys, 1)
		end,
		get = function()
			breach("use simple_get")
		end,
		get_pixel_dimensions = function()
			return nil
		end,
		install_cancel_handler = function()
			host.sigint, host.interrupted = "noted", false
			return true
		end,
		remove_cancel_handler = function()
			host.sigint, host.interrupted = "default", false
			return true
		end,
		check_cancel = function()
			local was = host.interrupted
			host.interrupted = false
			return was
		end,
	})

	local fs = strict("std.fs", {
		cwd = function()
			return host.cwd
		end,
		read_file = function(path)
			want("string", path, "std.fs.read_file")
			if path == "/proc/self/stat" then
				return "4242 (lilush) S 1"
			end
			return nil, "no such file"
		end,
		write_file = function() end,
		mkdir = function() end,
		stat = function() end,
		list_files = function() end,
	})

	local std = strict("std", {
		fs = fs,
		environ = function()
			local copy = {}
			for key, value in pairs(host.env) do
				copy[key] = value
			end
			return copy
		end,
		sleep_ms = function(ms)
			want("number", ms, "std.sleep_ms")
			host.time = host.time + ms / 1000
		end,
		clockticks = function()
			return host.time
		end,
		progress_icon = function()
			breach("a second writer on the terminal")
		end,
	})

	local modules = {
		term = term,
		std = std,
		["std.core"] = strict("std.core", {
			register_signal = function(signal)
				want("number", signal, "std.core.register_signal")
				if signal == 2 then
					host.sigint = "harmless"
				end
			end,
		}),
		theme = strict("theme", {
			get = function(section)
				want("string", section, "theme.get")
				return {}
			end,
		}),
		["cjson.safe"] = strict("cjson.safe", { encode = json.encode, decode = json.decode, null = json.null }),
		socket = strict("socket", {
			gettime = function()
				if real then
					return real.socket.gettime()
				end
				host.time = host.time + 0.001
				return host.time
			end,
			select = function(readers, writers, timeout)
				want("table", readers, "socket.select")
				want("number", timeout, "socket.select")
				if timeout > 0.1 then
					breach("Ctrl-C does not interrupt select: slices of 100 ms at most")
				end
				for _, reader in ipairs(readers) do
					want("function", reader.getfd, "socket.select's reader")
					want("function", reader.dirty, "socket.select's reader")
				end
				if real and not (#readers == 1 and readers[1].getfd() == 0) then
					return real.socket.select(readers, writers, timeout)
				end
				if #host.typed > 0 then
					return readers, writers or {}
				end
				return {}, writers or {}, "timeout"
			end,
		}),
	}
	if real then
		modules["std.ps"] = strict("std.ps", real.ps)
	end
	for _, name in ipairs(NAMES) do
		package.loaded[name] = modules[name]
	end

	host.read_line = function()
		local line = table.remove(host.typed, 1)
		if line and host.tty and not host.raw then
			-- The terminal echoed it, and its end.
			put(line .. "\n")
		end
		return line
	end
	host.text = function()
		return table.concat(host.output)
	end
	-- What a person would see: without escape sequences.
	host.seen = function()
		return (host.text():gsub("\27%[[0-9;?]*[@-~]", ""))
	end
	return host
end

-- The globals that read the process itself, turned to the stand-in while `fn` runs.
local within = function(host, fn, ...)
	local getenv, read = os.getenv, io.read
	os.getenv = function(name)
		return host.env[name]
	end
	io.read = function(format)
		assert(format == "*l")
		return host.read_line()
	end
	local result = { pcall(fn, ...) }
	os.getenv, io.read = getenv, read
	return unpack(result, 1, 8)
end

return { new = new, within = within }
