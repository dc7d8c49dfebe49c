// An ordinary day of an agent under the default configuration: nothing is
// refused. Only the wall clock is shorter here, so that outliving it takes
// seconds.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { Sandbox } from '@e2b/code-interpreter'
import { startEmulator } from '../harness/emulator.mjs'
import { startGateway } from '../harness/gateway.mjs'
import { freePort, stopAll } from '../harness/process.mjs'
import { gone, rejection, urlForm } from '../harness/sdk.mjs'

const wallClock = 3_000

let emulator
let gateway
let sandbox

before(async () => {
  emulator = await startEmulator()
  gateway = await startGateway({ upstream: emulator.url, options: `limits {\nwall_clock ${wallClock}ms\n}` })
  sandbox = await Sandbox.create({ ...urlForm(gateway), timeoutMs: 3_600_000 })
})
after(async () => {
  await sandbox?.kill()
  await stopAll(gateway, emulator)
})

describe('an ordinary day', () => {
  it('the sandbox lives for the hour it asked for', async () => {
    const { startedAt, endAt } = await sandbox.getInfo()
    assert.equal(Math.round((endAt - startedAt) / 60_000), 60)
  })

  it('a dev server in the background outlives the wall clock of a command', async () => {
    const port = await freePort()
    await sandbox.files.write('app/server.js', `
const http = require('http')
http.createServer((request, response) => response.end('hello from ' + request.url)).listen(${port}, '127.0.0.1', () => console.log('ready'))
`)
    const started = performance.now()
    let ready
    const listening = new Promise((resolve) => { ready = resolve })
    const server = await sandbox.commands.run('node app/server.js', { background: true, timeoutMs: 0, onStdout: ready })
    await listening
    await new Promise((resolve) => setTimeout(resolve, wallClock + 1_500 - (performance.now() - started)))
    const page = await sandbox.commands.run(`curl -s http://localhost:${port}/page`)
    assert.equal(page.stdout, 'hello from /page')
    assert.equal(await server.kill(), true)
  })

  it('while a foreground command is held to the wall clock, and is gone', async () => {
    const started = performance.now()
    const error = await rejection(sandbox.commands.run('exec sleep 60', { timeoutMs: 60_000 }))
    assert.ok(performance.now() - started < wallClock + 3_000, 'the wall clock did not hold')
    assert.match(error.message, /as long as policy/)
    await gone(sandbox, 'sleep 60')
  })

  it('node and npm start', async () => {
    assert.match((await sandbox.commands.run('node --version')).stdout, /^v\d+/)
    assert.match((await sandbox.commands.run('npm --version')).stdout, /^\d+\./)
    await sandbox.commands.run('mkdir -p pkg && cd pkg && npm init -y >/dev/null && npm pkg set scripts.hello="node -p 6*7"')
    assert.match((await sandbox.commands.run('npm run --silent hello', { cwd: '/home/user/pkg' })).stdout, /42/)
  })

  it('a CSV of 100 MB is written and read', async () => {
    const line = Buffer.from('1700000000,sensor-42,21.75,ok\n')
    const chunk = Buffer.concat(Array.from({ length: Math.floor((1 << 20) / line.length) }, () => line))
    const chunks = Math.ceil(100e6 / chunk.length)
    const sent = createHash('sha256')
    let left = chunks
    const body = new ReadableStream({
      pull(controller) {
        if (left-- === 0) return controller.close()
        sent.update(chunk)
        controller.enqueue(new Uint8Array(chunk))
      },
    })
    await sandbox.files.write('data.csv', body)
    assert.equal((await sandbox.files.getInfo('data.csv')).size, chunks * chunk.length)
    const received = createHash('sha256')
    for await (const part of await sandbox.files.read('data.csv', { format: 'stream' })) received.update(part)
    assert.equal(received.digest('hex'), sent.digest('hex'))
    assert.equal((await sandbox.commands.run('wc -l < data.csv')).stdout.trim(), String(chunks * Math.floor((1 << 20) / line.length)))
  })

  it('a chart of half a megabyte is a result', async () => {
    const execution = await sandbox.runCode(`
import base64, struct, zlib, random
def chunk(kind, data):
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
side = 420
random.seed(7)
rows = b"".join(b"\\0" + random.randbytes(side * 3) for _ in range(side))
png = b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
class Figure:
    def _repr_png_(self):
        return png
Figure()`)
    assert.equal(execution.error, undefined)
    const png = Buffer.from(execution.results[0].png, 'base64')
    assert.ok(png.length > 500_000, `a PNG of ${png.length} bytes`)
    assert.equal(png.subarray(1, 4).toString(), 'PNG')
  })

  it('a file is renamed while its folder is watched', async () => {
    await sandbox.files.makeDir('inbox')
    let seen
    const renamed = new Promise((resolve) => { seen = resolve })
    const watch = await sandbox.files.watchDir('inbox', (event) => { if (event.type === 'rename') seen(event.name) })
    await sandbox.files.write('inbox/draft.md', '# draft')
    await sandbox.files.rename('inbox/draft.md', 'inbox/final.md')
    assert.equal(await renamed, 'draft.md')
    await watch.stop()
  })

  it('ten commands at once', async () => {
    const results = await Promise.all(Array.from({ length: 10 }, (_, i) => sandbox.commands.run(`seq ${i} | wc -l; sleep 0.2`)))
    assert.deepEqual(results.map(({ stdout }) => Number(stdout)), Array.from({ length: 10 }, (_, i) => i))
  })

  it('nothing of it was refused', () => {
    const blocks = gateway.decisions().filter((line) => line.decision === 'block' || line.outcome === 'refused')
    assert.deepEqual(blocks, [])
  })
})
