-- JSON for the stand-in of the host's `cjson.safe`: failures are nil and a message, an empty table encodes as {}.

local null = setmetatable({}, {
	__tostring = function()
		return "null"
	end,
})

local ESCAPES = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"', ["\\"] = "\\", ["/"] = "/" }

local utf8_char = function(code)
	if code < 0x80 then
		return string.char(code)
	elseif code < 0x800 then
		return string.char(0xC0 + math.floor(code / 64), 0x80 + code % 64)
	elseif code < 0x10000 then
		return string.char(0xE0 + math.floor(code / 4096), 0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
	end
	return string.char(
		0xF0 + math.floor(code / 262144),
		0x80 + math.floor(code / 4096) % 64,
		0x80 + math.floor(code / 64) % 64,
		0x80 + code % 64
	)
end

local parse_value

local skip = function(text, at)
	return text:find("[^ \t\r\n]", at) or #text + 1
end

local parse_string = function(text, at)
	local out = {}
	at = at + 1
	while true do
		local stop = text:find('["\\]', at) or error("unfinished string")
		out[#out + 1] = text:sub(at, stop - 1)
		if text:sub(stop, stop) == '"' then
			return table.concat(out), stop + 1
		end
		local kind = text:sub(stop + 1, stop + 1)
		if kind == "u" then
			local code = tonumber(text:sub(stop + 2, stop + 5), 16) or error("bad escape")
			at = stop + 6
			if code >= 0xD800 and code < 0xDC00 and text:sub(at, at + 1) == "\\u" then
				local low = tonumber(text:sub(at + 2, at + 5), 16) or error("bad escape")
				code = 0x10000 + (code - 0xD800) * 1024 + (low - 0xDC00)
				at = at + 6
			end
			out[#out + 1] = utf8_char(code)
		else
			out[#out + 1] = ESCAPES[kind] or error("bad escape")
			at = stop + 2
		end
	end
end

parse_value = function(text, at)
	at = skip(text, at)
	local char = text:sub(at, at)
	if char == "{" then
		local out = {}
		at = skip(text, at + 1)
		if text:sub(at, at) == "}" then
			return out, at + 1
		end
		while true do
			at = skip(text, at)
			if text:sub(at, at) ~= '"' then
				error("key expected at " .. at)
			end
			local key, value
			key, at = parse_string(text, at)
			at = skip(text, at)
			if text:sub(at, at) ~= ":" then
				error("colon expected at " .. at)
			end
			value, at = parse_value(text, at + 1)
			out[key] = value
			at = skip(text, at)
			local mark = text:sub(at, at)
			at = at + 1
			if mark == "}" then
				return out, at
			elseif mark ~= "," then
				error("comma expected at " .. at)
			end
		end
	elseif char == "[" then
		local out = {}
		at = skip(text, at + 1)
		if text:sub(at, at) == "]" then
			return out, at + 1
		end
		while true do
			out[#out + 1], at = parse_value(text, at)
			at = skip(text, at)
			local mark = text:sub(at, at)
			at = at + 1
			if mark == "]" then
				return out, at
			elseif mark ~= "," then
				error("comma expected at " .. at)
			end
		end
	elseif char == '"' then
		return parse_string(text, at)
	end
	for word, value in pairs({ ["true"] = true, ["false"] = false, ["null"] = null }) do
		if text:sub(at, at + #word - 1) == word then
			return value, at + #word
		end
	end
	local number = text:match("^-?%d+%.?%d*[eE]?[+-]?%d*", at)
	if not number then
		error("value expected at " .. at)
	end
	return tonumber(number), at + #number
end

local QUOTED = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

local quote = function(text)
	return '"' .. text:gsub('[%z\1-\31"\\]', function(char)
		return QUOTED[char] or ("\\u%04x"):format(char:byte())
	end) .. '"'
end

local encode
encode = function(value)
	local kind = type(value)
	if value == null or value == nil then
		return "null"
	elseif kind == "string" then
		return quote(value)
	elseif kind == "number" then
		return value % 1 == 0 and ("%d"):format(value) or ("%.17g"):format(value)
	elseif kind == "boolean" then
		return tostring(value)
	elseif kind == "table" then
		local out = {}
		if #value > 0 then
			for i, item in ipairs(value) do
				out[i] = encode(item)
			end
			return "[" .. table.concat(out, ",") .. "]"
		end
		for key, item in pairs(value) do
			out[#out + 1] = quote(tostring(key)) .. ":" .. encode(item)
		end
		table.sort(out)
		return "{" .. table.concat(out, ",") .. "}"
	end
	error("cannot encode a " .. kind)
end

local safe = function(fn)
	return function(...)
		local ok, result = pcall(fn, ...)
		if ok then
			return result
		end
		return nil, tostring(result)
	end
end

return {
	null = null,
	encode = safe(encode),
	decode = safe(function(text)
		local value, at = parse_value(text, 1)
		if skip(text, at) <= #text then
			error("trailing garbage")
		end
		return value
	end),
}
