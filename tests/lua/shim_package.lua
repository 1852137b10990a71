-- The package: what lilpack.json names is there, and the shell starts with it and stops with nothing less.

local check = require("check")
local lab = require("lab")

local test, equal, ok, contains = check.test, check.equal, check.ok, check.contains

local path_of = function(module)
	local base = "lua/" .. module:gsub("%.", "/")
	for _, path in ipairs({ base .. ".lua", base .. "/init.lua" }) do
		local file = io.open(path)
		if file then
			file:close()
			return path
		end
	end
	return nil
end

test("every module of the manifest is a file that loads alone, without a host", function()
	local manifest = lab.manifest()
	ok(#manifest.modules > 10)
	for _, module in ipairs(manifest.modules) do
		local path = path_of(module)
		ok(path, module .. " has no file")
		lab.forget()
		for _, name in ipairs({ "term", "std", "std.core", "std.ps", "theme", "socket", "cjson.safe" }) do
			package.loaded[name] = nil
		end
		local loaded, problem = pcall(require, module)
		ok(loaded and type(problem) == "table", module .. ": " .. tostring(problem))
	end
end)

test("every file of the package is in the manifest", function()
	local listed = {}
	for _, module in ipairs(lab.manifest().modules) do
		listed[path_of(module)] = true
	end
	local files = io.popen("ls lua/agent_smith/*.lua")
	for path in files:lines() do
		ok(listed[path], path .. " is not in lilpack.json")
	end
	files:close()
end)

test("what a mode names is among the modules, and the shell starts with it", function()
	local manifest = lab.manifest()
	local modules = {}
	for _, module in ipairs(manifest.modules) do
		modules[module] = true
	end
	for name, mode in pairs(manifest.modes) do
		for _, module in ipairs({ mode.path, mode.prompt, mode.completion.path, unpack(mode.completion.sources) }) do
			ok(modules[module], name .. " names " .. module)
		end
	end
	for _, module in pairs(manifest.theme.sections) do
		ok(modules[module], "the theme names " .. module)
	end
	local shell, _, host = lab.new()
	shell:activate()
	equal(host.violations, {})
end)

test("the stand-in is as strict as the host: a missing module, an error at load and one in new() end the start", function()
	for what, mode in pairs({
		["a missing mode"] = { path = "agent_smith.gone" },
		["a missing prompt"] = { prompt = "agent_smith.gone" },
		["a missing source"] = { completion = { path = "agent_smith.completion", sources = { "agent_smith.gone" } } },
		["a missing completion"] = { completion = { path = "agent_smith.gone", sources = {} } },
	}) do
		local started, problem = pcall(lab.new, { mode = mode })
		ok(not started, what)
		contains(problem, "no such module", what)
	end
	local started, problem = pcall(lab.new, {
		before = function()
			package.preload["agent_smith"] = function()
				error("syntax error", 0)
			end
		end,
	})
	ok(not started)
	contains(problem, "THE SHELL DIED")
end)

test("the theme section has the elements and styles of the built-in one", function()
	lab.new()
	local built_in = require("json").decode(lab.read_file("theme/agent_smith.json"))
	equal(built_in.section, "agent_smith")
	equal(require("agent_smith.theme").STYLES, built_in.styles)
end)

test("the theme section takes the palette's colours and keeps them for the core", function()
	lab.new()
	local theme = require("agent_smith.theme")
	equal({ theme.palette() }, { nil, 0 })
	local section = theme.build({ accent1 = "#7ee787", success = 2, error = { 255, 0, 0 } })
	equal(section.role.smith, { fg = "#7ee787", s = "bold" })
	equal(section.tool.ok, { fg = 2 })
	equal(section.tool.bracket, {}, "a role the palette lacks is left out")
	equal(section.view.selected, { s = "bold" })
	equal(section.text, {})
	local palette, version = theme.palette()
	equal({ palette.accent1, palette.success, version }, { "#7ee787", 2, 1 })
	equal(theme.build(nil).role.smith, { s = "bold" })
end)

test("a palette the host has built reaches the core at hello, a changed one later", function()
	local shell, core = lab.new()
	require("agent_smith.theme").build({ accent1 = 1 })
	shell:activate()
	equal(core.hellos[1].palette, { accent1 = 1 })
	shell:enter("x")
	local told = #core.themes
	require("agent_smith.theme").build({ accent1 = 2 })
	shell:enter("x")
	equal(#core.themes, told + 1)
	equal(core.themes[#core.themes].palette, { accent1 = 2 })
	shell:enter("x")
	equal(#core.themes, told + 1)
end)
