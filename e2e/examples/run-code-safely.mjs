// A code runner of an application's own, with E2B's SDK: it asks the guard about
// the code and about what the tools are given, runs the code in a sandbox of its
// own, and always ends that. Through a gateway the calls below are judged and held to
// limits besides, whether the application asks or not.
import { Sandbox } from '@e2b/code-interpreter'

const timeoutMs = 20_000

/**
 * Runs code in a disposable sandbox, if the guard passes it.
 *
 * input: { language: 'python' | 'node', code };
 * guard: asks about a text, as Superagent's clients do;
 * connection: options of the SDK.
 *
 * Returns { status: 'pass' | 'block' | 'error', reasoning, stdout, stderr }.
 */
export async function runCodeSafely({ language, code }, { guard, connection }) {
  let sandbox
  try {
    const { rejected, reasoning } = await guard(code)
    if (rejected) return { status: 'block', reasoning }
    sandbox = await Sandbox.create({ ...connection, timeoutMs, allowInternetAccess: false })
    const { logs, error } = await sandbox.runCode(code, { language: language === 'node' ? 'javascript' : language, timeoutMs })
    const output = { stdout: logs.stdout.join(''), stderr: logs.stderr.join('') }
    if (error) return { status: 'error', reasoning: `${error.name}: ${error.value}`, ...output }
    return { status: 'pass', reasoning, ...output }
  } catch (error) {
    return { status: 'error', reasoning: error.message }
  } finally {
    await sandbox?.kill()
  }
}

/** A fetch that a runner offers as a tool, if the guard passes the address. */
export async function guardedFetch(url, { guard }) {
  try {
    const { rejected, reasoning } = await guard(`FETCH ${url}`)
    if (rejected) return { status: 'block', reasoning }
    const response = await fetch(url, { redirect: 'manual' })
    return { status: 'pass', code: response.status, body: await response.text() }
  } catch (error) {
    return { status: 'error', reasoning: error.message }
  }
}
