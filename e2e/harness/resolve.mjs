// Loaded with --import: names below E2BGUARD_TEST_DOMAIN resolve to loopback,
// and their https port is E2BGUARD_TEST_PORT, for a test cannot listen on 443.
// Node's own fetch and the SDK's undici both end in dns.lookup and tls.connect.
import dns from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'
import tls from 'node:tls'

const suffix = `.${process.env.E2BGUARD_TEST_DOMAIN}`
const { lookup } = dns
const { connect } = tls

dns.lookup = (name, options, callback) => {
  if (typeof options === 'function') return dns.lookup(name, {}, options)
  if (!name.endsWith(suffix)) return lookup(name, options, callback)
  if (options.all) return process.nextTick(callback, null, [{ address: '127.0.0.1', family: 4 }])
  return process.nextTick(callback, null, '127.0.0.1', 4)
}

tls.connect = (options, ...rest) => {
  const ours = options.host?.endsWith(suffix) && Number(options.port) === 443
  return connect(ours ? { ...options, port: Number(process.env.E2BGUARD_TEST_PORT) } : options, ...rest)
}

syncBuiltinESMExports()
