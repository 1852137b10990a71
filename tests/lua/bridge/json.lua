-- JSON with the rules of cjson, for Lua processes of the tests that have no cjson: an empty table is an object, null is
-- the null light userdata, a table of positive whole keys is a list, what has no JSON raises.

local null = require("string.buffer").decode("\3")

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

local quote = function(text)
	return '"'
		.. text:gsub('[%c"\\\127]', function(c)
			return escapes[c] or ("\\u%04x"):format(c:byte())
		end)
		.. '"'
end

local encode_value

local encode_table = function(value, depth)
	if depth > 1000 then
		error("Cannot serialise, excessive depth", 0)
	end
	local count, longest = 0, 0
	for key in pairs(value) do
		if type(key) == "number" and key > 0 and key % 1 == 0 then
			longest = math.max(longest, key)
			count = count + 1
		else
			longest = nil
			break
		end
	end
	local parts = {}
	if longest and longest > 0 then
		if longest > 10 and longest > count * 2 then
			error("Cannot serialise table: excessively sparse array", 0)
		end
		for index = 1, longest do
			parts[index] = encode_value(value[index], depth + 1)
		end
		return "[" .. table.concat(parts, ",") .. "]"
	end
	for key, item in pairs(value) do
		if type(key) ~= "string" and type(key) ~= "number" then
			error("Cannot serialise " .. type(key) .. ": table key must be a number or string", 0)
		end
		parts[#parts + 1] = quote(tostring(key)) .. ":" .. encode_value(item, depth + 1)
	end
	return "{" .. table.concat(parts, ",") .. "}"
end

encode_value = function(value, depth)
	local kind = type(value)
	if value == nil or value == null then
		return "null"
	elseif kind == "string" then
		return quote(value)
	elseif kind == "number" then
		if value ~= value or value == math.huge or value == -math.huge then
			error("Cannot serialise number: must not be NaN or Infinity", 0)
		end
		return ("%.14g"):format(value)
	elseif kind == "boolean" then
		return tostring(value)
	elseif kind == "table" then
		return encode_table(value, depth)
	end
	error("Cannot serialise " .. kind .. ": type not supported", 0)
end

local utf8 = function(code)
	if code < 0x80 then
		return string.char(code)
	elseif code < 0x800 then
		return string.char(0xC0 + math.floor(code / 0x40), 0x80 + code % 0x40)
	elseif code < 0x10000 then
		return string.char(0xE0 + math.floor(code / 0x1000), 0x80 + math.floor(code / 0x40) % 0x40, 0x80 + code % 0x40)
	end
	return string.char(
		0xF0 + math.floor(code / 0x40000),
		0x80 + math.floor(code / 0x1000) % 0x40,
		0x80 + math.floor(code / 0x40) % 0x40,
		0x80 + code % 0x40
	)
end

local unescapes = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"', ["\\"] = "\\", ["/"] = "/" }

local decode_string = function(text, at)
	local stop = text:find('"', at, true)
	local first = text:find("\\", at, true)
	if stop and (not first or first > stop) then
		return text:sub(at, stop - 1), stop + 1
	end
	local parts = {}
	while true do
		local place = text:find('["\\]', at)
		if not place then
			error("unfinished string", 0)
		end
		parts[#parts + 1] = text:sub(at, place - 1)
		if text:sub(place, place) == '"' then
			return table.concat(parts), place + 1
		end
		local letter = text:sub(place + 1, place + 1)
		if letter == "u" then
			local code = tonumber(text:sub(place + 2, place + 5), 16)
			at = place + 6
			if code >= 0xD800 and code < 0xDC00 and text:sub(at, at + 1) == "\\u" then
				code = 0x10000 + (code - 0xD800) * 0x400 + tonumber(text:sub(at + 2, at + 5), 16) - 0xDC00
				at = at + 6
			end
			parts[#parts + 1] = utf8(code)
		else
			parts[#parts + 1] = unescapes[letter] or error("bad escape", 0)
			at = place + 2
		end
	end
end

local decode_value

local decode_members = function(text, at, close, member)
	at = text:find("%S", at)
	if text:sub(at, at) == close then
		return at + 1
	end
	while true do
		at = text:find("%S", member(at))
		local c = text:sub(at, at)
		at = at + 1
		if c == close then
			return at
		elseif c ~= "," then
			error("expected , or " .. close, 0)
		end
	end
end

decode_value = function(text, at)
	at = text:find("%S", at) or error("unexpected end", 0)
	local c = text:sub(at, at)
	if c == '"' then
		return decode_string(text, at + 1)
	elseif c == "{" then
		local object = {}
		at = decode_members(text, at + 1, "}", function(from)
			local key, value
			from = text:find('"', from, true)
			key, from = decode_string(text, from + 1)
			from = text:match("^%s*:()", from) or error("expected :", 0)
			value, from = decode_value(text, from)
			object[key] = value
			return from
		end)
		return object, at
	elseif c == "[" then
		local list = {}
		at = decode_members(text, at + 1, "]", function(from)
			local value
			value, from = decode_value(text, from)
			list[#list + 1] = value
			return from
		end)
		return list, at
	end
	local word, after = text:match("^(%a+)()", at)
	if word then
		local words = { ["true"] = true, ["false"] = false, null = null }
		if words[word] == nil then
			error("unexpected " .. word, 0)
		end
		return words[word], after
	end
	local number, stop = text:match("^(-?[%d.eE+-]+)()", at)
	return tonumber(number) or error("unexpected " .. c, 0), stop
end

-- As cjson.safe: nil and the reason instead of an error.
local safe = function(work)
	return function(...)
		local ok, result = pcall(work, ...)
		if ok then
			return result
		end
		return nil, result
	end
end

return {
	null = null,
	encode = safe(function(value)
		return encode_value(value, 1)
	end),
	decode = safe(function(text)
		local value, at = decode_value(text, 1)
		if text:find("%S", at) then
			error("something follows the value", 0)
		end
		return value
	end),
}
