-- LuaHookAccessChecker tidegate.lua ask: asks Tidegate whether a request may pass.
local socket = require "socket"
local kept -- a connection, which the next request of this thread uses
local ours = { -- headers that are not the client's to send, or concern the connection
  ["host"] = true, ["connection"] = true, ["keep-alive"] = true, ["te"] = true, ["upgrade"] = true,
  ["content-length"] = true, ["transfer-encoding"] = true, ["expect"] = true, ["x-tidegate-token"] = true,
}

-- exchange sends a question and returns the status and headers of the answer, or nothing.
local function exchange(conn, question)
  if not conn or not conn:send(question) then return end
  local line = conn:receive("*l")
  local status, headers = line and tonumber(line:match("^HTTP/1%.1 (%d%d%d)")), {}
  repeat
    line = status and conn:receive("*l")
    if not line then return end
    local name, value = line:match("^([^:]+):%s*(.*)$")
    if name then headers[name:lower()] = value end
  until line == ""
  if status ~= 204 and not conn:receive(tonumber(headers["content-length"] or 0)) then return end
  return status, headers
end

local function connect()
  local conn = socket.tcp()
  conn:settimeout(0.1)
  if not conn:connect("127.0.0.1", 8081) then return end
  conn:settimeout(0.5)
  return conn
end

function ask(r)
  if not r.is_initial_req then return apache2.DECLINED end -- index, ErrorDocument: the same request
  local lines = { "GET /v1/forward-auth HTTP/1.1", "Host: " .. (r.hostname or ""), "X-Original-URI: " .. r.unparsed_uri,
    "X-Original-Method: " .. r.method, "X-Forwarded-For: " .. r.useragent_ip }
  for name, value in pairs(r:headers_in_table()) do
    local low = name:lower()
    if not ours[low] and not low:find("^x%-forwarded%-") and not low:find("^x%-original%-") then
      table.insert(lines, name .. ": " .. value)
    end
  end
  local question = table.concat(lines, "\r\n") .. "\r\n\r\n"
  local status, headers
  if kept then status, headers = exchange(kept, question) end -- it may have been closed
  if not status then
    kept = connect()
    status, headers = exchange(kept, question)
  end
  if not status or status >= 500 and not headers["x-tidegate-decision"] then -- no decision
    kept = nil
    return apache2.DECLINED -- fail open
  end
  for _, name in ipairs({ "RateLimit", "RateLimit-Policy", "Retry-After", "Refusal-Slip" }) do
    if headers[name:lower()] then r.err_headers_out[name] = headers[name:lower()] end
  end
  return status == 204 and apache2.DECLINED or status
end
