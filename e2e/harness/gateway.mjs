// The gateway under test: `e2bguard run` with a Caddyfile written for one test.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { freePort, serve } from './process.mjs'

/** Domain whose names the resolver hook points at loopback. */
export const testDomain = 'gw.e2bguard.test'

/**
 * Starts a gateway in front of `upstream`.
 *
 * options: lines of the e2b_guard block besides `upstream`;
 * apiKey: the upstream's key (vault mode, together with a `client` option);
 * tls: serve https on wildcard names of testDomain with Caddy's internal CA.
 *
 * `decisions()` returns the structured lines it logged.
 */
export async function startGateway({ upstream, options = '', apiKey, tls = false }) {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'e2bguard-gateway-'))
  const port = await freePort()
  const site = tls ? `https://*.${testDomain}:${port}` : `http://:${port}`
  const config = path.join(dir, 'Caddyfile')
  await writeFile(config, `{
	admin off
	auto_https ${tls ? 'disable_redirects' : 'off'}
	skip_install_trust
	log {
		output stderr
		format json
		level DEBUG
	}
}

${site} {
	bind 127.0.0.1
	${tls ? 'tls internal' : ''}
	e2b_guard {
		upstream {
			api_url ${upstream}
			sandbox_url ${upstream}
			${apiKey ? `api_key ${apiKey}` : ''}
		}
		${options.replaceAll("DOMAIN", testDomain)}
	}
}
`)
  const child = await serve(['run', '--config', config, '--adapter', 'caddyfile'], {
    port,
    cwd: dir,
    env: { TMPDIR: dir, XDG_DATA_HOME: dir, XDG_CONFIG_HOME: dir },
  })
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    child,
    domain: testDomain,
    rootCertificate: path.join(dir, 'caddy/pki/authorities/local/root.crt'),
    decisions() {
      return child.output.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line))
        .filter((line) => line.logger === 'http.handlers.e2b_guard')
    },
    async stop() {
      await child.stop()
      await rm(dir, { recursive: true, force: true })
    },
  }
}
