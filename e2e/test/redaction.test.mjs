// Secrets that clients give a sandbox do not come back in what runs there prints.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Sandbox } from '@e2b/code-interpreter'
import { startEmulator } from '../harness/emulator.mjs'
import { startGateway } from '../harness/gateway.mjs'
import { stopAll } from '../harness/process.mjs'
import { urlForm } from '../harness/sdk.mjs'

const key = 'PLANTED-0123456789-abcdefghij'
const hidden = '<secret:known>'

let emulator
let gateway
let sandbox

before(async () => {
  emulator = await startEmulator()
  gateway = await startGateway({ upstream: emulator.url, options: '' })
  sandbox = await Sandbox.create({ ...urlForm(gateway), envs: { SERVICE_API_KEY: key, GREETING: 'hello' } })
})

after(async () => {
  await sandbox?.kill()
  await stopAll(gateway, emulator)
})

describe('a secret is hidden', () => {
  it('in the output of a command, in every coding, and the rest stays', async () => {
    const { stdout, stderr } = await sandbox.commands.run(
      'echo "$GREETING, $SERVICE_API_KEY!"; echo "$SERVICE_API_KEY" >&2; printf %s "$SERVICE_API_KEY" | base64; printf %s "$SERVICE_API_KEY" | rev',
    )
    assert.ok(stdout.startsWith(`hello, ${hidden}!\n`), stdout)
    assert.equal(stderr, `${hidden}\n`)
    for (const part of ['0123456789', Buffer.from(key).toString('base64').slice(8, 24), '9876543210']) assert.ok(!stdout.includes(part), stdout)
  })

  it('when it is printed piece by piece', async () => {
    const { stdout } = await sandbox.commands.run('for i in $(seq 0 28); do printf %s "${SERVICE_API_KEY:$i:1}"; sleep 0.01; done; echo " ends"')
    assert.match(stdout, /^(P|PL|PLA)?<secret:known> ends\n$/)
  })

  it('in what code prints, returns and raises', async () => {
    const envs = { OTHER_TOKEN: key }
    const printed = await sandbox.runCode('import os\nprint("t=" + os.environ["OTHER_TOKEN"])', { envs })
    assert.equal(printed.logs.stdout.join(''), `t=${hidden}\n`)
    const raised = await sandbox.runCode('import os\nraise ValueError(os.environ["OTHER_TOKEN"])', { envs })
    assert.equal(raised.error.value, hidden)
    assert.ok(!raised.error.traceback.includes(key))
  })

  it('in a text file, at its length, and a binary file stays', async () => {
    await sandbox.commands.run('printf "k=%s." "$SERVICE_API_KEY" > /tmp/e2bguard-text; printf "\\0%s" "$SERVICE_API_KEY" > /tmp/e2bguard-binary')
    assert.equal(await sandbox.files.read('/tmp/e2bguard-text'), `k=${hidden.padEnd(key.length, '*')}.`)
    const binary = await sandbox.files.read('/tmp/e2bguard-binary', { format: 'bytes' })
    assert.equal(Buffer.from(binary).toString(), `\0${key}`)
  })
})
