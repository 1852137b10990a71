-- The prompt: shows what the mode last told it. Asked for many times a keystroke, so it computes nothing and asks
-- nobody.

local FALLBACK = "agent_smith > "

-- The line in plain text, from the raw facts; for a core that sent no styled one.
local plain = function(state)
	local label = type(state.label) == "string" and state.label ~= "" and state.label or "Smith"
	local model = type(state.model) == "string" and state.model ~= "" and (" " .. state.model) or ""
	local doing = type(state.state) == "string" and state.state ~= "idle" and (" " .. state.state) or ""
	return label .. model .. doing .. " > "
end

local compose = function(state)
	local text = state.text
	if type(text) ~= "string" or text == "" then
		text = state.online and plain(state) or FALLBACK
	end
	text = text:gsub("[\r\n]+", " ")
	local lines = tonumber(state.lines) or 1
	if lines > 1 then
		text = text .. "[" .. (tonumber(state.line) or 1) .. "/" .. lines .. "] "
	end
	return text
end

local set = function(self, options)
	if type(options) ~= "table" then
		return
	end
	for key, value in pairs(options) do
		self.__state[key] = value
	end
	local ok, text = pcall(compose, self.__state)
	self.__state.shown = ok and text or FALLBACK
end

local get = function(self)
	return self.__state.shown
end

local new = function()
	return {
		cfg = {},
		__state = { text = nil, online = false, lines = 1, line = 1, shown = FALLBACK },
		set = set,
		get = get,
	}
end

return { new = new }
