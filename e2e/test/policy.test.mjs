// What E2B receives is what policy allows, in the call itself, and the client
// is told what was changed.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { AuthenticationError, Sandbox } from 'e2b'
import { Sandbox as OldSandbox } from 'e2b-old'
import { startEmulator } from '../harness/emulator.mjs'
import { startGateway } from '../harness/gateway.mjs'
import { stopAll } from '../harness/process.mjs'
import { apiKey, assertRefusal, clientKey, rejection, urlForm } from '../harness/sdk.mjs'

/** How a credential appears in the emulator's record. */
const fingerprint = (credential) => `sha256:${createHash('sha256').update(credential).digest('hex').slice(0, 12)}`

let emulator
let gateway
let vault

before(async () => {
  emulator = await startEmulator()
  gateway = await startGateway({ upstream: emulator.url })
  vault = await startGateway({ upstream: emulator.url, apiKey, options: `client team-a ${clientKey}` })
})
after(() => stopAll(gateway, vault, emulator))

/** Creates a sandbox, ends it, and returns the create call as E2B received it. */
async function received(SDK, options) {
  const before = (await emulator.requests()).length
  const sandbox = await SDK.create(options)
  await sandbox.kill()
  return (await emulator.requests()).slice(before).find(({ method, path }) => method === 'POST' && path.endsWith('/sandboxes'))
}

describe('a sandbox of the default configuration', () => {
  for (const [generation, SDK] of [['e2b', Sandbox], ['the generation with un-versioned paths', OldSandbox]]) {
    // e2b-dev/infra PR 3313: the network must be closed by the create call
    // itself, not by an update after it.
    it(`has no way out and no open door, ${generation}`, async () => {
      const { body } = await received(SDK, urlForm(gateway))
      assert.equal(body.allow_internet_access, false)
      assert.deepEqual(body.network.denyOut, ['0.0.0.0/0'])
      assert.deepEqual(body.network.allowOut ?? [], [])
      assert.equal(body.network.allowPublicTraffic, false)
      assert.ok(body.timeout > 0 && body.timeout <= 3600, `lives ${body.timeout} s`)
    })
  }

  it('is secure where the version has the choice', async () => {
    assert.equal((await received(OldSandbox, { ...urlForm(gateway), secure: false })).body.secure, true)
  })

  it('cannot ask for the internet', async () => {
    const { body } = await received(Sandbox, { ...urlForm(gateway), allowInternetAccess: true })
    assert.equal(body.allow_internet_access, false)
  })

  it('tells the client what was changed', async () => {
    const response = await fetch(`${gateway.url}/v2/sandboxes`, {
      method: 'POST',
      headers: { 'X-API-Key': apiKey, 'Content-Type': 'application/json' },
      body: JSON.stringify({ templateID: 'base', timeout: 86_400 }),
    })
    assert.equal(response.status, 201)
    const told = response.headers.get('e2b-guard')
    assert.match(told, /^(pass|allow);/)
    assert.match(told, /id=\w+/)
    assert.match(told, /changed=[\w,.]*timeout/)
    assert.match(told, /network/)
    const { sandboxID } = await response.json()
    await Sandbox.kill(sandboxID, urlForm(gateway))
  })

  it('refuses an install that could only hang, with a hint', async () => {
    const sandbox = await Sandbox.create(urlForm(gateway))
    try {
      for (const command of ['pip install requests', 'npm install express', 'git clone https://github.com/octocat/Hello-World']) {
        assertRefusal((await rejection(sandbox.commands.run(command))).message, /network/i, /packages|network allow/i)
      }
    } finally {
      await sandbox.kill()
    }
  })
})

// e2b-dev spec, SandboxNetworkConfig: allowed entries win over denied ones, so a
// client's own must never be added to the policy's.
it('an allowed network is the intersection of what both sides want', async () => {
  const open = await startGateway({ upstream: emulator.url, options: 'network allow api.example.com pypi.example.org' })
  try {
    const { body } = await received(Sandbox, { ...urlForm(open), network: { allowOut: ['api.example.com'], denyOut: ['0.0.0.0/0'] } })
    assert.deepEqual(body.network.allowOut, ['api.example.com'])
    assert.deepEqual(body.network.denyOut, ['0.0.0.0/0'])
  } finally {
    await open.stop()
  }
})

describe('a gateway that holds the key', () => {
  it('is the only one that knows it', async () => {
    const { header } = await received(Sandbox, urlForm(vault, clientKey))
    assert.deepEqual(header['X-Api-Key'], [fingerprint(apiKey)])
    assert.ok(!vault.child.output.includes(apiKey), 'the upstream key is in the log')
    assert.ok(!vault.child.output.includes(clientKey), 'the client key is in the log')
  })

  it('turns other keys away, and nothing is forwarded', async () => {
    const before = (await emulator.requests()).length
    for (const key of [apiKey, `${clientKey}0`, clientKey.toUpperCase()]) {
      const error = await rejection(Sandbox.create(urlForm(vault, key)))
      assert.ok(error instanceof AuthenticationError, `${error.name}: ${error.message}`)
    }
    assert.equal((await emulator.requests()).length, before)
  })

  it('does not let a sandbox be used that it did not make', async () => {
    const foreign = await Sandbox.create(urlForm(emulator))
    try {
      const before = (await emulator.requests()).length
      const error = await rejection(new Sandbox({ ...urlForm(vault, clientKey), sandboxId: foreign.sandboxId, envdVersion: '0.6.13' }).commands.run('true'))
      assert.match(error.message, /e2bguard/)
      const reached = (await emulator.requests()).slice(before).filter(({ plane }) => plane !== 'control')
      assert.deepEqual(reached, [])
    } finally {
      await foreign.kill()
    }
  })
})
