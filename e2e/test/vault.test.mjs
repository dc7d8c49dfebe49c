// Vault mode with E2B's own SDKs: what a client holds works at the gateway and
// nowhere else, and what another client made does not exist for it.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Sandbox as Interpreter } from '@e2b/code-interpreter'
import { Sandbox } from 'e2b'
import { startEmulator } from '../harness/emulator.mjs'
import { startGateway } from '../harness/gateway.mjs'
import { apiKey, clientKey, rejection, urlForm } from '../harness/sdk.mjs'

const otherKey = 'e2b_ffeeddccbbaa99887766554433221100ffeeddcc'
const settings = { apiKey, options: `client team-a ${clientKey}\nclient team-b ${otherKey}\nseal_key ${'5e'.repeat(32)}` }

let emulator
let gateway
let sandbox
before(async () => {
  emulator = await startEmulator()
  gateway = await startGateway({ upstream: emulator.url, ...settings })
  sandbox = await Sandbox.create({ ...urlForm(gateway, clientKey), metadata: { purpose: 'vault' } })
})
after(async () => {
  await sandbox?.kill()
  await gateway?.stop()
  await emulator?.stop()
})

/** Requests that reached E2B while body ran. */
async function reached(body) {
  const before = (await emulator.requests()).length
  await body()
  return (await emulator.requests()).slice(before)
}

describe('what a client holds', () => {
  it('is worthless at E2B', async () => {
    const { envdAccessToken } = sandbox
    assert.match(envdAccessToken, /^e2bg_/)
    const past = new Sandbox({ ...urlForm(emulator), sandboxId: sandbox.sandboxId, envdAccessToken, envdVersion: '0.6.13' })
    assert.match((await rejection(past.commands.run('true'))).message, /401|unauthenticated|unauthorized/i)
    assert.equal((await fetch(await past.downloadUrl('a.txt'), { headers: { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '49983' } })).status, 401)
  })

  it('works through a gateway that was just started', async () => {
    const another = await startGateway({ upstream: emulator.url, ...settings })
    try {
      const again = new Sandbox({ ...urlForm(another, clientKey), sandboxId: sandbox.sandboxId, envdAccessToken: sandbox.envdAccessToken, envdVersion: '0.6.13' })
      assert.equal((await again.commands.run('echo hello')).stdout, 'hello\n')
      assert.equal((await again.getInfo()).metadata.purpose, 'vault')
    } finally {
      await another.stop()
    }
  })

  it('carries no trace of E2B\'s tokens, and nor does the log', async () => {
    const real = await Sandbox.connect(sandbox.sandboxId, urlForm(emulator))
    assert.ok(real.envdAccessToken && real.trafficAccessToken)
    const info = JSON.stringify([await sandbox.getInfo(), sandbox])
    for (const secret of [real.envdAccessToken, real.trafficAccessToken, apiKey]) {
      assert.ok(!info.includes(secret))
      assert.ok(!gateway.child.output.includes(secret))
    }
    assert.ok(!gateway.child.output.includes(sandbox.envdAccessToken), 'a sealed token is in the log')
  })
})

describe('another client\'s sandbox', () => {
  const options = () => urlForm(gateway, otherKey)

  it('does not exist', async () => {
    const sent = await reached(async () => {
      assert.equal((await rejection(Sandbox.connect(sandbox.sandboxId, options()))).name, 'SandboxNotFoundError')
      assert.equal((await rejection(Sandbox.getInfo(sandbox.sandboxId, options()))).name, 'SandboxNotFoundError')
      assert.equal(await Sandbox.kill(sandbox.sandboxId, options()), false)
      assert.deepEqual(await Sandbox.list(options()).nextItems(), [])
    })
    assert.deepEqual(sent.map(({ method, path }) => `${method} ${path}`), ['GET /v2/sandboxes'])
    assert.equal(await sandbox.isRunning(), true)
  })

  it('does not take another sandbox\'s token', async () => {
    const own = await Sandbox.create(options())
    try {
      const borrowed = new Sandbox({ ...options(), sandboxId: sandbox.sandboxId, envdAccessToken: own.envdAccessToken, envdVersion: '0.6.13' })
      const sent = await reached(async () => {
        assert.match((await rejection(borrowed.commands.run('true'))).message, /access token/)
        assert.match((await rejection(borrowed.files.read('.profile'))).message, /access token/)
      })
      assert.deepEqual(sent, [])
      assert.deepEqual((await Sandbox.list(options()).nextItems()).map(({ sandboxId, metadata }) => [sandboxId, metadata]), [[own.sandboxId, {}]])
    } finally {
      await own.kill()
    }
  })
})

describe('a signed URL that names no sandbox', () => {
  it('finds its sandbox, up and down', async () => {
    const form = new FormData()
    form.append('file', new Blob(['by URL']), 'x')
    const up = await fetch(await sandbox.uploadUrl('signed.txt', { useSignatureExpiration: 60 }), { method: 'POST', body: form })
    assert.equal(up.status, 200, await up.text())
    const down = await fetch(await sandbox.downloadUrl('signed.txt'))
    assert.equal(await down.text(), 'by URL')
    assert.equal(await sandbox.files.read('signed.txt'), 'by URL')
  })

  it('is refused when it is altered, expired or for no path', async () => {
    const altered = new URL(await sandbox.downloadUrl('signed.txt'))
    altered.searchParams.set('path', '/etc/passwd')
    const sent = await reached(async () => {
      assert.equal((await fetch(altered)).status, 400)
      assert.equal((await fetch(await sandbox.downloadUrl('signed.txt', { useSignatureExpiration: -60 }))).status, 401)
      const form = new FormData()
      form.append('file', new Blob(['x']), '/home/user/.bashrc')
      assert.equal((await fetch(await sandbox.uploadUrl(), { method: 'POST', body: form })).status, 403)
    })
    assert.deepEqual(sent, [])
  })
})

it('the code interpreter works, and not for who only knows the id', async () => {
  const interpreter = await Interpreter.create(urlForm(gateway, clientKey))
  try {
    assert.equal((await interpreter.runCode('1 + 1')).text, '2')
    const context = await interpreter.createCodeContext()
    assert.ok((await interpreter.listCodeContexts()).some(({ id }) => id === context.id))
    const sent = await reached(async () => {
      const response = await fetch(`${gateway.url}/execute`, {
        method: 'POST',
        headers: { 'E2b-Sandbox-Id': interpreter.sandboxId, 'E2b-Sandbox-Port': '49999', 'Content-Type': 'application/json' },
        body: JSON.stringify({ code: 'print(1)' }),
      })
      assert.match(await response.text(), /no access token/)
    })
    assert.deepEqual(sent, [])
  } finally {
    await interpreter.kill()
  }
})
