-- Candidates as the host wants them: text that is put behind the line, or a replacement of the whole line where a
-- candidate changes what was typed already.

-- `suffixes, metadata` of the core's candidates for `line` with the cursor at its end. Metadata of the same index:
-- `replace_prompt`, where the host is to replace the line by it and the suffix, `hint`, `kind` and `display`.
local derive = function(line, candidates)
	local suffixes, metadata = {}, {}
	for _, candidate in ipairs(candidates) do
		local text, first, last = candidate.text, tonumber(candidate.start), tonumber(candidate["end"])
		if type(text) == "string" and first and last and first >= 0 and first <= last and last <= #line then
			local typed = line:sub(first + 1)
			local meta = {
				source = "source",
				kind = candidate.kind,
				hint = candidate.hint,
				display = candidate.display,
			}
			local suffix
			if last == #line and text:sub(1, #typed) == typed then
				suffix = text:sub(#typed + 1)
			else
				meta.replace_prompt = line:sub(1, first)
				suffix = text .. line:sub(last + 1)
			end
			-- What is typed out already completes nothing.
			if suffix ~= "" then
				suffixes[#suffixes + 1] = suffix
				metadata[#metadata + 1] = meta
			end
		end
	end
	return suffixes, metadata
end

return { derive = derive }
