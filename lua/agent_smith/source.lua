-- The completion source: asks the core for candidates, which are spans of the line and what replaces them. Which core
-- that is, the mode says by `update`.

-- The host updates all sources now and then without an argument; only the mode brings a function.
local update = function(self, complete)
	if type(complete) == "function" then
		self.__state.complete = complete
	end
end

-- Candidates `{ text, start, end, display?, kind, hint? }` for `line`, the cursor at its end.
local candidates = function(self, line)
	local complete = self.__state.complete
	if not complete then
		return {}
	end
	local ok, list = pcall(complete, line, #line)
	return ok and type(list) == "table" and list or {}
end

-- For hosts that search their sources themselves: what may follow `line`.
local search = function(self, line)
	local ok, suffixes = pcall(function()
		return require("agent_smith.suffixes").derive(line, self:candidates(line))
	end)
	return ok and suffixes or {}
end

local close = function(self)
	self.__state.complete = nil
end

local new = function()
	return {
		cfg = {},
		__state = { complete = nil },
		update = update,
		candidates = candidates,
		search = search,
		close = close,
	}
end

return { new = new }
