-- A test runner of a few lines: `test(name, fn)`, a report, and an exit code.

local failures, passed = {}, 0

local show
show = function(value)
	if type(value) == "string" then
		return ("%q"):format(value):gsub("\27", "\\27"):gsub("\r", "\\r")
	elseif type(value) == "table" then
		local parts = {}
		for key, item in pairs(value) do
			parts[#parts + 1] = tostring(key) .. "=" .. show(item)
		end
		table.sort(parts)
		return "{" .. table.concat(parts, ", ") .. "}"
	end
	return tostring(value)
end

local same
same = function(a, b)
	if type(a) ~= "table" or type(b) ~= "table" then
		return a == b
	end
	for key, value in pairs(a) do
		if not same(value, b[key]) then
			return false
		end
	end
	for key in pairs(b) do
		if a[key] == nil then
			return false
		end
	end
	return true
end

local M = {}

M.test = function(name, fn)
	local ok, problem = xpcall(fn, debug.traceback)
	if ok then
		passed = passed + 1
	else
		failures[#failures + 1] = name .. "\n    " .. tostring(problem):gsub("\n", "\n    ")
	end
end

M.equal = function(actual, expected, what)
	if not same(actual, expected) then
		error((what or "value") .. ": expected " .. show(expected) .. ", got " .. show(actual), 2)
	end
end

M.ok = function(value, what)
	if not value then
		error(what or "expected something true", 2)
	end
end

M.contains = function(text, part, what)
	if not tostring(text):find(part, 1, true) then
		error((what or "text") .. ": " .. show(part) .. " is not in " .. show(tostring(text)), 2)
	end
end

M.lacks = function(text, part, what)
	if tostring(text):find(part, 1, true) then
		error((what or "text") .. ": " .. show(part) .. " is in " .. show(tostring(text)), 2)
	end
end

M.finish = function()
	for _, failure in ipairs(failures) do
		io.write("FAILED ", failure, "\n")
	end
	io.write(("%d passed, %d failed\n"):format(passed, #failures))
	io.stdout:flush()
	os.exit(#failures == 0 and passed > 0 and 0 or 1)
end

return M
