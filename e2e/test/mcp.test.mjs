// The Model Context Protocol's own client against the MCP gateway of a sandbox,
// over both transports, as without the gateway; what is blocked says why.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { Sandbox } from 'e2b'
import { startEmulator } from '../harness/emulator.mjs'
import { startGateway } from '../harness/gateway.mjs'
import { stopAll } from '../harness/process.mjs'
import { apiKey, assertRefusal, clientKey, rejection, urlForm } from '../harness/sdk.mjs'

const mcp = { 'github/modelcontextprotocol/servers': { installCmd: 'npm ci', runCmd: 'npx -y .' } }

let emulator
let gateway
let sandbox
before(async () => {
  emulator = await startEmulator()
  gateway = await startGateway({ upstream: emulator.url, apiKey, options: `client team-a ${clientKey}\nseal_key ${'5e'.repeat(32)}` })
  sandbox = await Sandbox.create({ ...urlForm(gateway, clientKey), mcp })
})
after(async () => {
  await sandbox?.kill()
  await stopAll(...[gateway, emulator].filter(Boolean))
})

const transports = {
  'streamable HTTP': (url, options) => new StreamableHTTPClientTransport(new URL('/mcp', url), options),
  'a stream of its own': (url, options) => new SSEClientTransport(new URL('/sse', url), options),
}

/** Connects a client to the sandbox's MCP gateway, the way its SDK says, at the gateway's address. */
async function connect(transport) {
  const headers = {
    Authorization: `Bearer ${await sandbox.getMcpToken()}`,
    'E2b-Sandbox-Id': sandbox.sandboxId,
    'E2b-Sandbox-Port': '50005',
  }
  const client = new Client({ name: 'e2e', version: '1' })
  await client.connect(transport(gateway.url, { requestInit: { headers } }))
  return client
}

for (const [name, transport] of Object.entries(transports)) {
  describe(`MCP over ${name}`, () => {
    let client
    before(async () => { client = await connect(transport) })
    after(() => client?.close())

    it('lists and calls tools', async () => {
      assert.deepEqual((await client.listTools()).tools.map((tool) => tool.name), ['echo', 'count'])
      const { content } = await client.callTool({ name: 'echo', arguments: { text: 'hello', n: [1, 2.5] } })
      assert.deepEqual(JSON.parse(content[0].text), { text: 'hello', n: [1, 2.5] })
    })

    it('calls a tool that reports on its way', async () => {
      const { content } = await client.callTool({ name: 'count', arguments: { text: 'hello' } })
      assert.deepEqual(JSON.parse(content[0].text), { text: 'hello' })
    })

    for (const [what, call] of Object.entries({
      'a destructive command': { name: 'shell', arguments: { command: 'rm -rf /etc' } },
      'a program with its arguments': { name: 'run', arguments: { command: 'rm', args: ['-rf', '/etc'] } },
      'an address that gives credentials': { name: 'fetch', arguments: { url: 'http://169.254.169.254/latest/meta-data/iam/security-credentials/' } },
      'the same without a scheme': { name: 'fetch', arguments: { url: '169.254.169.254/latest/meta-data/iam/security-credentials/' } },
    })) {
      it(`refuses ${what} before the server hears of it`, async () => {
        const before = (await emulator.requests()).filter((request) => request.plane === 'mcp').length
        assertRefusal((await rejection(client.callTool(call))).message, /blocked/i)
        assert.equal((await emulator.requests()).filter((request) => request.plane === 'mcp').length, before)
        await client.ping()
      })
    }
  })
}

it('refuses a server whose commands do harm, when its sandbox is created', async () => {
  const create = Sandbox.create({ ...urlForm(gateway, clientKey), mcp: { 'github/o/r': { runCmd: 'rm -rf /etc', installCmd: 'npm ci' } } })
  assertRefusal((await rejection(create)).message, /blocked/i)
})

it('is not there for who only knows the id', async () => {
  const client = new Client({ name: 'e2e', version: '1' })
  const headers = { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '50005' }
  const transport = new StreamableHTTPClientTransport(new URL('/mcp', gateway.url), { requestInit: { headers } })
  assert.match((await rejection(client.connect(transport))).message, /401|unauthorized|invalid MCP gateway token/i)
})
