// A benign call must behave as it does without the gateway: the same scenarios,
// once straight at the emulator and once through the gateway, compared deeply.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startEmulator } from '../harness/emulator.mjs'
import { startGateway } from '../harness/gateway.mjs'
import { runScenarios } from '../harness/scenario.mjs'
import { apiKey, assertRefusal, clientKey, urlForm } from '../harness/sdk.mjs'

const all = ['commands', 'files', 'git', 'lifecycle', 'volumes']

let emulator
before(async () => { emulator = await startEmulator() })
after(() => emulator?.stop())

/** Starts a gateway with the settings for the time of body. */
async function withGateway(settings, body) {
  const gateway = await startGateway({ upstream: emulator.url, ...settings })
  try {
    return await body(gateway)
  } finally {
    await gateway.stop()
  }
}

/** Subtests that compare, scenario by scenario, what two targets gave. */
async function compare(t, direct, guarded) {
  assert.deepEqual(Object.keys(guarded), Object.keys(direct))
  for (const name of Object.keys(direct)) {
    await t.test(name, () => {
      assert.equal(direct[name].error, undefined, `fails without the gateway: ${direct[name].stack}`)
      assert.equal(guarded[name].error, undefined, `fails through the gateway: ${guarded[name].stack}`)
      assert.deepEqual(guarded[name].value, direct[name].value)
    })
  }
}

const measured = new Map()

/** What the emulator gives an SDK without a gateway between them; asked once. */
function direct(sdk, groups) {
  if (!measured.has(sdk)) measured.set(sdk, runScenarios({ sdk, groups, options: urlForm(emulator) }))
  return measured.get(sdk)
}

const vault = { apiKey, options: `client team-a ${clientKey}` }

const cases = [
  { form: 'URL form, clients bring their own key', settings: { options: 'volumes guard' }, key: apiKey },
  { form: 'URL form, the gateway holds the key', settings: vault, key: clientKey },
  { form: 'domain form over TLS, clients bring their own key', settings: { tls: true, options: 'public_domain DOMAIN' }, key: apiKey },
  { form: 'domain form over TLS, the gateway holds the key', settings: { tls: true, ...vault, options: `${vault.options}\npublic_domain DOMAIN` }, key: clientKey },
]

for (const { form, settings, key } of cases) {
  describe(form, () => {
    const generations = [['e2b', all], ['e2b-old', all], ['code-interpreter', ['code']]]
    for (const [sdk, groups] of generations) {
      it(sdk, (t) => withGateway(settings, async (gateway) => {
        const guarded = settings.tls
          ? await runScenarios({ sdk, groups, options: { apiKey: key, domain: gateway.domain } }, gateway)
          : await runScenarios({ sdk, groups, options: urlForm(gateway, key) })
        await compare(t, await direct(sdk, groups), guarded)
      }))
    }

    if (!settings.tls) return
    it('signed URLs', (t) => withGateway(settings, (gateway) => signedURLs(t, { apiKey: key, domain: gateway.domain }, gateway)))

    it('and the same refusals', (t) => withGateway(settings, async (gateway) => {
      const results = await runScenarios({ sdk: 'e2b', groups: ['refused'], options: { apiKey: key, domain: gateway.domain } }, gateway)
      for (const [name, { value, stack }] of Object.entries(results)) {
        await t.test(name, () => {
          assert.ok(value, stack)
          assert.match(value, /^(403:? |7: \[permission_denied\] )/)
          assertRefusal(value)
        })
      }
    }))
  })
}

// The smallest change a client can make: E2B_API_URL. The gateway's answers
// carry its own domain, and the SDK follows it for all the rest.
it('E2B_API_URL alone leads every call to the gateway', (t) =>
  withGateway({ tls: true, options: 'public_domain DOMAIN' }, async (gateway) => {
    const options = { apiKey, apiUrl: `https://api.${gateway.domain}` }
    await compare(t, await direct('e2b', all), await runScenarios({ sdk: 'e2b', groups: all, options }, gateway))
    await signedURLs(t, options, gateway)
  }))

/** Signed URLs carry no header, so without a gateway's domain they lead nowhere: what they give is known. */
async function signedURLs(t, options, gateway) {
  const results = await runScenarios({ sdk: 'e2b', groups: ['signed'], options }, gateway)
  const expected = {
    'signed: upload and download by URL': { up: { status: 200, body: 'ok' }, down: { status: 200, body: 'by URL' }, read: 'by URL' },
    'signed: with an expiry in the future': { up: { status: 200, body: 'ok' }, down: { status: 200, body: 'later' } },
    'signed: an expired or altered signature is refused': [401, 401],
  }
  await compare(t, Object.fromEntries(Object.entries(expected).map(([name, value]) => [name, { value }])), results)
}
