-- Finds changes of counters that are kept elsewhere, before anything is written.
for i = 2, #ARGV do
  local arg = ARGV[i]
  local kind, verb, key, id, _, _, _, _, from = unpack('<BBI2c9ddI2d', arg)
  if verb < 3 and (kind == 4 or kind == 5) then
    local box = kind == 4 and call('GET', KEYS[key]) or ''
    --<box find>
    --<seek>
    if moved then return pack('<ddddd', tag, -2, i - 1, moved, tag - 2 + (i - 1) + moved) end
  end
end
