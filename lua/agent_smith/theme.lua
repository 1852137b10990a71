-- The theme section `agent_smith`: which role of the palette each element of the mode takes.
--
-- A host that themes sections calls `build(palette)` whenever its palette changes; the colours are kept for the core,
-- which does the styling. Element paths and palette roles are those of theme/agent_smith.json.

local __state = { palette = nil, version = 0 }

local STYLES = {
	role = {
		smith = { fg = "accent1", s = "bold" },
		tank = { fg = "accent2", s = "bold" },
		niobe = { fg = "accent3", s = "bold" },
		link = { fg = "accent4", s = "bold" },
	},
	tool = {
		bracket = { fg = "border" },
		name = { fg = "accent7", s = "bold" },
		args = { fg = "subtext" },
		result = { fg = "muted" },
		ok = { fg = "success" },
		failed = { fg = "error", s = "bold" },
		cancelled = { fg = "warning" },
	},
	prompt = {
		mode = { fg = "accent1", s = "bold" },
		separator = { fg = "border" },
		model = { fg = "accent8" },
		context = { fg = "muted" },
		sign = { fg = "cursor", s = "bold" },
		thinking = { fg = "accent3" },
		streaming = { fg = "accent2" },
		tool = { fg = "accent7" },
		idle = { fg = "muted" },
		error = { fg = "error", s = "bold" },
		cancelled = { fg = "warning" },
	},
}

-- The section's styles in the colours of `palette` (role name -> colour). A role the palette lacks is left out: the
-- element then looks like its surroundings.
local build = function(palette)
	local colors = type(palette) == "table" and palette or {}
	if type(palette) == "table" then
		__state.palette = palette
		__state.version = __state.version + 1
	end
	local section = {}
	for group, elements in pairs(STYLES) do
		section[group] = {}
		for element, style in pairs(elements) do
			section[group][element] = { fg = colors[style.fg], s = style.s }
		end
	end
	return section
end

-- The palette the host last built the section with, and a number that changes with it; nil where it never did.
local palette = function()
	local colors = __state.palette
	if type(colors) ~= "table" then
		return nil, __state.version
	end
	local out = {}
	for role, color in pairs(colors) do
		local kind = type(color)
		if type(role) == "string" and (kind == "string" or kind == "number" or kind == "table") then
			out[role] = color
		end
	end
	return out, __state.version
end

return { build = build, palette = palette, STYLES = STYLES }
