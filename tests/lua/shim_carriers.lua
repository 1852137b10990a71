-- The shim over a real core, both ways: in this process, and as a sidecar over the host's pipes. The demo model answers.
-- A fault is injected into every call of the host that the way uses.
--
-- The environment says where things are: HOME (an empty one), AGENT_SMITH_CORE (the shared object), AGENT_SMITH_BIN (the
-- executable), TEST_CARRIER (native or sidecar).

package.path = package.path .. ";tests/lua/bridge/?.lua"

local check = require("check")
local ffi_std = require("ffi_std")
local lab = require("lab")

local test, equal, ok, contains = check.test, check.equal, check.ok, check.contains

local carrier = assert(os.getenv("TEST_CARRIER"))

local start = function(before)
	local env = { TERM = "xterm-256color", LANG = "C.UTF-8" }
	for _, name in ipairs({ "HOME", "PATH", "AGENT_SMITH_BIN" }) do
		env[name] = assert(os.getenv(name), name)
	end
	if carrier == "native" then
		env.AGENT_SMITH_CORE = assert(os.getenv("AGENT_SMITH_CORE"))
	end
	return lab.new({
		core = false,
		env = env,
		cwd = env.HOME,
		real = ffi_std,
		-- A sidecar that cannot be talked to any more is not waited for long.
		mode = { core = { only = carrier, sidecar = { close_ms = 150 } } },
		before = before,
	})
end

-- Switches to the mode, works, looks at the conversation, works again. What goes wrong without ending the shell is
-- returned.
local day = function(shell, host)
	local wrong
	local step = function(fn, ...)
		local done, problem = pcall(fn, ...)
		if shell.dead then
			error(shell.dead, 0)
		end
		wrong = wrong or (not done and problem or nil)
	end
	step(shell.activate, shell)
	step(shell.type, shell, "/he")
	step(shell.enter, shell, "hello")
	host.keys = { "g", "q" }
	step(shell.combo, shell, "ALT+h")
	step(shell.combo, shell, "CTRL+c")
	step(shell.enter, shell, "/usage")
	return wrong
end

local calls = {}

test("a day with a real core, " .. carrier, function()
	local shell, _, host = start()
	shell:activate()
	contains(shell.input:prompt_get(), "Smith", "the prompt is the core's")
	local candidates, meta = shell:type("/he")
	equal(candidates[1], "lp")
	ok(meta[1].hint and #meta[1].hint > 0)
	equal({ shell:enter("hello") }, { 0 })
	contains(host.seen(), "the embedded model")
	host.keys = { "g", "q" }
	ok(shell:combo("ALT+h"))
	equal({ shell:enter("/no-such-command") }, { 0 })
	contains(host.seen(), "no command")
	equal({ shell:enter("/quit") }, { 0 })
	ok(shell.mode:wants_exit())
	equal(host.violations, {})
	for name in pairs(host.calls) do
		calls[#calls + 1] = name
	end
	table.sort(calls)
	ok(#calls >= (carrier == "sidecar" and 8 or 4), #calls .. " calls")
end)

test("any call of the host may raise from the start, " .. carrier, function()
	for _, name in ipairs(calls) do
		local shell, _, host = start(function(_, host)
			host.faults[name] = "injected into " .. name
		end)
		day(shell, host)
		-- What was broken is whole again: so is the mode.
		host.faults[name] = nil
		host.raw, host.alternate, host.cursor_hidden, host.sigint = false, false, false, "harmless"
		host.keyboard, host.paste = 0, false
		pcall(shell.enter, shell, "settles the rest")
		equal({ pcall(shell.enter, shell, "/usage") }, { true, 0 }, name)
		shell:enter("/quit")
	end
end)

test("any call of the host may begin to raise during the day, " .. carrier, function()
	for _, name in ipairs(calls) do
		local shell, _, host = start()
		equal(day(shell, host), nil)
		host.faults[name] = "injected later into " .. name
		day(shell, host)
		equal(shell.dead, nil, name)
		host.faults[name] = nil
		shell.mode.__state.adapter.__state.session:close()
	end
end)

if carrier == "sidecar" then
	test("a sidecar that is killed is told, and the next line starts another", function()
		local shell, _, host = start()
		shell:activate()
		equal({ shell:enter("/usage") }, { 0 })
		local core = shell.mode.__state.adapter.__state.session.__state.core
		ffi_std.ps.kill(core.__state.pid, 9)
		repeat
		until ffi_std.ps.waitpid(core.__state.pid) ~= 0
		equal({ shell:enter("/usage") }, { 0 })
		contains(host.seen(), "agent-smith process was ended by a signal")
		shell:enter("/quit")
		equal(host.violations, {})
	end)

	test("without the executable one line says what is missing", function()
		local shell, _, host = start(function(_, host)
			host.env.AGENT_SMITH_BIN = "/no/such/agent-smith"
		end)
		shell:activate()
		local status, err, next_input = shell:enter("my words")
		equal({ status, next_input }, { 1, "my words" })
		contains(err, "/no/such/agent-smith")
		contains(err, "install")
		equal(host.violations, {})
	end)
end
