// Talks to the server at the host and port of the arguments, and throws if it does not
// answer as it should.
import assert from 'node:assert/strict'
import { createClient } from 'redis'
import Redis from 'ioredis'

const [host, port] = [process.argv[2], Number(process.argv[3])]
const many = 1000

// pairs makes an object of a reply, which is a map in RESP3.
const pairs = reply => Array.isArray(reply)
  ? Object.fromEntries(Array.from({ length: reply.length / 2 }, (_, i) => [reply[2 * i], reply[2 * i + 1]]))
  : reply instanceof Map ? Object.fromEntries(reply) : { ...reply }

async function talk (name, send) {
  assert.equal(await send('PING'), 'PONG')
  await send('DEL', name)
  assert.deepEqual(await send('CL.THROTTLE', name, '15', '30', '60'), [0, 16, 15, -1, 2])
  const answers = await Promise.all(Array.from({ length: many }, () => send('CL.THROTTLE', name, '99', '1', '3600')))
  assert.equal(answers.filter(a => a[0] === 0).length, 99, 'two seconds are less than one of a hundred')
  const check = pairs(await send('TG.CHECK', 'PATH', '/posts', 'AS', 'user', name))
  assert.deepEqual([check.decision, check.rule, Number(check.remaining)], ['allowed', 'posts', 2])
  const reserved = pairs(await send('TG.RESERVE', 'PATH', '/chat', 'AS', 'user', name, 'COST', '100'))
  assert.equal(await send('TG.SETTLE', reserved.ticket, 'COST', '37'), 1)
  assert.equal(await send('TG.SETTLE', reserved.ticket, 'COST', '37'), 0)
  assert.equal(Number(pairs(await send('TG.PEEK', 'PATH', '/chat', 'AS', 'user', name)).remaining), 63)
  await assert.rejects(send('GET', 'x'), /unknown command/)
  await assert.rejects(send('CL.THROTTLE', name, 'x', '1', '1'), /Couldn't parse as integer: x/)
  console.log(`${name}: ${many} decisions, rules and reservations`)
}

for (const RESP of [2, 3]) {
  const client = createClient({ RESP, username: 'ann', password: 'pass', socket: { host, port }, name: 'conformance' })
  client.on('error', err => { throw err })
  await client.connect()
  await talk(`node-redis-resp${RESP}`, (...args) => client.sendCommand(args))
  await client.close()
}

const old = new Redis({ host, port, username: 'ann', password: 'pass', maxRetriesPerRequest: 1, connectionName: 'conformance' })
old.on('error', err => { throw err })
await talk('ioredis', (...args) => old.call(...args))
await old.quit()
