// Options for the unmodified SDKs, and helpers for what they throw.
import assert from 'node:assert/strict'

/** Keys of the form older SDKs insist on: E2B's own (the emulator takes any), and one the gateway gives out. */
export const apiKey = 'e2b_0123456789abcdef0123456789abcdef01234567'
export const clientKey = 'e2b_00112233445566778899aabbccddeeff00112233'

/** Connection options of the URL form: control plane and data plane at one address. */
export function urlForm(target, key = apiKey) {
  return { apiKey: key, apiUrl: target.url, sandboxUrl: target.url }
}

/** Resolves with the error a promise rejects with; fails when it does not reject. */
export async function rejection(promise) {
  let value
  try {
    value = await promise
  } catch (error) {
    return error
  }
  return assert.fail(`expected a refusal, got ${JSON.stringify(value)?.slice(0, 300)}`)
}

/** A refusal tells the agent the reason, what it means, and an id to quote. */
export function assertRefusal(text, ...reasons) {
  for (const reason of reasons) assert.match(text, reason)
  assert.match(text, /do not retry|instead|ask |allow|use |set /i, `nothing tells the agent what to do: ${text}`)
  assert.match(text, /request[ _-]?(id)?[ =:]*[\w-]{6,}/i, `no request id in: ${text}`)
}

/** Polls until check resolves to a true value, and returns it; fails after a few seconds. */
export async function eventually(check, what, patience = 3_000) {
  for (const deadline = Date.now() + patience; ;) {
    const value = await check()
    if (value) return value
    assert.ok(Date.now() < deadline, `still not: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Waits until no process of the sandbox has the text among its arguments. */
export const gone = (sandbox, text) =>
  eventually(async () => !(await sandbox.commands.list()).some(({ args }) => args.join(' ').includes(text)), `"${text}" gone`)
