// Exfiltration, rm -rf and miners, in their usual spellings, on every surface
// that runs them: refused, with nothing sent. And what only looks like them:
// passed. The upstream is a stand-in that runs nothing.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Sandbox } from '@e2b/code-interpreter'
import { startGateway } from '../harness/gateway.mjs'
import { stopAll } from '../harness/process.mjs'
import { assertRefusal, rejection, urlForm } from '../harness/sdk.mjs'
import { startUpstream } from '../harness/upstream.mjs'
import { benign, malicious } from '../scenarios/malicious.mjs'

const extension = { bash: 'sh', python: 'py', javascript: 'js' }

let upstream
let gateway
let sandbox

before(async () => {
  upstream = await startUpstream()
  gateway = await startGateway({ upstream: upstream.url })
  sandbox = await Sandbox.create(urlForm(gateway))
})
after(async () => {
  await sandbox?.kill()
  await stopAll(gateway, upstream)
})

/** Ways to have `code` of a language run; each resolves with the refusal's text. */
const surfaces = {
  bash: {
    'commands.run': async (code) => (await rejection(sandbox.commands.run(code))).message,
    'runCode': async (code) => (await sandbox.runCode(code, { language: 'bash' })).error?.value,
    'files.write': async (code) => (await rejection(sandbox.files.write(`job.${extension.bash}`, `#!/bin/bash\n${code}\n`))).message,
  },
  python: {
    'runCode': async (code) => (await sandbox.runCode(code)).error?.value,
    'files.write': async (code) => (await rejection(sandbox.files.write(`job.${extension.python}`, code))).message,
  },
  javascript: {
    'runCode': async (code) => (await sandbox.runCode(code, { language: 'javascript' })).error?.value,
    'files.write': async (code) => (await rejection(sandbox.files.write(`job.${extension.javascript}`, code))).message,
  },
}

/** IPython's magics are code in a cell only. */
const cellOnly = (code) => /^[!%]/.test(code)

for (const [language, kinds] of Object.entries(malicious)) {
  for (const [kind, samples] of Object.entries(kinds)) {
    describe(`${language}, ${kind}`, () => {
      for (const code of samples) {
        for (const [surface, run] of Object.entries(surfaces[language])) {
          if (surface === 'files.write' && cellOnly(code)) continue
          it(`${surface}: ${JSON.stringify(code)}`, async () => {
            const before = upstream.requests.length
            const text = await run(code)
            assert.ok(text, 'it ran')
            assertRefusal(text)
            assert.deepEqual(upstream.requests.slice(before).map(({ path }) => path), [])
          })
        }
      }
    })
  }
}

describe('harmless, whatever it looks like', () => {
  for (const code of benign.bash) {
    it(`commands.run: ${JSON.stringify(code)}`, () => sandbox.commands.run(code))
    it(`files.write: ${JSON.stringify(code)}`, () => sandbox.files.write('job.sh', `${code}\n`))
  }
  for (const language of ['python', 'javascript']) {
    for (const code of benign[language]) {
      it(`runCode, ${language}: ${JSON.stringify(code)}`, async () => {
        assert.equal((await sandbox.runCode(code, { language })).error, undefined)
      })
    }
  }
})
