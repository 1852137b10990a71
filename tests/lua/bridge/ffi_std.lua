-- The host calls the sidecar's client needs, over LuaJIT's ffi, with the contracts of the real host: `std.ps` (pipes,
-- launch, waitpid, kill) and luasocket's `select`. HOST_PIPES=inherit makes pipes that children inherit, as old hosts do.

local ffi = require("ffi")

ffi.cdef([[
typedef int pid_t;
struct timeval { long tv_sec; long tv_usec; };
struct pollfd { int fd; short events; short revents; };
int pipe2(int *fds, int flags);
long read(int fd, void *buffer, size_t count);
long write(int fd, const void *buffer, size_t count);
int close(int fd);
int dup2(int from, int to);
pid_t fork(void);
pid_t getpid(void);
pid_t setsid(void);
pid_t waitpid(pid_t pid, int *status, int options);
int kill(pid_t pid, int signal);
int execvp(const char *file, const char *const *argv);
int poll(struct pollfd *fds, unsigned long count, int timeout);
int gettimeofday(struct timeval *now, void *zone);
char *strerror(int errnum);
void _exit(int status);
int unsetenv(const char *name);
]])

local C = ffi.C
local O_CLOEXEC, WNOHANG, POLLIN, POLLOUT, EINTR = 0x80000, 1, 1, 4, 4

local failed = function()
	return nil, ffi.string(C.strerror(ffi.errno()))
end

local ps = {}

ps.getpid = function()
	return tonumber(C.getpid())
end

ps.setsid = function()
	local sid = C.setsid()
	if sid < 0 then
		return failed()
	end
	return tonumber(sid)
end

ps.kill = function(pid, signal)
	if C.kill(pid, signal) ~= 0 then
		return failed()
	end
	return true
end

ps.waitpid = function(pid)
	local status = ffi.new("int[1]")
	local ended = C.waitpid(pid, status, WNOHANG)
	if ended < 0 then
		return failed()
	end
	local word = status[0]
	if ended > 0 and word % 128 == 0 then
		return tonumber(ended), math.floor(word / 256) % 256
	end
	return tonumber(ended)
end

ps.exec = function(name, ...)
	local args = { name:match("[^/]+$"), ... }
	local argv = ffi.new("const char *[?]", #args + 1)
	for index, arg in ipairs(args) do
		argv[index - 1] = arg
	end
	C.execvp(name, argv)
	return failed()
end

ps.pipe = function()
	local fds = ffi.new("int[2]")
	if C.pipe2(fds, os.getenv("HOST_PIPES") == "inherit" and 0 or O_CLOEXEC) ~= 0 then
		return failed()
	end
	local close = function(self, name)
		if self["__" .. name] then
			self["__" .. name] = false
			C.close(self[name])
		end
	end
	return {
		out = fds[0],
		inn = fds[1],
		__out = true,
		__inn = true,
		read = function(self, count)
			local buffer = ffi.new("char[?]", count)
			local got = C.read(self.out, buffer, count)
			if got < 0 then
				return failed()
			end
			return ffi.string(buffer, got)
		end,
		write = function(self, data, count)
			local put = C.write(self.inn, data, count)
			if put < 0 then
				return failed()
			end
			return tonumber(put)
		end,
		close_out = function(self)
			close(self, "out")
		end,
		close_inn = function(self)
			close(self, "inn")
		end,
	}
end

ps.launch = function(cmd, stdin, stdout, stderr, ...)
	io.stdout:flush()
	local pid = C.fork()
	if pid < 0 then
		return nil, "failed to fork"
	end
	if pid == 0 then
		for target, fd in pairs({ [0] = stdin, [1] = stdout, [2] = stderr }) do
			C.dup2(fd, target)
			C.close(fd)
		end
		local status = 255
		if type(cmd) == "table" then
			status = cmd.func(cmd.name, { ... }, cmd.extra)
		else
			ps.exec(cmd, ...)
		end
		C._exit(status)
	end
	return tonumber(pid)
end

local socket = {}

socket.gettime = function()
	local now = ffi.new("struct timeval[1]")
	C.gettimeofday(now, nil)
	return tonumber(now[0].tv_sec) + tonumber(now[0].tv_usec) / 1e6
end

socket.select = function(receivers, senders, seconds)
	receivers, senders = receivers or {}, senders or {}
	local count = #receivers + #senders
	local fds = ffi.new("struct pollfd[?]", math.max(count, 1))
	for index, item in ipairs(receivers) do
		fds[index - 1].fd = item.getfd()
		fds[index - 1].events = POLLIN
	end
	for index, item in ipairs(senders) do
		fds[#receivers + index - 1].fd = item.getfd()
		fds[#receivers + index - 1].events = POLLOUT
	end
	local deadline = seconds and seconds >= 0 and socket.gettime() + seconds
	local ready
	repeat
		local left = deadline and math.max(0, math.ceil((deadline - socket.gettime()) * 1000)) or -1
		ready = C.poll(fds, count, left)
	until ready >= 0 or ffi.errno() ~= EINTR
	local readable, writable = {}, {}
	for index, item in ipairs(receivers) do
		if fds[index - 1].revents ~= 0 then
			readable[#readable + 1] = item
		end
	end
	for index, item in ipairs(senders) do
		if fds[#receivers + index - 1].revents ~= 0 then
			writable[#writable + 1] = item
		end
	end
	return readable, writable, ready == 0 and "timeout" or nil
end

-- As a user's `unset` in the host does.
local unsetenv = function(name)
	C.unsetenv(name)
end

return { ps = ps, socket = socket, json = require("json"), unsetenv = unsetenv }
