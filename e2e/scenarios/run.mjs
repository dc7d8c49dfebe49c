// Runs groups of scenarios against one target and prints what came of each as
// JSON: {"<group>: <name>": {value} | {error}}. A process of its own, because
// extra root certificates and the resolver hook are read when Node starts.
//
// Usage: node scenarios/run.mjs '{"sdk":"e2b","groups":["files"],"options":{…}}'
import { groups, sdks } from './index.mjs'

const request = JSON.parse(process.argv[2])
// In URL form the SDKs are told of volumes by this variable only.
if (request.options.sandboxUrl) process.env.E2B_VOLUME_API_URL = request.options.apiUrl
const { Sandbox, Volume } = await import(sdks[request.sdk])

/** Takes what differs from run to run out of a value. */
function normalise(value, sandboxId) {
  return JSON.parse(JSON.stringify(value ?? null).replaceAll(sandboxId, '<sandbox>').replace(/pid \d+/g, 'pid <pid>'))
}

async function outcome(scenario) {
  const { run, create = {} } = typeof scenario === 'function' ? { run: scenario } : scenario
  let sandbox
  try {
    sandbox = await Sandbox.create({ ...request.options, ...create })
    return { value: normalise(await run(sandbox, { Sandbox, Volume, options: request.options }), sandbox.sandboxId) }
  } catch (error) {
    return { error: `${error.name}: ${error.message}`, stack: error.stack, cause: String(error.cause), sandbox: sandbox?.sandboxId }
  } finally {
    await sandbox?.kill()
  }
}

const waiting = request.groups.flatMap((group) => Object.entries(groups[group]).map(([name, scenario]) => [`${group}: ${name}`, scenario]))
const results = Object.fromEntries(waiting.map(([name]) => [name])) // Keeps their order.

/** Takes scenarios until none is left; each has a sandbox of its own. */
async function work() {
  for (let next = waiting.shift(); next; next = waiting.shift()) results[next[0]] = await outcome(next[1])
}

const atOnce = 4
await Promise.all(Array.from({ length: atOnce }, work))
process.stdout.write(JSON.stringify(results), () => process.exit(0))
