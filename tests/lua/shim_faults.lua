-- Nothing that goes wrong inside may reach the host: a fault is injected into every method there is, of the host, of the
-- core and of the shim's own parts, and the shell has to live through a whole working day with it.

local check = require("check")
local fake_core = require("fake_core")
local lab = require("lab")

local test, equal, ok = check.test, check.equal, check.ok
local render = fake_core.render

-- A core that makes the shim use all it has: output, a question, a view, a notification, a prefill.
local busy = function(core, host)
	core.candidates = { { text = "/config", start = 0, ["end"] = 3, kind = "command" } }
	core.keys = { cancel = "ctrl-c" }
	core.on_line = function(line)
		if line == "/pager" then
			core.push({
				{ type = "open_view", data = { view_id = "v", title = "t" } },
				{ type = "view_frame", data = { view_id = "v", rows = { "row" }, done = false } },
			})
			host.keys = { "q" }
			return nil
		elseif line == "ask" then
			host.typed = { "yes" }
			core.push({
				render("spin", true),
				{ type = "notify", data = { title = "t", body = "b" } },
				{ type = "prefill", data = { text = "p" } },
				{ type = "question", data = { id = "q", text = "?", choices = { "yes", "no" } } },
			})
			return nil
		end
		return { render("fine\n") }
	end
	core.on_view_key = function()
		core.push({ { type = "view_frame", data = { view_id = "v", rows = {}, done = true } } })
		core.settle()
	end
	core.on_answer = function()
		core.settle()
	end
	-- Whatever was lost to a fault, the core is idle some time later: no run may hang.
	local idle = 0
	core.on_poll = function()
		idle = #core.queue == 0 and idle + 1 or 0
		if idle > 5 then
			core.settle()
			idle = 0
		end
	end
	core.on_cancel = function()
		core.settle()
	end
end

-- A day: start, switch to the mode, type, ask, look at the conversation, press keys, change the directory, go on.
-- Returns the first thing the mode got wrong about the state it left, nil where all was well.
local day = function(shell, core, host)
	local wrong
	local step = function(fn)
		local done, problem = pcall(fn)
		if not done then
			if shell.dead then
				error(shell.dead, 0)
			end
			wrong = wrong or problem
		end
	end
	step(function()
		shell:activate()
	end)
	step(function()
		shell:greet()
	end)
	step(function()
		shell:type("/co")
	end)
	step(function()
		shell:enter("hello")
	end)
	step(function()
		shell:enter("ask")
	end)
	for _, combo in ipairs({ "ALT+h", "ALT+i", "CTRL+c", "F9" }) do
		step(function()
			shell:combo(combo)
		end)
	end
	host.cols, host.env.NEW = host.cols - 1, "x"
	step(function()
		shell:enter("hello again")
	end)
	step(function()
		ok(type(shell.input:prompt_get()) == "string" and #shell.input:prompt_get() > 0)
	end)
	return wrong
end

local start = function(options)
	options = options or {}
	local before = options.before
	options.before = function(core, host)
		busy(core, host)
		if before then
			before(core, host)
		end
	end
	return lab.new(options)
end

local host_calls = {}
local shim_methods = {}

test("a day without a fault uses the host and the shim as far as they go", function()
	local shell, core, host = start()
	equal(day(shell, core, host), nil)
	equal(host.violations, {})
	equal(core.answers, { { question_id = "q", value = "yes" } })
	equal(core.view_keys, { "q" })
	for name in pairs(host.calls) do
		host_calls[#host_calls + 1] = name
	end
	ok(#host_calls >= 15, "only " .. #host_calls .. " calls of the host were used")
end)

test("any call of the host may raise, from the start or later", function()
	for _, name in ipairs(host_calls) do
		local shell, core, host = start({
			before = function(_, host)
				host.faults[name] = "injected into " .. name
			end,
		})
		day(shell, core, host)
		shell, core, host = start()
		day(shell, core, host)
		host.faults[name] = "injected later into " .. name
		day(shell, core, host)
		-- What was broken is whole again: so is the mode.
		host.faults[name] = nil
		host.raw, host.alternate, host.cursor_hidden, host.sigint = false, false, false, "harmless"
		host.keyboard, host.paste = 0, false
		equal({ pcall(shell.enter, shell, "well again") }, { true, 0 }, name)
	end
end)

test("any method of the core may raise or fail; the terminal is whole after each call", function()
	for _, method in ipairs({
		"new",
		"submit",
		"poll",
		"cancel",
		"answer",
		"complete",
		"status",
		"resize",
		"theme",
		"view_key",
		"close",
	}) do
		for kind, fault in pairs({
			raise = "injected into " .. method,
			fail = { kind = "internal", code = "defect", message = "injected into " .. method },
			die = { kind = "internal", code = "sidecar_died", message = "injected into " .. method },
		}) do
			local what = method .. " " .. kind
			local shell, core, host = start({
				before = function(core)
					core.faults[method] = fault
				end,
			})
			equal(day(shell, core, host), nil, what)
			core.faults[method] = nil
			shell:enter("settles the rest")
			equal(shell:enter("well again"), 0, what)
			equal(host.violations, {}, what)
		end
	end
end)

local PARTS = {
	"agent_smith.carrier",
	"agent_smith.cells",
	"agent_smith.host",
	"agent_smith.input_loop",
	"agent_smith.keys",
	"agent_smith.mode",
	"agent_smith.question",
	"agent_smith.session",
	"agent_smith.suffixes",
	"agent_smith.theme",
	"agent_smith.view",
	"agent_smith.writer",
}

-- Makes `method` of a part raise, be it the module's own or that of what its constructor makes.
local break_method = function(part, method, in_instance)
	local module = require(part)
	local boom = function()
		error("injected into " .. part .. "." .. method, 0)
	end
	if not in_instance then
		module[method] = boom
		return
	end
	local make = module.new
	module.new = function(...)
		local instance = make(...)
		instance[method] = boom
		return instance
	end
end

test("every part's methods are known", function()
	local shell, core, host = start()
	for _, part in ipairs(PARTS) do
		local module = require(part)
		for name, value in pairs(module) do
			if type(value) == "function" then
				shim_methods[#shim_methods + 1] = { part, name, false }
			end
		end
		if part ~= "agent_smith.carrier" and module.new then
			local make = module.new
			module.new = function(...)
				local instance = make(...)
				for name, value in pairs(instance) do
					if type(value) == "function" then
						shim_methods[part .. "." .. name] = { part, name, true }
					end
				end
				return instance
			end
		end
	end
	day(shell, core, host)
	local listed = {}
	for _, method in pairs(shim_methods) do
		listed[#listed + 1] = method
	end
	shim_methods = listed
	ok(#shim_methods > 80, "only " .. #shim_methods .. " methods were found")
end)

test("any method of the shim's parts may raise: the shell lives and the terminal is whole", function()
	for _, method in ipairs(shim_methods) do
		local part, name, in_instance = unpack(method)
		local what = part .. "." .. name
		local shell, core, host = start({
			before = function()
				break_method(part, name, in_instance)
			end,
		})
		local wrong = day(shell, core, host)
		if part ~= "agent_smith.host" then
			equal(wrong, nil, what)
		end
		ok(not shell.dead, what)
	end
end)

test("any of the shim's files may be missing or broken", function()
	for _, part in ipairs(PARTS) do
		local shell, core, host = start({
			before = function()
				package.preload[part] = function()
					error("injected into the loading of " .. part, 0)
				end
			end,
		})
		equal(day(shell, core, host), nil, part)
		local status, err, next_input = shell:enter("my words")
		ok(status ~= 0 or err == nil)
		if status ~= 0 then
			ok(#tostring(err) < 400 and not tostring(err):find("traceback"), err)
			equal(next_input, "my words", part)
		end
		-- Put back, it works without a new start.
		package.preload[part] = nil
		package.loaded[part] = nil
		equal(shell:enter("well again"), 0, part)
	end
end)

test("whatever the host or the core hand over, of whatever type", function()
	local junk = { 0 / 0, -1, 1e300, "", "\255\254", ("x"):rep(10000), true, false, {}, { {} }, function() end, io.stdout }
	for index, value in ipairs(junk) do
		local shell, core, host = start()
		shell:activate()
		local prompt_of = function()
			ok(type(shell.input:prompt_get()) == "string", "junk " .. index)
		end
		for _, key in ipairs({ "text", "lines", "line", "label", "model", "state", "online" }) do
			shell.input:prompt_set({ [key] = value })
			prompt_of()
		end
		core.prompt, core.keys = value, value
		core.candidates = value
		shell:type("/co")
		core.candidates = { value, { text = value, start = value, ["end"] = value } }
		shell:type("n")
		core.on_line = function()
			return {
				{ type = "render", data = { ansi = value, transient = value } },
				{ type = "prefill", data = { text = value } },
				{ type = "notify", data = { title = value, body = value } },
				{ type = "input_settled", data = { inputs = value, closing = value ~= true and value or nil } },
				{ type = value, data = value },
				value,
			}
		end
		shell:enter("x")
		shell:combo("ALT+h")
		prompt_of()
		equal(shell.dead, nil)
		local made, mode = pcall(require("agent_smith").new, value, value)
		ok(made, "new() with junk " .. index)
		for _, method in ipairs({ "run", "can_handle_combo", "handle_combo", "on_activate", "greet", "get_input", "wants_exit" }) do
			local lives, problem = pcall(mode[method], mode, value)
			ok(lives, method .. " with junk " .. index .. ": " .. tostring(problem))
		end
	end
end)
