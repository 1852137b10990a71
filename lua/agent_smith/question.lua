-- The answer to a question of the core, from the line a user typed.

local trim = function(text)
	return (text:gsub("^%s+", ""):gsub("%s+$", ""))
end

-- The value `line` means: a choice by its name, its beginning or its number, the default for an empty line, anything
-- where nothing is to choose from. Nil and what to say where it means nothing.
local resolve = function(question, line)
	local text = trim(line or "")
	local choices = type(question.choices) == "table" and question.choices or {}
	if text == "" then
		if question.default ~= nil then
			return question.default
		end
		if #choices == 0 then
			return ""
		end
	end
	if #choices == 0 then
		return text
	end
	local lower = text:lower()
	local begun = {}
	for _, choice in ipairs(choices) do
		local name = tostring(choice)
		if name:lower() == lower then
			return choice
		end
		if text ~= "" and name:lower():sub(1, #lower) == lower then
			begun[#begun + 1] = choice
		end
	end
	if #begun == 1 then
		return begun[1]
	end
	local number = tonumber(text:match("^%d+$"))
	if number and choices[number] ~= nil then
		return choices[number]
	end
	local names = {}
	for i, choice in ipairs(choices) do
		names[i] = tostring(choice)
	end
	return nil, "Please answer with one of: " .. table.concat(names, ", ") .. "."
end

return { resolve = resolve }
