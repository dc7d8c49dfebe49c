// Starts the built binary as a child process, waits until it serves, and ends
// it again.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const here = path.dirname(fileURLToPath(import.meta.url))

/** The binary under test: E2BGUARD_BIN, else bin/e2bguard of this checkout. */
export const binary = path.resolve(process.env.E2BGUARD_BIN ?? path.join(here, '../../bin/e2bguard'))

if (!existsSync(binary)) {
  throw new Error(`no binary at ${binary}: run "make build", or set E2BGUARD_BIN`)
}

/** Returns a loopback TCP port that was free a moment ago. */
export async function freePort() {
  const server = net.createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}

/** Resolves when something accepts connections on the port; rejects when the child ends first. */
async function listening(child, port, deadline) {
  for (;;) {
    if (child.exitCode !== null || child.signalCode !== null) {
      throw new Error(`${child.spawnargs.join(' ')} ended (${child.exitCode ?? child.signalCode}) before it served:\n${child.output}`)
    }
    const open = await new Promise((resolve) => {
      const socket = net.connect({ port, host: '127.0.0.1' })
      socket.once('connect', () => { socket.destroy(); resolve(true) })
      socket.once('error', () => resolve(false))
    })
    if (open) return
    if (Date.now() > deadline) {
      throw new Error(`${child.spawnargs.join(' ')} does not listen on ${port} after 30 s:\n${child.output}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

const children = new Set()
process.once('exit', () => { for (const child of children) child.kill('SIGKILL') })

/**
 * Runs the binary with args until stop() and resolves once it listens on port.
 * Its output is kept in the child's `output`; stop() fails if it panicked.
 */
export async function serve(args, { port, env = {}, cwd } = {}) {
  const child = spawn(binary, args, {
    cwd,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.add(child)
  child.output = ''
  child.unref() // A test that fails before its stop() must not hang the runner.
  for (const stream of [child.stdout, child.stderr]) {
    stream.unref()
    stream.setEncoding('utf8')
    stream.on('data', (text) => { child.output += text })
  }
  const ended = once(child, 'close').then(() => children.delete(child))
  child.stop = async (signal = 'SIGTERM') => {
    if (children.has(child)) child.kill(signal)
    const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
    await ended
    clearTimeout(timer)
    if (/panic|goroutine \d+ \[/.test(child.output)) throw new Error(`${args[0]} panicked:\n${child.output}`)
  }
  try {
    await listening(child, port, Date.now() + 30_000)
  } catch (error) {
    await child.stop('SIGKILL')
    throw error
  }
  return child
}

/** Stops what was started, all of it whatever fails, and then fails if any did. */
export async function stopAll(...started) {
  const outcomes = await Promise.allSettled(started.filter(Boolean).map((one) => one.stop()))
  for (const { reason } of outcomes) if (reason) throw reason
}
