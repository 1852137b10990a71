-- Key combinations: the notations users write, brought to the host's one.
--
-- The host names a combination by its modifiers in a fixed order joined by "+", then the key: letters in lower case,
-- other keys by their name in capitals ("ALT+h", "CTRL+c", "SHIFT+ALT+x", "PAGE_UP").

local ORDER = { "SHIFT", "ALT", "CTRL", "SUPER", "HYPER", "META", "CAPS_LOCK", "NUM_LOCK" }
local ALIASES = { CONTROL = "CTRL", OPTION = "ALT", CMD = "SUPER", COMMAND = "SUPER", WIN = "SUPER" }

local DEFAULTS = { cancel = "CTRL+c", conversation = "ALT+h", inspect = "ALT+i" }

-- The host's name of `text` ("ctrl-c", "Alt+H", "f5"); nil where it is no combination.
local normalize = function(text)
	if type(text) ~= "string" or text == "" then
		return nil
	end
	local held = {}
	local rest = text
	while true do
		local at = rest:find("[+-]")
		if not at or at == 1 or at == #rest then
			break
		end
		local name = rest:sub(1, at - 1):upper()
		name = ALIASES[name] or name
		local known = false
		for _, modifier in ipairs(ORDER) do
			known = known or modifier == name
		end
		if not known then
			return nil
		end
		held[name] = true
		rest = rest:sub(at + 1)
	end
	local parts = {}
	for _, modifier in ipairs(ORDER) do
		if held[modifier] then
			parts[#parts + 1] = modifier
		end
	end
	parts[#parts + 1] = #rest == 1 and rest:lower() or rest:upper()
	return table.concat(parts, "+")
end

-- What each combination does: the defaults, changed by `wanted` (action -> combination). An empty or unreadable wish
-- leaves the default.
local actions = function(wanted)
	local combos = {}
	for action, default in pairs(DEFAULTS) do
		local wish = type(wanted) == "table" and wanted[action] or nil
		combos[normalize(wish) or default] = action
	end
	return combos
end

return { DEFAULTS = DEFAULTS, normalize = normalize, actions = actions }
