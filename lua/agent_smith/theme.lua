-- The theme section `agent_smith`: which role of the palette each element of the mode takes.
--
-- A host that themes sections calls `build(palette)` whenever its palette changes; the colours are kept for the core,
-- which does the styling. Element paths and palette roles are those of theme/agent_smith.json.

local __state = { palette = nil, version = 0 }

-- By element path: a role of the palette for each colour, and attributes. The same table as theme/agent_smith.json; a test
-- compares them.
local STYLES = {
	text = {},
	pad = {},
	["role.smith"] = { fg = "accent1", s = "bold" },
	["role.tank"] = { fg = "accent2", s = "bold" },
	["role.niobe"] = { fg = "accent3", s = "bold" },
	["role.link"] = { fg = "accent4", s = "bold" },
	["tool.bracket"] = { fg = "border" },
	["tool.name"] = { fg = "accent7", s = "bold" },
	["tool.args"] = { fg = "subtext" },
	["tool.output"] = { fg = "muted" },
	["tool.result"] = { fg = "muted" },
	["tool.ok"] = { fg = "success" },
	["tool.failed"] = { fg = "error", s = "bold" },
	["tool.cancelled"] = { fg = "warning" },
	["prompt.mode"] = { fg = "accent1", s = "bold" },
	["prompt.separator"] = { fg = "border" },
	["prompt.model"] = { fg = "accent8" },
	["prompt.context"] = { fg = "muted" },
	["prompt.context_high"] = { fg = "warning", s = "bold" },
	["prompt.cost"] = { fg = "muted" },
	["prompt.queued"] = { fg = "info" },
	["prompt.sign"] = { fg = "cursor", s = "bold" },
	["prompt.thinking"] = { fg = "accent3" },
	["prompt.streaming"] = { fg = "accent2" },
	["prompt.tool"] = { fg = "accent7" },
	["prompt.idle"] = { fg = "muted" },
	["prompt.error"] = { fg = "error", s = "bold" },
	["prompt.cancelled"] = { fg = "warning" },
	["md.heading1"] = { fg = "accent5", s = "bold underlined" },
	["md.heading2"] = { fg = "accent5", s = "bold" },
	["md.heading3"] = { fg = "accent5", s = "italic" },
	["md.heading_mark"] = { fg = "faint" },
	["md.strong"] = { s = "bold" },
	["md.emphasis"] = { s = "italic" },
	["md.strike"] = { s = "strike" },
	["md.code"] = { fg = "accent6" },
	["md.code_mark"] = { fg = "faint" },
	["md.code_block"] = { fg = "subtext" },
	["md.code_lang"] = { fg = "faint", s = "italic" },
	["md.link"] = { fg = "link", s = "underlined" },
	["md.url"] = { fg = "faint" },
	["md.quote"] = { fg = "subtext", s = "italic" },
	["md.quote_bar"] = { fg = "border" },
	["md.list_marker"] = { fg = "accent5" },
	["md.alert"] = { fg = "info", s = "bold" },
	["md.table_border"] = { fg = "border" },
	["md.table_header"] = { s = "bold" },
	["md.rule"] = { fg = "border" },
	["md.html"] = { fg = "muted" },
	["diff.file"] = { s = "bold" },
	["diff.hunk"] = { fg = "info" },
	["diff.context"] = { fg = "muted" },
	["diff.added"] = { fg = "added" },
	["diff.removed"] = { fg = "removed" },
	["diff.added_word"] = { fg = "added", s = "inverted" },
	["diff.removed_word"] = { fg = "removed", s = "inverted" },
	["notice.info"] = { fg = "info" },
	["notice.warn"] = { fg = "warning", s = "bold" },
	["notice.error"] = { fg = "error", s = "bold" },
	["notice.text"] = {},
	["notice.hint"] = { fg = "muted", s = "italic" },
	usage = { fg = "faint" },
	marker = { fg = "faint", s = "italic" },
	spinner = { fg = "accent1" },
	thinking = { fg = "faint", s = "italic" },
	question = { fg = "accent4", s = "bold" },
	choice = { fg = "accent2" },
	["view.title"] = { fg = "accent1", s = "bold" },
	["view.bar"] = { fg = "subtext", bg = "overlay" },
	["view.match"] = { bg = "selection" },
	["view.match_current"] = { s = "inverted" },
	["view.selected"] = { fg = "text", bg = "selection", s = "bold" },
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
	for path, style in pairs(STYLES) do
		local group, element = path:match("^(.-)%.(.+)$")
		local place = section
		if group then
			place = section[group] or {}
			section[group] = place
		end
		place[element or path] = { fg = colors[style.fg], bg = colors[style.bg], s = style.s }
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
