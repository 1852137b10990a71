-- What may happen to a core inside, or beside, somebody else's Lua process. `plan.hazard` names which; each prints one
-- JSON line of what it saw, and the Rust side says whether that is right.

package.path = "tests/lua/bridge/?.lua;" .. package.path
local script = require("session")
local ffi = require("ffi")
local host = require("ffi_std") -- also declares the system calls used here
local plan = script.plan
local now = host.socket.gettime

local sleep = function(seconds)
	host.socket.select({}, {}, seconds)
end

-- The error's kind and code, or what came instead.
local outcome = function(value, err)
	if value ~= nil then
		return { ok = value }
	end
	return err and { kind = err.kind, code = err.code, message = err.message, hint = err.hint } or {}
end

local count = function(what)
	local pipe = io.popen("ls /proc/" .. host.ps.getpid() .. "/" .. what .. " | wc -l")
	local number = tonumber(pipe:read("*a"))
	pipe:close()
	return number
end

-- Polls until the session has ended; returns the types of what came.
local drain = function(session)
	local types = {}
	while true do
		local events, err = session:poll(50)
		if not events then
			return types, err
		end
		for _, event in ipairs(events) do
			types[#types + 1] = event.type
		end
	end
end

local hazards = {}

-- Sessions come and go in one process; nothing of them stays.
hazards.cycles = function()
	local first_threads, first_fds
	-- Where everything takes its time, each step is a sign of life.
	local progress = function(step)
		if plan.progress then
			script.say({ step = step })
		end
	end
	for cycle = 1, plan.cycles do
		local session = assert(script.open(plan))
		progress("open")
		assert(session:submit({ line = "cycle " .. cycle }))
		if plan.wait then
			script.wait_for(session, plan.wait, function(event)
				progress(event.type)
			end)
		end
		assert(session:cancel())
		assert(session:close())
		drain(session)
		session = nil
		collectgarbage()
		if cycle == 1 then
			first_threads, first_fds = count("task"), count("fd")
		end
	end
	-- Idle worker threads go away by themselves after some seconds.
	local threads, fds
	local deadline = now() + 20
	repeat
		threads, fds = count("task"), count("fd")
		if threads <= first_threads and fds <= first_fds then
			break
		end
		sleep(0.1)
	until now() > deadline
	script.say({ first_threads = first_threads, threads = threads, first_fds = first_fds, fds = fds })
end

-- A forked child calls in, lets go of what it inherited, and ends; the parent goes on.
hazards.fork = function()
	local session = assert(script.open(plan))
	local pipe = host.ps.pipe()
	local pid = ffi.C.fork()
	if pid == 0 then
		local seen = { poll = outcome(session:poll(60000)) }
		seen.submit = outcome(session:submit({ line = "from the child" }))
		seen.status = outcome(session:status())
		seen.cancel = outcome(session:cancel())
		seen.close = outcome(session:close())
		if plan.carrier == "native" then
			seen.new = outcome(script.open(plan))
		end
		session = nil
		collectgarbage()
		local text = script.json.encode(seen)
		pipe:write(text, #text)
		os.exit(7, true) -- closes the Lua state, and with it everything in it
	end
	pipe:close_inn()
	local began = now()
	local ended, status
	repeat
		ended, status = host.ps.waitpid(pid)
		sleep(0.005)
	until ended ~= 0 or now() - began > 10
	local child = script.json.decode(pipe:read(65536))
	assert(session:submit({ line = "the parent goes on" }))
	local persisted = script.wait_for(session, "turn_persisted")
	assert(session:close())
	script.say({ child = child, status = status, parent = persisted.type })
end

-- The sidecar dies, stops, or answers nonsense; the Lua process lives and is told.
hazards.dead_sidecar = function()
	local session = assert(script.open(plan))
	host.ps.kill(session.__state.pid, 9)
	local seen = { submit = outcome(session:submit({ line = "x" })) }
	seen.again = outcome(session:submit({ line = "x" }))
	seen.poll = outcome(session:poll(1000))
	seen.close = outcome(session:close())
	script.say(seen)
end

hazards.dead_in_the_middle = function()
	-- It takes what a pipe holds and dies while the rest of a long line is being written.
	local session = assert(script.open(plan))
	script.say({ submit = outcome(session:submit({ line = ("x"):rep(4000000) })) })
end

hazards.stopped_sidecar = function()
	local session = assert(script.open(plan))
	host.ps.kill(session.__state.pid, 19)
	script.say({ submit = outcome(session:submit({ line = ("x"):rep(4000000) })) })
end

-- There is nothing that could be a sidecar.
hazards.no_session = function()
	script.say(outcome(script.open(plan)))
end

-- What a caller may get wrong. Both carriers have to answer the same.
hazards.misuse = function()
	local session = assert(script.open(plan))
	local raised = function(...)
		local ok, err = pcall(...)
		assert(not ok, "nothing was raised")
		return (tostring(err):gsub("^.-: bad argument", "bad argument"):gsub("\n.*", ""))
	end
	local seen = {}
	seen.text = raised(session.submit, session, "a line")
	seen.list = raised(session.submit, session, { "a line" })
	seen.number = raised(session.cancel, session, 5)
	local tells = { "function", "thread", "nan", "deep" }
	local deep = {}
	deep.deep = deep
	for index, bad in ipairs({ print, coroutine.create(print), 0 / 0, deep }) do
		seen[tells[index]] = raised(session.answer, session, { question_id = "q", value = bad }) ~= ""
	end
	seen.poll = pcall(session.poll, session, {})
	seen.no_line = outcome(session:submit({}))
	seen.no_line_either = outcome(session:submit())
	seen.wrong_type = outcome(session:resize({ cols = "wide", rows = 24 }))
	seen.negative = outcome(session:resize({ cols = -1, rows = 24 }))
	seen.bad_scope = outcome(session:cancel({ scope = "world" }))
	seen.empty_tables = {
		outcome(session:theme({})),
		outcome(session:theme({ palette = {}, styles = {} })),
		outcome(session:submit({ line = "/help", env = {}, attachments = {} })),
		outcome(session:cancel({})),
	}
	script.wait_for(session, "command_output")
	seen.second_hello = session.hello == nil
	seen.close = outcome(session:close())
	seen.close_again = outcome(session:close({ reason = "again" }))
	seen.after_close = outcome(session:submit({ line = "x" }))
	local _, err = drain(session)
	seen.poll_after_close = outcome(nil, err)
	seen.bad_hello = outcome(nil, select(2, script.open({
		carrier = plan.carrier,
		library = plan.library,
		command = plan.command,
		hello = { protocol = 999 },
	})))
	seen.no_hello = outcome(nil, select(2, script.open({
		carrier = plan.carrier,
		library = plan.library,
		command = plan.command,
		hello = {},
	})))
	script.say(seen)
end

-- A fail point panics somewhere; what comes back, and whether the next turn works.
hazards.panic = function()
	local session = assert(script.open(plan))
	local seen = { first = outcome(session:submit({ line = "first" })) }
	local ends = {}
	local finish = function(event)
		if event.type == "turn_failed" or event.type == "turn_completed" then
			ends[#ends + 1] = { type = event.type, error = event.data.error and event.data.error.kind }
		elseif event.type == "tool_execution_finished" and event.data.error then
			ends[#ends + 1] = { type = event.type, error = event.data.error.kind }
		end
	end
	if seen.first.ok then
		script.wait_for(session, "input_settled", finish)
	end
	seen.second = outcome(session:submit({ line = "second" }))
	script.wait_for(session, "input_settled", finish)
	seen.ends = ends
	assert(session:close())
	script.say(seen)
end

-- The text of a whole turn, or the first error on the way to it.
local turn = function(session)
	local ok, err = session:submit({ line = "a turn" })
	while ok do
		local events
		events, err = session:poll(100)
		if not events then
			break
		end
		for _, event in ipairs(events) do
			if event.type == "turn_completed" then
				return event.data.text
			end
		end
	end
	return nil, err
end

-- Opening a session or polling one panics once; the same call works after that.
hazards.panic_at_entry = function()
	local failed
	local session, err = script.open(plan)
	if not session then
		failed = err
		if plan.carrier == "sidecar" then
			host.unsetenv("AGENT_SMITH_FAILPOINT") -- another process would meet it again
		end
		session = assert(script.open(plan))
	end
	local text
	text, err = turn(session)
	if not text then
		failed = err
		text = assert(turn(session))
	end
	assert(session:close())
	script.say({ failed = outcome(nil, failed), next = text })
end

-- A thread of the sidecar panics in the middle of a turn: the process is gone, and a new one works.
hazards.panic_in_sidecar = function()
	local session = assert(script.open(plan))
	local text, err = turn(session)
	assert(not text, "the turn was completed")
	assert(session:close())
	host.unsetenv("AGENT_SMITH_FAILPOINT")
	session = assert(script.open(plan))
	text = assert(turn(session))
	assert(session:close())
	script.say({ failed = outcome(nil, err), next = text })
end

-- A long poll, interrupted by a signal whose handler sets a hook.
hazards.interrupt = function()
	local session = assert(script.open(plan))
	while #(session:poll(20) or {}) > 0 do
	end
	script.say({ polling = true })
	local began = now()
	local ok, err = pcall(session.poll, session, 60000)
	script.say({ ok = ok, err = tostring(err):match("interrupted") or tostring(err), took = now() - began })
	assert(session:close())
end

-- An interrupt in the middle of a long line that the sidecar does not take yet: it is written whole all the same.
hazards.interrupted_line = function()
	local session = assert(script.open(plan))
	host.ps.kill(session.__state.pid, 19)
	local until_then = now() + 0.2
	local interrupt = function()
		if now() > until_then then
			debug.sethook()
			error("interrupted", 0)
		end
	end
	jit.off() -- a compiled loop asks no hook
	debug.sethook(interrupt, "", 1000)
	local _, err = pcall(session.submit, session, { line = ("x"):rep(1000000) })
	jit.on()
	host.ps.kill(session.__state.pid, 18)
	local seen = { err = err, status = outcome(session:status()).ok ~= nil }
	script.wait_for(session, "turn_completed", function(event)
		seen.input = event.type == "turn_started" and #event.data.input or seen.input
	end)
	assert(session:close())
	script.say(seen)
end

-- The process ends in the middle of a tool, without closing anything.
hazards.leave = function()
	LEFT = assert(script.open(plan))
	assert(LEFT:submit({ line = "run something long" }))
	script.wait_for(LEFT, "tool_execution_started")
	script.wait_for(LEFT, "tool_output_delta")
	script.say({ leaving = true })
end

hazards[plan.hazard]()
