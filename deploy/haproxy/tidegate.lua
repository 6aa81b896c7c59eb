-- http-request lua.tidegate: asks Tidegate whether a request may pass, through the section
-- "listen tidegate" of haproxy.cfg. Answers refusals with what Tidegate says.
local ours = { -- headers that are not the client's to send, or concern the connection
  ["host"] = true, ["connection"] = true, ["keep-alive"] = true, ["te"] = true, ["upgrade"] = true,
  ["content-length"] = true, ["transfer-encoding"] = true, ["expect"] = true, ["x-tidegate-token"] = true,
}

local function question(txn)
  local headers, lines = {}, 0
  for name, values in pairs(txn.http:req_get_headers()) do
    if not ours[name] and not name:find("^x%-forwarded%-") and not name:find("^x%-original%-") then
      headers[name] = {}
      for i = 0, #values do headers[name][i + 1], lines = values[i], lines + 1 end
    end
  end
  headers["x-original-uri"] = { txn.f:url() } -- as the application gets it
  headers["x-original-method"] = { txn.f:method() }
  headers["x-forwarded-host"] = { txn.f:req_hdr("host") }
  headers["x-forwarded-for"] = { txn.f:src() }
  return headers, lines
end

core.register_action("tidegate", { "http-req" }, function(txn)
  local headers, lines = question(txn)
  if lines > 80 then return txn:done(txn:reply({ status = 431 })) end -- HAProxy 2.6 dies of 101
  local answer = core.httpclient():get({ url = "http://tidegate/v1/forward-auth", dst = "abns@tidegate", headers = headers, timeout = 1000 })
  if not answer or not answer.status then return end -- no decision
  if answer.status >= 500 and not answer.headers["x-tidegate-decision"] then return end
  if answer.status < 300 then
    for name, var in pairs({ ["x-tidegate-decision"] = "decision", ["ratelimit"] = "limit", ["ratelimit-policy"] = "policy" }) do
      if answer.headers[name] then txn:set_var("txn.tidegate_" .. var, answer.headers[name][0]) end
    end
    return
  end
  local reply = txn:reply({ status = answer.status, body = answer.body })
  for name, values in pairs(answer.headers) do
    if not ours[name] then for i = 0, #values do reply:add_header(name, values[i]) end end
  end
  txn:done(reply)
end, 0)
