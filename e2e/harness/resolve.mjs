// Loaded with --import: names below E2BGUARD_TEST_DOMAIN resolve to loopback.
// Both Node's own fetch and the SDK's undici end in dns.lookup.
import dns from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'

const suffix = `.${process.env.E2BGUARD_TEST_DOMAIN}`
const lookup = dns.lookup

dns.lookup = (name, options, callback) => {
  if (typeof options === 'function') return dns.lookup(name, {}, options)
  if (!name.endsWith(suffix)) return lookup(name, options, callback)
  if (options.all) return process.nextTick(callback, null, [{ address: '127.0.0.1', family: 4 }])
  return process.nextTick(callback, null, '127.0.0.1', 4)
}
syncBuiltinESMExports()
