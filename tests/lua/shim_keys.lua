-- Key combinations, views and completion: the mode against a fake core in the strict stand-in.

local check = require("check")
local lab = require("lab")

local test, equal, ok, contains = check.test, check.equal, check.ok, check.contains

local clean = function(host)
	equal(host.violations, {}, "breaches of the host's rules")
end

test("combinations are written as the host names them", function()
	lab.new()
	local normalize = require("agent_smith.keys").normalize
	for given, expected in pairs({
		["ctrl-c"] = "CTRL+c",
		["ALT+h"] = "ALT+h",
		["alt+ctrl+X"] = "ALT+CTRL+x",
		["ctrl-shift-alt-x"] = "SHIFT+ALT+CTRL+x",
		["f5"] = "F5",
		["page_up"] = "PAGE_UP",
		["ctrl--"] = "CTRL+-",
		["ctrl++"] = "CTRL++",
		["control+enter"] = "CTRL+ENTER",
		["x"] = "x",
	}) do
		equal(normalize(given), expected, given)
	end
	for _, wrong in ipairs({ "", "hyperspace+x", 7, {} }) do
		equal(normalize(wrong), nil)
	end
end)

test("the mode takes its own combinations, those of the mode file, and those the core has been told", function()
	local shell = lab.new()
	equal({ shell:combo("CTRL+q"), shell.mode:can_handle_combo("ALT+i"), shell.mode:can_handle_combo("CTRL+c") }, {
		false,
		true,
		true,
	})
	shell = lab.new({ mode = { keys = { conversation = "ctrl-o" } } })
	equal({ shell.mode:can_handle_combo("CTRL+o"), shell.mode:can_handle_combo("ALT+h") }, { true, false })
	local core
	shell, core = lab.new()
	core.keys = { cancel = "ctrl-x", conversation = "nonsense+z" }
	shell:activate()
	equal(
		{ shell.mode:can_handle_combo("CTRL+x"), shell.mode:can_handle_combo("CTRL+c"), shell.mode:can_handle_combo("ALT+h") },
		{ true, false, true }
	)
end)

test("cancel at the prompt stops the background and gives the line up", function()
	local shell, core, host = lab.new()
	shell:activate()
	shell.input:set_content("half a thought")
	ok(shell:combo("CTRL+c"))
	equal(core.cancels, { "all" })
	ok(shell.input:buffer_empty())
	clean(host)
end)

test("a combination that only prints leaves its text above the input line", function()
	local shell, core, host = lab.new()
	shell:activate()
	ok(shell:combo("ALT+i"))
	contains(host.text(), "\nThe inspector is not there yet. /pager shows the conversation.\n")
	equal(core.submits, {})
	equal(shell.input.position, { 7, 1 })
	clean(host)
end)

test("a combination without a core says so and lives", function()
	local shell, _, host = lab.new({ core = false })
	ok(shell:combo("ALT+h"))
	contains(host.seen(), "agent_smith")
	clean(host)
end)

-- A view of three lines: "n" moves, "q" ends; a render and a prefill come while it is open.
local with_view = function(core)
	local line = 1
	local frame = function(done)
		core.push({
			{ type = "render", data = { ansi = "told meanwhile\n", transient = false } },
			{
				type = "view_frame",
				data = {
					view_id = "v1",
					rows = { "title", "line " .. line },
					cursor = { row = 1, col = 2 },
					done = done,
				},
			},
		})
		if done then
			core.settle()
		end
	end
	core.on_line = function()
		core.push({ { type = "open_view", data = { view_id = "v1", title = "Conversation" } } })
		frame(false)
		return nil
	end
	core.on_view_key = function(request)
		equal(request.view_id, "v1")
		if request.key == "n" then
			line = line + 1
		end
		frame(request.key == "q")
	end
end

test("ALT+h shows the conversation: keys go in, frames come out, the screen comes back", function()
	local shell, core, host = lab.new()
	shell:activate()
	with_view(core)
	host.keys = { "n", "PAGE_UP", "q" }
	ok(shell:combo("ALT+h"))
	equal(core.submits[1].line, "/pager")
	equal(core.view_keys, { "n", "PAGE_UP", "q" })
	contains(host.text(), "\27[2;1H\27[0mline 1\27[0m\27[K", "the picture that came with the opening")
	contains(host.text(), "\27[2;1H\27[0mline 2\27[0m\27[K")
	contains(host.text(), "\27[2;3H\27[?25h")
	local _, count = host.text():gsub("told meanwhile", "")
	equal(count, 4, "what came meanwhile is written after the view")
	clean(host)
end)

test("a view opens from a line as well, follows the window and leaves the run's terminal sane", function()
	local shell, core, host = lab.new()
	shell:activate()
	with_view(core)
	host.before = function(name)
		if name == "term.simple_get" and #host.keys == 0 then
			host.cols = 50
			if #core.sizes > 0 then
				host.keys = { "q" }
			end
		end
	end
	equal(shell:enter("/pager"), 0)
	equal(core.sizes, { "50x24" })
	clean(host)
end)

test("a view whose core is gone or stuck can be left", function()
	local shell, core, host = lab.new()
	shell:activate()
	with_view(core)
	core.faults.view_key = { code = "sidecar_died", message = "gone" }
	host.keys = { "n" }
	ok(shell:combo("ALT+h"))
	clean(host)

	shell, core, host = lab.new()
	shell:activate()
	with_view(core)
	core.on_view_key = function() end
	local settled = false
	core.on_poll = function()
		if #core.view_keys > 0 and #host.keys == 0 and not settled and not host.alternate then
			settled = true
			core.settle()
		end
	end
	host.keys = { "x", "ESC" }
	ok(shell:combo("ALT+h"))
	clean(host)
end)

test("candidates become suffixes; one that changes what was typed replaces the line", function()
	local shell, core, host = lab.new()
	shell:activate()
	core.candidates = {
		{ text = "/config", start = 0, ["end"] = 3, kind = "command", hint = "settings" },
		{ text = "/recent", start = 0, ["end"] = 3, kind = "command" },
		{ text = "/co", start = 0, ["end"] = 3, kind = "command" },
		{ text = "bad span", start = 2, ["end"] = 1, kind = "command" },
		{ start = 0, ["end"] = 3 },
	}
	local candidates, meta = shell:type("/co")
	equal(candidates, { "nfig", "/recent" })
	equal(meta[1], { source = "source", kind = "command", hint = "settings" })
	equal(meta[2], { source = "source", kind = "command", replace_prompt = "" })
	clean(host)
end)

test("spans are bytes: text before them may be anything", function()
	local shell, core = lab.new()
	shell:activate()
	core.candidates = { { text = "@src/main.rs", start = 5, ["end"] = 8, kind = "path" } }
	local candidates, meta = shell:type("éé @sr")
	equal(candidates, { "c/main.rs" })
	equal(meta[1].replace_prompt, nil)
end)

test("without a session there is nothing to complete, and nothing fails", function()
	local shell, core, host = lab.new()
	equal(shell:type("/co"), {})
	core.faults.complete = "raised"
	shell:activate()
	equal(shell:type("/co"), {})
	clean(host)
end)

test("a source also serves hosts that search their sources themselves", function()
	local shell, core = lab.new()
	shell:activate()
	core.candidates = { { text = "/config", start = 0, ["end"] = 3, kind = "command" } }
	local source = shell.completion:source("source")
	equal(source:search("/co"), { "nfig" })
	source:close()
	equal(source:search("/co"), {})
end)
