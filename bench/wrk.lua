-- Asks the requests in a file one after another: on each line an address and, after a tab, the
-- tag of the answer that is there already, or nothing. At the end it writes the numbers of answers,
-- microseconds and errors.

local requests, last = {}, 0

function init(args)
  for line in io.lines(args[1]) do
    local path, tag = line:match("^(.-)\t(.*)$")
    local headers = tag ~= "" and { ["If-None-Match"] = tag } or nil
    table.insert(requests, wrk.format("GET", path, headers))
  end
end

function request()
  last = last % #requests + 1
  return requests[last]
end

function done(summary)
  local e = summary.errors
  local errors = e.connect + e.read + e.write + e.status + e.timeout
  io.write(string.format("%d %d %d\n", summary.requests, summary.duration, errors))
end
