-- sysbench's oltp_read_write as the load of the scenarios: each thread of each load has rows of its own, so that no transaction waits
-- for another one; a thread connects anew after every so many events; every event is followed by a write to a ledger, and what became of that is
-- told at the end; every error is told when it comes; and the load ends, in order, when a file is there.

require("oltp_read_write")

local ffi = require("ffi")
pcall(ffi.cdef, "int usleep(unsigned int);")

sysbench.cmdline.options.churn = {"A new connection after every N events, 0 for never", 0}
sysbench.cmdline.options.over = {"The load ends when this file is there", ""}
sysbench.cmdline.options.load_id = {"The number of this load in the ledger", 0}

local LOADS = 4
local pick = sysbench.rand.default
sysbench.rand.default = function(low, high)
   local n = pick(low, high) - 1
   local threads = sysbench.opt.threads
   return n - n % (LOADS * threads) + sysbench.opt.load_id * threads + sysbench.tid + 1
end

-- The number of the event that runs, if its entry has not been confirmed, and the ones of which nobody knows.
local n, is_pending, unknown, events = 0, false, {}, 0
local base_init, base_event, base_done = thread_init, event, thread_done

local function is_over()
   local file = io.open(sysbench.opt.over)
   if file then
      file:close()
      return true
   end
   return false
end

local function connect_anew()
   close_statements()
   con:disconnect()
   base_init()
end

-- The load goes on behind every error. What sysbench does itself about a lost connection ends in a crash.
function sysbench.hooks.sql_error_ignorable(errdesc)
   return true
end

function sysbench.hooks.before_restart_event(errdesc)
   io.stdout:write(string.format("error %d %s\n", errdesc.sql_errno, errdesc.sql_errmsg))
   io.stdout:flush()
   -- The client's own errors, and those behind which a server hangs up.
   local code = errdesc.sql_errno
   if code >= 2000 or code == 1053 or code == 1927 then
      pcall(close_statements)
      pcall(con.disconnect, con)
      while not pcall(base_init) do
         ffi.C.usleep(5000)
      end
   end
end

function event()
   if is_pending then
      unknown[#unknown + 1] = n
      is_pending = false
   end
   if is_over() then
      return true
   end
   if sysbench.opt.churn > 0 and events % sysbench.opt.churn == 0 and events > 0 then
      connect_anew()
   end
   events = events + 1
   base_event()
   n = n + 1
   is_pending = true
   con:query(string.format("INSERT INTO ledger(load_id, thread, n) VALUES (%d, %d, %d)", sysbench.opt.load_id, sysbench.tid, n))
   is_pending = false
end

function thread_done()
   if is_pending then
      unknown[#unknown + 1] = n
   end
   io.stdout:write(string.format("ledger %d %d %s\n", sysbench.tid, n, table.concat(unknown, ",")))
   io.stdout:flush()
   base_done()
end
