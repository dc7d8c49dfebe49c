// What a proxy owes both sides: a client that leaves is noticed upstream, and an
// upstream that breaks off is never a success.
import assert from 'node:assert/strict'
import http from 'node:http'
import { describe, it } from 'node:test'
import { Sandbox } from '@e2b/code-interpreter'
import { startGateway } from '../harness/gateway.mjs'
import { stopAll } from '../harness/process.mjs'
import { rejection, urlForm } from '../harness/sdk.mjs'
import { endEvent, startEvent, startUpstream, stdoutEvent } from '../harness/upstream.mjs'

/** Runs body with a gateway in front of a stand-in with these handlers. */
async function between(handlers, body) {
  const upstream = await startUpstream(handlers)
  const gateway = await startGateway({ upstream: upstream.url })
  try {
    const sandbox = await Sandbox.create(urlForm(gateway))
    await body(sandbox, gateway, upstream)
  } finally {
    await stopAll(gateway, upstream)
  }
}

/** A promise with its resolver. */
function signal() {
  let fire
  const promise = new Promise((resolve) => { fire = resolve })
  return { promise, fire }
}

function startStream(response) {
  response.writeHead(200, { 'content-type': 'application/connect+json' })
  response.write(startEvent())
}

describe('a client that leaves', () => {
  it('is noticed by the upstream of a command within a second', async () => {
    const closed = signal()
    await between({
      '/process.Process/Start': (_request, response) => {
        startStream(response)
        response.once('close', () => closed.fire(performance.now()))
      },
    }, async (sandbox) => {
      const handle = await sandbox.commands.run('sleep 60', { background: true, timeoutMs: 0 })
      const left = performance.now()
      await handle.disconnect()
      assert.ok(await closed.promise - left < 1_000)
    })
  })

  it('is noticed by the upstream of a cell within a second', async () => {
    const closed = signal()
    const running = signal()
    await between({
      '/execute': (_request, response) => {
        response.writeHead(200)
        response.write('{"type": "number_of_executions", "execution_count": 1}\n')
        running.fire()
        response.once('close', () => closed.fire(performance.now()))
      },
    }, async (sandbox) => {
      const left = sandbox.runCode('while True: pass', { timeoutMs: 500 }).catch(() => performance.now())
      await running.promise
      assert.ok(await closed.promise - await left < 1_000)
    })
  })
})

describe('an upstream that breaks off', () => {
  it('in a command is an error, not an exit', () => between({
    '/process.Process/Start': (_request, response) => {
      startStream(response)
      response.write(stdoutEvent('half an answ'), () => response.destroy())
    },
  }, async (sandbox) => {
    const error = await rejection(sandbox.commands.run('cat answer'))
    assert.equal(error.exitCode, undefined)
  }))

  it('in the middle of a frame is an error', () => between({
    '/process.Process/Start': (_request, response) => {
      startStream(response)
      response.write(stdoutEvent('whole').subarray(0, 9), () => response.destroy())
    },
  }, async (sandbox) => { await rejection(sandbox.commands.run('cat answer')) }))

  it('by ending the stream politely, without an end event, is an error', () => between({
    '/process.Process/Start': (_request, response) => {
      startStream(response)
      response.end()
    },
  }, async (sandbox) => { await rejection(sandbox.commands.run('cat answer')) }))

  it('in a cell is an error', () => between({
    '/execute': (_request, response) => {
      response.writeHead(200)
      response.write('{"type": "stdout", "text": "half", "timestamp": 1}\n', () => response.destroy())
    },
  }, async (sandbox) => { await rejection(sandbox.runCode('print("half")')) }))

  it('in a download is an error', () => between({
    '/files': (_request, response) => {
      response.writeHead(200, { 'content-length': '1000000' })
      response.write(Buffer.alloc(1000), () => response.destroy())
    },
  }, async (sandbox) => { await rejection(sandbox.files.read('big.bin', { format: 'bytes' })) }))

  it('by refusing connections is an error that hides its address', async () => {
    const upstream = await startUpstream()
    const gateway = await startGateway({ upstream: upstream.url })
    try {
      const sandbox = await Sandbox.create(urlForm(gateway))
      await upstream.stop()
      for (const call of [() => sandbox.commands.run('true'), () => sandbox.getInfo(), () => sandbox.files.read('x')]) {
        const error = await rejection(call())
        assert.ok(!error.message.includes(new URL(upstream.url).port), error.message)
      }
    } finally {
      await gateway.stop()
    }
  })
})

// e2b-dev/E2B#1325: a rate limit must stay recognisable, and so must how long to
// wait.
describe('a rate limit of the upstream', () => {
  const limited = (_request, response) => {
    response.writeHead(429, { 'content-type': 'application/json', 'retry-after': '7' })
    response.end('{"code":429,"message":"slow down, please"}')
  }

  it('reaches the client as one, with its header', () => between({ '/files': limited }, async (sandbox, gateway) => {
    const error = await rejection(sandbox.files.read('x'))
    assert.equal(error.name, 'RateLimitError')
    assert.match(error.message, /slow down, please/)
    const response = await fetch(`${gateway.url}/files?path=x`, {
      headers: { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '49983' },
    })
    assert.equal(response.headers.get('retry-after'), '7')
  }))
})

describe('streams and connections', () => {
  it('events arrive as they are sent', () => between({
    '/process.Process/Start': async (_request, response) => {
      startStream(response)
      for (let i = 0; i < 3; i++) {
        response.write(stdoutEvent(String(performance.timeOrigin + performance.now())))
        await new Promise((resolve) => setTimeout(resolve, 300))
      }
      response.end(endEvent())
    },
  }, async (sandbox) => {
    const delays = []
    await sandbox.commands.run('tick', { onStdout: (sent) => delays.push(performance.timeOrigin + performance.now() - Number(sent)) })
    assert.equal(delays.length, 3)
    for (const delay of delays) assert.ok(delay < 100, `delayed by ${delay} ms`)
  }))

  it('calls share a connection, with a body and without', () => between({}, async (sandbox, gateway) => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    const headers = { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '49983', 'Content-Type': 'application/json' }
    const sockets = new Set()
    const call = (method, path, body) => new Promise((resolve, reject) => {
      const request = http.request(gateway.url + path, { agent, method, headers }, (response) => response.resume().once('end', resolve))
      request.once('socket', (socket) => sockets.add(socket)).once('error', reject).end(body)
    })
    for (let i = 0; i < 5; i++) {
      await call('GET', '/health')
      await call('POST', '/process.Process/List', '{}')
    }
    agent.destroy()
    assert.equal(sockets.size, 1)
  }))

  it('a hundred calls at once all reach the upstream once', () => between({}, async (sandbox, _gateway, upstream) => {
    await Promise.all(Array.from({ length: 100 }, (_, i) => sandbox.commands.run(`echo ${i}`)))
    assert.equal(upstream.requests.filter(({ path }) => path === '/process.Process/Start').length, 100)
  }))
})
