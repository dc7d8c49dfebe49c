// Runs scenarios/run.mjs in a process of its own.
import { execFile } from 'node:child_process'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { testDomain } from './gateway.mjs'

const here = path.dirname(fileURLToPath(import.meta.url))
const hook = pathToFileURL(path.join(here, 'resolve.mjs')).href

/**
 * Runs a script with the SDKs and returns the JSON it prints. Given a gateway
 * that serves TLS, names of the test domain lead to it and verify.
 */
export async function runScript(script, request, { rootCertificate, port } = {}) {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [...(rootCertificate ? ['--import', hook] : []), path.join(here, '..', script), JSON.stringify(request)],
    {
      maxBuffer: 64 << 20,
      env: {
        PATH: process.env.PATH,
        E2B_VALIDATE_API_KEY: 'false',
        ...(rootCertificate ? { NODE_EXTRA_CA_CERTS: rootCertificate, E2BGUARD_TEST_DOMAIN: testDomain, E2BGUARD_TEST_PORT: String(port) } : {}),
      },
    },
  )
  return JSON.parse(stdout)
}

/** Runs groups of scenarios: {sdk, groups, options}. */
export function runScenarios(request, tls) {
  return runScript('scenarios/run.mjs', request, tls)
}
