-- Runs the tests named on the command line: `luajit tests/lua/main.lua shim_run shim_keys`, from the project's root.

package.path = "tests/lua/?.lua;lua/?.lua;lua/?/init.lua"

for _, name in ipairs(arg) do
	require(name)
end
require("check").finish()
