-- The completion of the mode's input line. The host calls `search` after a character at the end of the line; an error
-- in here would end its shell.

local SOURCE = "source"

local fill = function(self, line)
	self:flush()
	local source = self:source(SOURCE)
	if type(line) ~= "string" or line == "" or not source then
		return false
	end
	local suffixes, metadata = require("agent_smith.suffixes").derive(line, source:candidates(line))
	if #suffixes == 0 then
		return false
	end
	self:provide(suffixes)
	self:set_meta(metadata)
	return self:available()
end

local search = function(self, line)
	local ok, found = pcall(fill, self, line)
	if not ok then
		pcall(function()
			self:flush()
		end)
		return false
	end
	return found == true
end

return { search = search }
