// A stand-in for E2B that runs nothing: it remembers what reached it and
// answers just enough for the SDKs. Malicious input is only ever tried against
// this one, and so are an upstream's misdeeds.
import { once } from 'node:events'
import http from 'node:http'

/** One Connect frame: flag 0 for a message, 2 for the end of the stream. */
export function frame(message, flag = 0) {
  const payload = Buffer.from(JSON.stringify(message))
  const head = Buffer.alloc(5)
  head[0] = flag
  head.writeUInt32BE(payload.length, 1)
  return Buffer.concat([head, payload])
}

export const startEvent = (pid = 7) => frame({ event: { start: { pid } } })
export const stdoutEvent = (text) => frame({ event: { data: { stdout: Buffer.from(text).toString('base64') } } })
export const endEvent = (exitCode = 0) =>
  Buffer.concat([frame({ event: { end: { exitCode, exited: true, status: `exit status ${exitCode}` } } }), frame({}, 2)])

function json(response, status, body) {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

/** What E2B answers for a sandbox, as far as the SDKs look. */
const sandboxBody = (id) => ({
  sandboxID: id,
  templateID: 'base',
  clientID: '00000000',
  alias: 'base',
  envdVersion: '0.6.13',
  envdAccessToken: `ea_${id}`,
  domain: null,
  state: 'running',
  cpuCount: 2,
  memoryMB: 512,
  diskSizeMB: 512,
  startedAt: '2026-01-01T00:00:00Z',
  endAt: '2026-01-01T01:00:00Z',
  metadata: {},
})

/** What a sandbox that was asked for says of itself. */
function reported({ timeout = 300, network, allow_internet_access: allowInternetAccess = null } = {}) {
  const now = Date.now()
  return { network, allowInternetAccess, startedAt: new Date(now), endAt: new Date(now + timeout * 1_000) }
}

/**
 * Starts it. `handlers` maps a path to (request, response, body), and
 * `requests` holds {method, path, headers, body} of everything received.
 */
export async function startUpstream(handlers = {}) {
  const requests = []
  const asked = new Map() // id → the body it was created with
  const routes = {
    '/process.Process/Start': (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/connect+json' })
      response.end(Buffer.concat([startEvent(), endEvent()]))
    },
    '/execute': (_request, response) => {
      response.writeHead(200)
      response.end('{"type": "number_of_executions", "execution_count": 1}\n{"type": "end_of_execution"}\n')
    },
    '/files': (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' })
      response.end('[{"name":"x","path":"/home/user/x","type":"file"}]')
    },
    ...handlers,
  }
  const server = http.createServer(async (request, response) => {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    const { pathname } = new URL(request.url, 'http://upstream')
    // What the gateway reads of files on its own account is no client's call.
    if (request.headers['user-agent'] !== 'e2bguard' || request.method !== 'GET' && !pathname.endsWith('/Stat')) requests.push({ method: request.method, path: pathname, headers: request.headers, body: body.toString() })
    if (routes[pathname]) return routes[pathname](request, response, body)
    if (/^(\/v2)?\/sandboxes$/.test(pathname) && request.method === 'POST') {
      const id = `i${String(asked.size + 1).padStart(19, '0')}`
      asked.set(id, JSON.parse(body))
      return json(response, 201, sandboxBody(id))
    }
    const one = /^\/sandboxes\/(i\d+)$/.exec(pathname)
    if (one && request.method === 'DELETE') {
      response.writeHead(204)
      return response.end()
    }
    if (one) return json(response, 200, { ...sandboxBody(one[1]), ...reported(asked.get(one[1])) })
    if (pathname === '/health') {
      response.writeHead(204)
      return response.end()
    }
    return json(response, 404, { code: 404, message: `the stand-in knows no ${request.method} ${pathname}` })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
