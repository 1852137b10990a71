-- How many cells of a terminal a text takes.
--
-- The ranges are written from the tables the core measures with; a test compares them.

-- Code points that take two cells, in hexadecimal, ranges with both ends.
local WIDE = [[
1100-115F 17A4-17A4 231A-231B 2329-232A 23E9-23EC 23F0-23F0 23F3-23F3 25FD-25FE 2614-2615 2630-2637 2648-2653
267F-267F 268A-268F 2693-2693 26A1-26A1 26AA-26AB 26BD-26BE 26C4-26C5 26CE-26CE 26D4-26D4 26EA-26EA 26F2-26F3
26F5-26F5 26FA-26FA 26FD-26FD 2705-2705 270A-270B 2728-2728 274C-274C 274E-274E 2753-2755 2757-2757 2795-2797
27B0-27B0 27BF-27BF 2B1B-2B1C 2B50-2B50 2B55-2B55 2E80-2E99 2E9B-2EF3 2F00-2FD5 2FF0-3029 3030-303E 3041-3096
309B-30FF 3105-312F 3131-3163 3165-318E 3190-31E5 31EF-321E 3220-3247 3250-A48C A490-A4C6 A960-A97C AC00-D7A3
F900-FAFF FE10-FE19 FE30-FE52 FE54-FE66 FE68-FE6B FF01-FF60 FFE0-FFE6 16FE0-16FE3 16FF2-16FF6 17000-18CDA 18CFF-18D20
18D80-18DF2 18E00-19191 191A0-191D2 1AFF0-1AFF3 1AFF5-1AFFB 1AFFD-1AFFE 1B000-1B128 1B132-1B132 1B150-1B152
1B155-1B155 1B164-1B168 1B170-1B2FB 1D300-1D356 1D360-1D376 1F004-1F004 1F0CF-1F0CF 1F18E-1F18E 1F191-1F19A
1F1AE-1F1AE 1F200-1F202 1F210-1F23B 1F240-1F248 1F250-1F251 1F260-1F265 1F300-1F320 1F32D-1F335 1F337-1F37C
1F37E-1F393 1F3A0-1F3CA 1F3CF-1F3D3 1F3E0-1F3F0 1F3F4-1F3F4 1F3F8-1F43E 1F440-1F440 1F442-1F4FC 1F4FF-1F53D
1F54B-1F54E 1F550-1F567 1F57A-1F57A 1F595-1F596 1F5A4-1F5A4 1F5FB-1F64F 1F680-1F6C5 1F6CC-1F6CC 1F6D0-1F6D2
1F6D5-1F6D9 1F6DC-1F6DF 1F6EB-1F6EC 1F6F4-1F6FC 1F7DA-1F7DA 1F7E0-1F7EB 1F7F0-1F7F0 1F90C-1F93A 1F93C-1F945
1F947-1F9FF 1FA70-1FA7C 1FA80-1FAC6 1FAC8-1FAC8 1FACC-1FADD 1FADF-1FAEB 1FAEF-1FAFA 20000-2FFFD 30000-3FFFD
]]

-- Blocks whose characters take none: they go onto the character before.
local ZERO = [[
0300-036F 0483-0489 0591-05BD 0610-061A 064B-065F 1AB0-1ACE 1DC0-1DFF 200B-200D 20D0-20F0 FE00-FE0F FE20-FE2F
E0100-E01EF
]]

local FIRST_WIDE = 0x1100
local FIRST_ZERO = 0x0300

local parse = function(text)
	local ranges = {}
	for first, last in text:gmatch("(%x+)%-(%x+)") do
		ranges[#ranges + 1] = { tonumber(first, 16), tonumber(last, 16) }
	end
	return ranges
end

local wide, zero = parse(WIDE), parse(ZERO)

-- Whether `code` is in one of the ranges, which are in order.
local is_in = function(ranges, code)
	local low, high = 1, #ranges
	while low <= high do
		local middle = math.floor((low + high) / 2)
		local range = ranges[middle]
		if code < range[1] then
			high = middle - 1
		elseif code > range[2] then
			low = middle + 1
		else
			return true
		end
	end
	return false
end

-- The code point of a UTF-8 sequence; its first byte's where it is none.
local code_of = function(char)
	local lead = char:byte(1)
	if lead < 0xC0 then
		return lead
	end
	local code = lead % (lead < 0xE0 and 0x20 or lead < 0xF0 and 0x10 or 0x08)
	for at = 2, #char do
		code = code * 64 + char:byte(at) % 64
	end
	return code
end

-- The cells of one character.
local of_char = function(char)
	if #char < 2 then
		return 1
	end
	local code = code_of(char)
	if code >= FIRST_WIDE and is_in(wide, code) then
		return 2
	end
	return code >= FIRST_ZERO and is_in(zero, code) and 0 or 1
end

-- The cells of a line without escape sequences.
local of = function(line)
	if not line:find("[\128-\255]") then
		return #line
	end
	local cells = 0
	for char in line:gmatch("[%z\1-\127\192-\255][\128-\191]*") do
		cells = cells + of_char(char)
	end
	return cells
end

return { of = of }
