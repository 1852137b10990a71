-- Completion of what a real core offers, in the strict stand-in: what is typed, what the host is given for it. The way
-- to the core is TEST_CARRIER; see shim_carriers.lua.

package.path = package.path .. ";tests/lua/bridge/?.lua"

local check = require("check")
local ffi_std = require("ffi_std")
local lab = require("lab")

local test, equal, ok = check.test, check.equal, check.ok

local carrier = assert(os.getenv("TEST_CARRIER"))

local start = function()
	local env = { TERM = "xterm-256color", LANG = "C.UTF-8" }
	for _, name in ipairs({ "HOME", "PATH", "AGENT_SMITH_BIN" }) do
		env[name] = assert(os.getenv(name), name)
	end
	if carrier == "native" then
		env.AGENT_SMITH_CORE = assert(os.getenv("AGENT_SMITH_CORE"))
	end
	local shell, _, host = lab.new({
		core = false,
		env = env,
		cwd = env.HOME,
		real = ffi_std,
		mode = { core = { only = carrier, sidecar = { close_ms = 150 } } },
	})
	shell:activate()
	return shell, host
end

-- Types a line anew; gives the lines that the first candidates would make of it, and their metadata.
local typed = function(shell, text)
	local lines = shell.input.lines
	lines[#lines] = ""
	local candidates, meta = shell:type(text)
	local whole = {}
	for index, suffix in ipairs(candidates) do
		whole[index] = ((meta[index] or {}).replace_prompt or text) .. suffix
	end
	return whole, meta
end

test("config paths, their values as hints, and values, " .. carrier, function()
	local shell, host = start()
	-- What begins so comes before what only holds the letters.
	equal(typed(shell, "/config s"), { "/config set", "/config unset" })

	local whole, meta = typed(shell, "/config set llm_config.retry_max")
	equal(whole[1], "/config set llm_config.retry_max_retries")
	equal({ meta[1].kind, meta[1].hint }, { "config_path", "2 [default]" })

	-- Parts of a key find it too: the line is replaced then.
	whole, meta = typed(shell, "/config set keep_rounds")
	equal(whole[1], "/config set context_management.tool_output_keep_rounds")
	equal({ meta[1].replace_prompt, meta[1].hint }, { "/config set ", "7 [default]" })

	whole, meta = typed(shell, "/config set context_management.enabled f")
	equal({ whole[1], meta[1].kind }, { "/config set context_management.enabled false", "value" })
	equal(typed(shell, "/config set active_role o"), { "/config set active_role orchestrator" })

	-- What is set shows as the hint from then on, with its layer.
	shell.input.lines[#shell.input.lines] = ""
	equal({ shell:enter("/config set llm_config.retry_max_retries 4") }, { 0 })
	whole, meta = typed(shell, "/config unset llm")
	equal(whole, { "/config unset llm_config.retry_max_retries" })
	equal(meta[1].hint, "4 [/config set]")
	equal({ shell:enter("/config unset llm_config.retry_max_retries") }, { 0 })
	equal(typed(shell, "/config unset llm"), {})

	shell:enter("/quit")
	equal(host.violations, {})
end)

test("commands, roles, models and files, " .. carrier, function()
	local shell, host = start()
	local whole, meta = typed(shell, "/relo")
	equal({ whole[1], meta[1].kind }, { "/reload", "command" })
	ok(meta[1].hint and #meta[1].hint > 0, "a command says what it does")
	equal(typed(shell, "/role orch"), { "/role orchestrator" })
	local file = assert(io.open(os.getenv("HOME") .. "/a note.md", "w"))
	file:write("text\n")
	file:close()
	whole, meta = typed(shell, "look at @note")
	equal({ whole[1], meta[1].kind }, { 'look at @"a note.md"', "path" })
	equal(typed(shell, "me@note"), {})
	shell:enter("/quit")
	equal(host.violations, {})
end)
