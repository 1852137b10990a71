-- A core that answers by script, for tests of the shim alone.
--
--     local core = fake_core.new()
--     core.on_line = function(line) return { {type=..., data=...}, ... } end

local render = function(text, transient)
	return { type = "render", ts = 1, data = { ansi = text, transient = transient == true } }
end

local new = function()
	local core = {
		hellos = {},
		submits = {},
		cancels = {},
		answers = {},
		sizes = {},
		themes = {},
		view_keys = {},
		open = 0,
		queue = {},
		faults = {},
		on_line = function(line)
			return { render("echo " .. line .. "\n") }
		end,
		on_poll = nil,
		on_cancel = nil,
		on_answer = nil,
		on_view_key = nil,
		prompt = "\27[1mSmith\27[0m demo > ",
		candidates = {},
		keys = nil,
	}

	core.push = function(events)
		for _, event in ipairs(events) do
			core.queue[#core.queue + 1] = event
		end
	end

	core.settle = function(extra)
		local data = extra or {}
		data.inputs = #core.submits
		core.push({ { type = "input_settled", ts = 1, data = data } })
	end

	local session = function()
		local me = {}
		local method = function(name, fn)
			me[name] = function(self, ...)
				assert(self == me, "called without the session: " .. name)
				local fault = core.faults[name]
				if type(fault) == "string" then
					error(fault, 0)
				elseif fault then
					return nil, fault
				end
				return fn(...)
			end
		end
		method("submit", function(request)
			assert(type(request.line) == "string" and type(request.cwd) == "string")
			core.submits[#core.submits + 1] = request
			local events = core.on_line(request.line)
			if events then
				core.push(events)
				core.settle()
			end
			return true
		end)
		method("poll", function(ms)
			assert(type(ms) == "number")
			if core.on_poll then
				core.on_poll(ms)
			end
			local events = core.queue
			core.queue = {}
			return events
		end)
		method("cancel", function(request)
			core.cancels[#core.cancels + 1] = request.scope
			if core.on_cancel then
				core.on_cancel(request.scope)
			end
			return true
		end)
		method("answer", function(request)
			core.answers[#core.answers + 1] = request
			if core.on_answer then
				core.on_answer(request)
			end
			return true
		end)
		method("complete", function(request)
			assert(type(request.line) == "string" and request.cursor == #request.line)
			return core.candidates
		end)
		method("status", function()
			return {
				prompt = core.prompt,
				state = "idle",
				role = "direct",
				label = "Smith",
				model = "demo",
				keys = core.keys,
			}
		end)
		method("resize", function(request)
			core.sizes[#core.sizes + 1] = request.cols .. "x" .. request.rows
			return true
		end)
		method("theme", function(request)
			core.themes[#core.themes + 1] = request
			return true
		end)
		method("view_key", function(request)
			core.view_keys[#core.view_keys + 1] = request.key
			if core.on_view_key then
				core.on_view_key(request)
			end
			return true
		end)
		method("close", function()
			core.open = core.open - 1
			return true
		end)
		return me
	end

	-- What `require("agent_smith.core")` gives a host that can load the core.
	core.new = function(hello)
		local fault = core.faults.new
		if type(fault) == "string" then
			error(fault, 0)
		elseif fault then
			return nil, fault
		end
		core.hellos[#core.hellos + 1] = hello
		core.open = core.open + 1
		core.submits = {}
		return session()
	end
	return core
end

return { new = new, render = render }
