// Code interpreter contexts, state, results and streams.

/** What a caller sees of an execution, without the paths in a traceback. */
const seen = (execution) => ({
  text: execution.text,
  stdout: execution.logs.stdout.join(''),
  stderr: execution.logs.stderr.join(''),
  results: execution.results.map(({ isMainResult, text, html, png, svg, json, markdown }) => ({ isMainResult, text, html, png, svg, json, markdown })),
  error: execution.error && { name: execution.error.name, value: execution.error.value },
})

export const code = {
  'python keeps state between cells': async (sandbox) => {
    await sandbox.runCode('x = 20\ndef double(n):\n    return n * 2')
    return seen(await sandbox.runCode('print("printed")\ndouble(x) + 2'))
  },

  'execution counts go up': async (sandbox) => {
    const first = await sandbox.runCode('1')
    const second = await sandbox.runCode('2')
    return second.executionCount - first.executionCount
  },

  'an exception is a result, not a failed call': async (sandbox) => seen(await sandbox.runCode('print("before")\n1 / 0')),

  'a syntax error': async (sandbox) => (await sandbox.runCode('def (:')).error.name,

  'stderr': async (sandbox) => seen(await sandbox.runCode('import sys\nprint("to stderr", file=sys.stderr)')),

  'unicode in code and output': async (sandbox) => seen(await sandbox.runCode('s = "Größe 東京 🚀"\nprint(s)\ns')),

  'html and png results': async (sandbox) => seen(await sandbox.runCode(`
import base64
class Chart:
    def _repr_html_(self):
        return "<table><tr><td>1</td></tr></table>"
    def _repr_png_(self):
        return base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
    def __repr__(self):
        return "Chart()"
Chart()`)),

  'javascript keeps state': async (sandbox) => {
    await sandbox.runCode('const base = 40; globalThis.add = (n) => base + n', { language: 'javascript' })
    return seen(await sandbox.runCode('console.log("logged"); add(2)', { language: 'javascript' }))
  },

  'bash': async (sandbox) => {
    const { stdout, error } = seen(await sandbox.runCode('for i in 1 2; do echo "line $i"; done', { language: 'bash' }))
    return { stdout, error }
  },

  'environment variables for one run': async (sandbox) => {
    const during = await sandbox.runCode('import os\nprint(os.environ.get("RUN_TOKEN"))', { envs: { RUN_TOKEN: 'only here' } })
    const after = await sandbox.runCode('import os\nprint(os.environ.get("RUN_TOKEN"))')
    return [seen(during).stdout, seen(after).stdout]
  },

  'callbacks come in order, while the code runs': async (sandbox) => {
    const order = []
    const started = performance.now()
    let first
    await sandbox.runCode('import time\nprint("one", flush=True)\ntime.sleep(1)\nprint("two", flush=True)\n"three"', {
      onStdout: ({ line }) => { first ??= performance.now() - started; order.push(line.trim()) },
      onResult: ({ text }) => { order.push(text) },
    })
    return { order: order.filter(Boolean), firstCameEarly: performance.now() - started - first > 800 }
  },

  'contexts: create, use apart, list, restart, remove': async (sandbox) => {
    const own = await sandbox.createCodeContext({ language: 'python', cwd: '/home/user' })
    await sandbox.runCode('v = "own"', { context: own })
    const apart = (await sandbox.runCode('v')).error.name
    const kept = (await sandbox.runCode('v', { context: own })).text
    const listed = (await sandbox.listCodeContexts()).some(({ id }) => id === own.id)
    await sandbox.restartCodeContext(own)
    const restarted = (await sandbox.runCode('v', { context: own })).error.name
    await sandbox.removeCodeContext(own)
    const removed = (await sandbox.listCodeContexts()).some(({ id }) => id === own.id)
    return { language: own.language, cwd: own.cwd, apart, kept, listed, restarted, removed }
  },

  'a context that does not exist': async (sandbox) =>
    sandbox.runCode('1', { context: { id: '00000000-0000-0000-0000-000000000000' } }).catch(({ name, message }) => ({ name, message })),

  'the client\'s own timeout': async (sandbox) =>
    sandbox.runCode('import time\ntime.sleep(20)', { timeoutMs: 700 }).catch(({ name, message }) => ({ name, message })),

  'files and code see the same folder': async (sandbox) => {
    await sandbox.files.write('table.csv', 'a,b\n1,2\n3,4\n')
    return seen(await sandbox.runCode('import csv\nwith open("table.csv") as f:\n    total = sum(int(r["b"]) for r in csv.DictReader(f))\ntotal'))
  },
}
