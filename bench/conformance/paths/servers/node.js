// Node's http server, and the usual ways to find a route in it. Answers with a line
// per way: its name, the route and the path. Prints its port.
'use strict'
const http = require('http')
const url = require('url')

// route is the handler that a path goes to.
function route (path, flags = '') {
  const found = new RegExp('^/(denied|limited|exempt)(?:/|$)', flags).exec(path)
  return found ? found[1].toLowerCase() : 'other'
}

const decode = decodeURIComponent // throws on an escape that is not UTF-8

// Each way takes the request target and returns the path.
const ways = {
  'node-url': target => decode(new URL(target, 'http://example.com').pathname),
  'node-parse': target => decode(url.parse(target).pathname),
  'node-raw': target => decode(target.split('?')[0])
}

function attempt (way, target) {
  try {
    return way(target)
  } catch (err) {
    return null
  }
}

const server = http.createServer((req, res) => {
  const lines = []
  for (const [name, way] of Object.entries(ways)) {
    const path = attempt(way, req.url)
    lines.push(path === null ? [name, '400'] : [name, route(path), JSON.stringify(path)])
  }
  // Express compares paths without their case unless it is told not to.
  const path = attempt(ways['node-raw'], req.url)
  lines.push(path === null ? ['nocase', '400'] : ['nocase', route(path, 'i'), JSON.stringify(path)])
  res.end(lines.map(l => l.join(' ') + '\n').join(''))
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
