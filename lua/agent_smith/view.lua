-- Full-screen views: the one loop that shows all of them. A view is a state machine in the core; here are only its
-- screen and its keys.

-- How long the answer to a key may take before the view counts as stuck.
local FRAME_WAIT_MS = 2000
local LEAVE = { ["CTRL+c"] = true, ESC = true }
-- Terminals that know synchronized output draw a frame in one step; the others ignore these.
local BEGIN, END = "\27[?2026h", "\27[?2026l"

local draw = function(host, frame)
	local rows = host:window_size() or 24
	local out = { BEGIN, "\27[?25l" }
	for row = 1, rows do
		out[#out + 1] = "\27[" .. row .. ";1H\27[0m" .. tostring((frame.rows or {})[row] or "") .. "\27[0m\27[K"
	end
	local cursor = frame.cursor
	if type(cursor) == "table" and tonumber(cursor.row) and tonumber(cursor.col) then
		out[#out + 1] = "\27[" .. (cursor.row + 1) .. ";" .. (cursor.col + 1) .. "H\27[?25h"
	end
	out[#out + 1] = END
	host:write(table.concat(out))
end

-- Draws the newest frame of this view among `events` and keeps the others for later. Says whether a frame came and
-- whether it was the last.
local sort = function(self, events)
	local newest
	for _, event in ipairs(events) do
		local data = event.data or {}
		if event.type == "view_frame" and data.view_id == self.cfg.view_id then
			newest = data
		else
			self.__state.others[#self.__state.others + 1] = event
		end
	end
	if newest and not newest.done then
		draw(self.host, newest)
	end
	return newest ~= nil, newest ~= nil and newest.done == true
end

-- The same for what the session has now, or gets within `ms`; nil where it is lost.
local take = function(self, ms)
	local events, problem = self.host:poll(self.session, ms)
	if not events then
		return nil, problem
	end
	return self:__sort(events)
end

-- Waits for the frame that answers a key.
local await_frame = function(self)
	local left = FRAME_WAIT_MS
	while left > 0 do
		local came, done = self:__take(100)
		if came == nil then
			return nil, done
		end
		if came then
			return true, done
		end
		left = left - 100
	end
	return false
end

local loop = function(self, surface, events)
	local _, finished = self:__sort(events)
	if finished then
		return
	end
	while true do
		local key, problem = surface.key()
		if problem then
			return
		end
		if key then
			if not self.session:view_key(self.cfg.view_id, key) then
				return
			end
			local came, done = self:__await_frame()
			if came == nil or done then
				return
			end
			if not came and LEAVE[key] then
				-- The core does not answer any more, and the user wants out.
				return
			end
		else
			self.session:fit()
			local came, done = self:__take(0)
			if came == nil or done then
				return
			end
		end
	end
end

-- Shows the view until it is done, beginning with the events that came with its opening; gives those that were not its
-- own.
local show = function(self, events)
	local surface = self.host:screen()
	if not surface then
		return nil, "this terminal has no second screen"
	end
	local ok, problem = pcall(loop, self, surface, events)
	surface.close()
	if not ok then
		return nil, tostring(problem)
	end
	return self.__state.others
end

local new = function(host, session, view_id)
	return {
		cfg = { view_id = view_id },
		host = host,
		session = session,
		__state = { others = {} },
		__sort = sort,
		__take = take,
		__await_frame = await_frame,
		show = show,
	}
end

return { new = new }
