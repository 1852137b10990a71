-- Lines, output, cancelling, steering, questions: the mode against a fake core in the strict stand-in.

local check = require("check")
local fake_core = require("fake_core")
local lab = require("lab")

local test, equal, ok, contains, lacks = check.test, check.equal, check.ok, check.contains, check.lacks
local render = fake_core.render

local clean = function(host)
	equal(host.violations, {}, "breaches of the host's rules")
end

test("a line is handed over with where the user is, and its answer is written", function()
	local shell, core, host = lab.new()
	shell:activate()
	local status, err = shell:enter("hello there")
	equal({ status, err }, { 0, nil })
	equal(core.submits[1].line, "hello there")
	equal(core.submits[1].cwd, "/work dir")
	equal(core.submits[1].env, nil, "an unchanged environment is not sent")
	contains(host.seen(), "echo hello there\n")
	clean(host)
end)

test("hello describes the terminal, the process and the environment", function()
	local shell, core = lab.new({ rows = 40, cols = 120 })
	shell:activate()
	local hello = core.hellos[1]
	equal(hello.protocol, 1)
	equal(hello.render, true)
	equal(hello.term, {
		rows = 40,
		cols = 120,
		colors = 16777216,
		unicode = true,
		graphics = true,
		text_sizing = false,
		is_tty = true,
	})
	equal(hello.host, { name = "lilush", version = "0.6" })
	equal({ hello.cwd, hello.pid, hello.env.HOME }, { "/work dir", 4242, "/home/u" })
end)

test("colours follow NO_COLOR, TERM and COLORTERM", function()
	local colors = function(env)
		local shell, core = lab.new({ env = env })
		shell:activate()
		local term = core.hellos[1].term
		return { term.colors, term.is_tty }
	end
	equal(colors({ TERM = "xterm-256color" }), { 256, true })
	equal(colors({ TERM = "xterm-256color", COLORTERM = "truecolor" }), { 16777216, true })
	equal(colors({ TERM = "xterm-kitty", NO_COLOR = "1" }), { 0, true })
	equal(colors({ TERM = "xterm-kitty", NO_COLOR = "" }), { 16777216, true })
	equal(colors({ TERM = "xterm" }), { 16, true })
	equal(colors({ TERM = "dumb" }), { 0, false })
	equal(colors({}), { 0, false })
end)

test("variables that changed since the last line go along, removed ones as null", function()
	local shell, core, host = lab.new()
	shell:activate()
	host.env.NEW, host.env.PATH = "1", nil
	shell:enter("x")
	equal(core.submits[1].env, { NEW = "1", PATH = require("json").null })
	shell:enter("y")
	equal(core.submits[2].env, nil)
end)

test("a transient piece is erased by what follows and never stays at the end", function()
	local shell, core, host = lab.new({ cols = 20 })
	core.on_line = function()
		return {
			render("thinking", true),
			render("still thinking after a while", true),
			render("the answer\n"),
			render("spinning", true),
		}
	end
	shell:enter("x")
	contains(host.text(), "thinking\r\27[Jstill thinking after a while\r\27[1A\27[Jthe answer\nspinning\r\27[J")
	clean(host)
end)

test("a transient piece is measured in cells of the width there is when it goes", function()
	local shell, core, host = lab.new({ cols = 20 })
	core.on_line = function()
		-- Thirty-two cells in sixteen characters, and a letter with ten accents in one cell.
		return { render(("\228\189\160\229\165\189"):rep(8), true), render("e" .. ("\204\129"):rep(30), true), render("end\n") }
	end
	shell:enter("x")
	contains(host.text(), "\r\27[1A\27[Je")
	contains(host.text(), "\204\129\r\27[Jend\n")
	host.output = {}
	local polls = 0
	core.on_line = function()
		core.push({ render(("x"):rep(18), true) })
		return nil
	end
	core.on_poll = function()
		polls = polls + 1
		if polls == 2 then
			host.cols = 10
			core.push({ render("end\n") })
			core.settle()
		end
	end
	shell:enter("x")
	contains(host.text(), "x\r\27[1A\27[Jend\n")
	clean(host)
end)

test("a line typed over a transient piece goes with it", function()
	local shell, core, host = lab.new({ cols = 20 })
	core.on_line = function(line)
		if line == "x" then
			host.typed = { "typed" }
			core.push({ render("sixteen letters.", true) })
			return nil
		end
		return { render("taken\n") }
	end
	shell:enter("x")
	-- What was typed began behind the piece and went over the edge.
	contains(host.text(), "sixteen letters.\r\27[2A\27[Jtaken\n")
	clean(host)
end)

test("what was said stands apart from the next prompt", function()
	local shell, core, host = lab.new()
	shell:enter("x")
	equal(host.text(), "\r\necho x\n\n")
	core.on_line = function()
		return {}
	end
	shell:enter("y")
	equal(host.text(), "\r\necho x\n\n\r\n")
	clean(host)
end)

test("output that ends without a line end gets one, so that the prompt overwrites nothing", function()
	local shell, core, host = lab.new()
	core.on_line = function()
		return { render("no end"), render("\27[0m") }
	end
	shell:enter("x")
	contains(host.text(), "no end\27[0m\n")
	clean(host)
end)

test("a transient piece never touches a line that is being written", function()
	local shell, core, host = lab.new()
	core.on_line = function()
		return { render("half a li"), render("spin", true), render("ne\n") }
	end
	shell:enter("x")
	contains(host.text(), "half a line\n")
	lacks(host.text(), "spin")
end)

test("a terminal without cursor control gets no transient pieces", function()
	local shell, core, host = lab.new({ env = { TERM = "dumb" } })
	core.on_line = function()
		return { render("spin", true), render("done\n") }
	end
	shell:enter("x")
	equal(host.text(), "\r\ndone\n\n")
end)

test("Ctrl-C cancels the turn once, then everything, then leaves it behind", function()
	local shell, core, host = lab.new()
	core.on_line = function()
		return nil
	end
	local polls = 0
	core.on_poll = function()
		polls = polls + 1
		equal(host.sigint, polls == 1 and "harmless" or "noted")
		if polls > 2 then
			host.interrupted = true
		end
	end
	local status = shell:enter("long work")
	equal(status, 0)
	equal(core.cancels, { "turn", "all", "all" })
	contains(host.seen(), "still stopping")
	clean(host)
end)

test("a cancelled turn that ends gives back what had waited", function()
	local shell, core, host = lab.new()
	core.on_line = function()
		return nil
	end
	local polls = 0
	core.on_poll = function()
		polls = polls + 1
		host.interrupted = polls == 2
	end
	core.on_cancel = function()
		core.push({ { type = "prefill", data = { text = "line one" } }, { type = "prefill", data = { text = "two" } } })
		core.settle()
	end
	local _, _, next_input = shell:enter("x")
	equal(next_input, "line one\ntwo")
	equal(core.cancels, { "turn" })
	ok(polls < 6, "the prompt is back at once")
end)

test("the end of a turn that was left behind does not end the next line", function()
	local shell, core, host = lab.new()
	core.on_line = function()
		return nil
	end
	core.on_poll = function()
		host.interrupted = true
	end
	shell:enter("first")
	host.interrupted, core.on_poll = false, nil
	-- Only now the first line is settled; the second's answer comes after that.
	core.push({ { type = "input_settled", data = { inputs = 1 } } })
	core.on_line = function()
		core.on_poll = function()
			core.on_poll = nil
			core.push({ { type = "input_settled", data = { inputs = 1 } }, render("late\n") })
			core.push({ { type = "input_settled", data = { inputs = 2 } } })
		end
		return nil
	end
	shell:enter("second")
	contains(host.seen(), "late\n")
	clean(host)
end)

test("lines typed during a turn join it, as one where they came as one", function()
	local shell, core, host = lab.new()
	core.on_line = function(line)
		if line ~= "work" then
			return { render("queued\n") }
		end
	end
	local polls = 0
	core.on_poll = function()
		polls = polls + 1
		if polls == 2 then
			host.typed = { "and this", "  ", "and that" }
		end
	end
	shell:enter("work")
	equal(#core.submits, 2)
	equal(core.submits[2].line, "and this\nand that")
	clean(host)
end)

test("a question is answered by the next line, again where the answer is none", function()
	local shell, core, host = lab.new()
	core.on_line = function()
		core.push({
			render("Which?\n"),
			{ type = "question", data = { id = "q1", text = "Which?", choices = { "red", "green" }, default = "red" } },
		})
		host.typed = { "blue", "2" }
		return nil
	end
	core.on_answer = function()
		core.settle()
	end
	shell:enter("/ask")
	equal(core.answers, { { question_id = "q1", value = "green" } })
	contains(host.seen(), "one of: red, green")
	clean(host)
end)

test("Ctrl-C at a question cancels it", function()
	local shell, core, host = lab.new()
	core.on_line = function()
		core.push({ { type = "question", data = { id = "q", text = "?", choices = {} } } })
		return nil
	end
	core.on_poll = function()
		host.interrupted = #core.cancels == 0
	end
	core.on_cancel = function()
		core.settle()
	end
	shell:enter("/ask")
	equal(core.cancels, { "turn" })
	equal(core.answers, {})
	clean(host)
end)

test("answers to a question without a terminal are lines of the input", function()
	local shell, core, host = lab.new({ tty = false })
	core.on_line = function()
		host.typed = { "from a pipe" }
		core.push({ { type = "question", data = { id = "q", text = "?", choices = {} } } })
		return nil
	end
	core.on_answer = function()
		core.settle()
	end
	shell:enter("/ask")
	equal(core.answers[1].value, "from a pipe")
end)

test("a new window size reaches the core, the host's own flag stays untouched", function()
	local shell, core, host = lab.new()
	shell:activate()
	host.cols, host.rows = 60, 20
	shell:enter("x")
	equal(core.sizes, { "60x20" })
	clean(host)
end)

test("leaving closes the session; the next line opens another", function()
	local shell, core, host = lab.new()
	shell:activate()
	ok(not shell.mode:wants_exit())
	core.on_line = function(line)
		if line == "/quit" then
			core.settle({ closing = true })
			return nil
		end
		return { render("again\n") }
	end
	shell:enter("/quit")
	ok(shell.mode:wants_exit(), "the host is told")
	equal(core.open, 0)
	shell:enter("x")
	ok(not shell.mode:wants_exit())
	equal(core.open, 1)
	contains(host.seen(), "again")
end)

test("a session that is lost between two lines is told and replaced", function()
	local shell, core, host = lab.new()
	shell:activate()
	core.faults.poll = { code = "sidecar_died", message = "the agent-smith process ended by a signal", hint = "all is kept" }
	core.before_new = nil
	local open = core.new
	core.new = function(hello)
		core.faults.poll = nil
		return open(hello)
	end
	local status = shell:enter("x")
	equal(status, 0)
	equal(#core.hellos, 2)
	contains(host.seen(), "ended by a signal")
	contains(host.seen(), "echo x")
	clean(host)
end)

test("a session that is lost during a turn is told, and the line after it starts a new one", function()
	local shell, core, host = lab.new()
	shell:activate()
	core.on_line = function()
		core.faults.poll = { code = "sidecar_died", message = "the agent-smith process ended" }
		return nil
	end
	local status, err, next_input = shell:enter("x")
	equal({ status, next_input }, { 1, nil })
	contains(err, "the agent-smith process ended")
	core.faults.poll = nil
	core.on_line = function()
		return { render("back\n") }
	end
	equal(shell:enter("y"), 0)
	equal(#core.hellos, 2)
	contains(host.seen(), "back")
	clean(host)
end)

test("without a core one line says what is missing, and the typed line is kept", function()
	local shell, _, host = lab.new({ core = false })
	shell:activate()
	local status, err, next_input = shell:enter("my work")
	equal({ status, next_input }, { 1, "my work" })
	contains(err, "agent_smith")
	ok(#err < 600 and not err:find("stack traceback"), err)
	clean(host)
end)

test("the prompt shows the core's line, its own before there is one, and which of several lines", function()
	local shell, core, host = lab.new()
	equal(shell.input:prompt_get(), "agent_smith > ")
	shell:activate()
	equal(shell.input:prompt_get(), "\27[1mSmith\27[0m demo > ")
	shell.input:prompt_set({ lines = 3, line = 2 })
	equal(shell.input:prompt_get(), "\27[1mSmith\27[0m demo > [2/3] ")
	shell.input:prompt_set({ lines = 1, line = 1 })
	core.prompt = ""
	shell:enter("x")
	equal(shell.input:prompt_get(), "Smith demo > ")
	clean(host)
end)

test("notifications go to terminals that know them", function()
	local shell, core, host = lab.new()
	core.on_line = function()
		return { { type = "notify", data = { title = "Smith", body = "done" } } }
	end
	shell:enter("x")
	equal(host.notified, "Smith: done")
end)

test("events of kinds nobody knows, and broken ones, are passed over", function()
	local shell, core, host = lab.new()
	core.on_line = function()
		return { { type = "brand_new" }, { type = "render" }, 7, { data = {} }, { type = "question" }, render("fine\n") }
	end
	equal(shell:enter("x"), 0)
	contains(host.seen(), "fine")
end)
