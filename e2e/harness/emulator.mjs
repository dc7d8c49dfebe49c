// An offline E2B: `e2bguard emulate`, with its record of what reached it.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { freePort, serve } from './process.mjs'

/**
 * Starts an emulator. `url` serves control plane and data plane; `requests()`
 * reads what it received of clients so far, oldest first, and `reads()` what the
 * gateway read of files on its own account.
 */
export async function startEmulator() {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'e2bguard-emulator-'))
  const record = path.join(dir, 'record.jsonl')
  const port = await freePort()
  const child = await serve(['emulate', '--listen', `127.0.0.1:${port}`, '--record', record], { port, env: { TMPDIR: dir } })
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    child,
    requests: async () => (await records(record)).filter((request) => !isOwn(request)),
    reads: async () => (await records(record)).filter(isOwn),
    async stop(signal) {
      await child.stop(signal)
      await rm(dir, { recursive: true, force: true })
    },
  }
}

async function records(file) {
  const text = await readFile(file, 'utf8').catch((error) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  return text.split('\n').filter(Boolean).map((line) => JSON.parse(line))
}

const isOwn = (request) => request.header?.['User-Agent']?.[0] === 'e2bguard' && ['/files', '/filesystem.Filesystem/Stat'].includes(request.path)
