// Limits stop what runs away, say why, and let ordinary runtimes start. Every
// tool named here must be installed: a missing one fails the test.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Sandbox as Interpreter } from '@e2b/code-interpreter'
import { Sandbox } from 'e2b'
import { startEmulator } from '../harness/emulator.mjs'
import { startGateway } from '../harness/gateway.mjs'
import { gone, rejection, urlForm } from '../harness/sdk.mjs'

let emulator
before(async () => { emulator = await startEmulator() })
after(() => emulator?.stop())

/** Runs body with a sandbox behind a gateway with these options. */
async function behind(options, body, kind = Sandbox) {
  const gateway = await startGateway({ upstream: emulator.url, options })
  try {
    const sandbox = await kind.create(urlForm(gateway))
    try {
      return await body(sandbox, gateway)
    } finally {
      await sandbox.kill()
    }
  } finally {
    await gateway.stop()
  }
}

describe('runtimes start under the default limits', () => {
  // 8 bytes of header are the smallest valid module; the memory makes the
  // engine reserve its usual gigabytes of address space.
  const module = 'new WebAssembly.Module(new Uint8Array([0,97,115,109,1,0,0,0])); new WebAssembly.Memory({ initial: 16, maximum: 65536 })'
  const runtimes = [
    ['node', 'node -p "6*7"', /42/],
    ['npm', 'npm --version', /^\d+\./],
    ['java', 'java -version 2>&1', /version "/],
    ['java, compiling', 'printf \'public class T { public static void main(String[] a) { System.out.println(6*7); } }\' > T.java && java T.java', /42/],
    ['go', 'go version', /go1\./],
    ['a WebAssembly module', `node -e '${module}; console.log("wasm", 6*7)'`, /wasm 42/],
    ['python with 64 threads', `python3 -c '
import threading
gate = threading.Barrier(65)
threads = [threading.Thread(target=gate.wait) for _ in range(64)]
[t.start() for t in threads]
gate.wait()
[t.join() for t in threads]
print("threads", len(threads))'`, /threads 64/],
  ]
  it('one after the other', (t) => behind('', async (sandbox) => {
    for (const [name, command, expected] of runtimes) {
      await t.test(name, async () => assert.match((await sandbox.commands.run(command)).stdout, expected))
    }
  }))
})

describe('what runs away is stopped, with a visible reason', () => {
  const hog = 'python3 -c \'x = bytearray(1)\nwhile True: x += bytearray(16 << 20)\''

  it('memory', () => behind('limits {\nmemory 256MiB\n}', async (sandbox) => {
    const error = await rejection(sandbox.commands.run(hog))
    assert.notEqual(error.exitCode, 0)
    assert.match(error.stderr, /MemoryError/)
  }))

  it('memory, under the default limit', () => behind('', async (sandbox) => {
    assert.match((await rejection(sandbox.commands.run(hog))).stderr, /MemoryError/)
  }))

  it('processor time', () => behind('limits {\ncpu_seconds 1\n}', async (sandbox) => {
    const error = await rejection(sandbox.commands.run('exec python3 -c "while True: pass"'))
    assert.match(`${error.message} ${error.error}`, /CPU time limit exceeded|cpu/i)
  }))

  it('processor time of a child of the shell', () => behind('limits {\ncpu_seconds 1\n}', async (sandbox) => {
    const error = await rejection(sandbox.commands.run('python3 -c "while True: pass"; code=$?; echo "spinner ended with $code"; exit $code'))
    assert.match(error.stdout, /spinner ended with 152/)
  }))

  it('a spinning background server is not counted by processor time', () => behind('limits {\ncpu_seconds 1\n}', async (sandbox) => {
    const handle = await sandbox.commands.run('python3 -c "import time\nend = time.process_time() + 1.6\nwhile time.process_time() < end: pass\nprint(\'finished\')"', { background: true, timeoutMs: 0 })
    assert.match((await handle.wait()).stdout, /finished/)
  }))

  it('output', () => behind('limits {\noutput 1MiB\n}', async (sandbox) => {
    const error = await rejection(sandbox.commands.run('yes'))
    assert.match(error.message, /output/i)
    assert.match(error.message, /1 ?MiB|1048576/)
  }))

  it('output below the limit passes', () => behind('limits {\noutput 1MiB\n}', async (sandbox) => {
    assert.equal((await sandbox.commands.run('yes | head -c 1000000')).stdout.length, 1_000_000)
  }))

  it('wall clock: the process is gone, not only the stream', () => behind('limits {\nwall_clock 1s\n}', async (sandbox) => {
    const error = await rejection(sandbox.commands.run('exec sleep 61', { timeoutMs: 50_000 }))
    assert.match(error.message, /as long as policy/)
    await gone(sandbox, 'sleep 61')
  }))

  it('wall clock of a command without a timeout', () => behind('limits {\nbackground_wall_clock 1s\n}', async (sandbox) => {
    const started = performance.now()
    const handle = await sandbox.commands.run('exec sleep 62', { background: true, timeoutMs: 0 })
    assert.match((await rejection(handle.wait())).message, /as long as policy/)
    assert.ok(performance.now() - started < 5_000)
    await gone(sandbox, 'sleep 62')
  }))
})

describe('code for the interpreter that runs away is stopped, and what was there stays', () => {
  const kept = async (sandbox) => {
    const { text, error } = await sandbox.runCode('kept + 1')
    assert.equal(error, undefined)
    assert.equal(text, '42')
  }

  it('memory', () => behind('limits {\nmemory 256MiB\n}', async (sandbox) => {
    await sandbox.runCode('kept = 41')
    const { error } = await sandbox.runCode('x = bytearray(1)\nwhile True: x += bytearray(16 << 20)')
    assert.equal(error.name, 'MemoryError')
    await kept(sandbox)
  }, Interpreter))

  it('memory of a context that was made later', () => behind('limits {\nmemory 256MiB\n}', async (sandbox) => {
    const context = await sandbox.createCodeContext({ language: 'python' })
    await sandbox.runCode('1', { context })
    const { error } = await sandbox.runCode('x = bytearray(1)\nwhile True: x += bytearray(16 << 20)', { context })
    assert.equal(error.name, 'MemoryError')
  }, Interpreter))

  it('processor time', () => behind('limits {\ncpu_seconds 1\n}', async (sandbox) => {
    await sandbox.runCode('kept = 41')
    const { error } = await sandbox.runCode('while True: pass')
    assert.equal(error.name, 'TimeLimitExceeded')
    assert.match(error.value, /used 1s of CPU time/)
    await kept(sandbox)
  }, Interpreter))

  it('processor time of what the code starts', () => behind('limits {\ncpu_seconds 1\n}', async (sandbox) => {
    const { error } = await sandbox.runCode('import subprocess\nsubprocess.run(["python3", "-c", "while True: pass"])')
    assert.equal(error.name, 'TimeLimitExceeded')
  }, Interpreter))

  it('waiting is no processor time, and each piece of code has its own', () => behind('limits {\ncpu_seconds 2\n}', async (sandbox) => {
    for (let i = 0; i < 3; i++) {
      const { error, text } = await sandbox.runCode(`import time
end = time.process_time() + 1
while time.process_time() < end: pass
time.sleep(0.5)
"done"`)
      assert.equal(error, undefined)
      assert.match(text, /done/)
    }
  }, Interpreter))
})

describe('lifetime', () => {
  const minutes = ({ startedAt, endAt }) => (endAt - startedAt) / 60_000

  it('is clamped, and the client can see it', () => behind('limits {\nsandbox_lifetime 2m 10m\n}', async (_sandbox, gateway) => {
    const long = await Sandbox.create({ ...urlForm(gateway), timeoutMs: 3_600_000 })
    try {
      assert.ok(Math.abs(minutes(await long.getInfo()) - 10) < 0.1)
      await long.setTimeout(7_200_000)
      assert.ok(Math.abs(minutes(await long.getInfo()) - 10) < 0.5)
    } finally {
      await long.kill()
    }
  }))

  it('a client that names none gets the default', () => behind('limits {\nsandbox_lifetime 2m 10m\n}', async (sandbox) => {
    assert.ok(Math.abs(minutes(await sandbox.getInfo()) - 2) < 0.1)
  }))
})
