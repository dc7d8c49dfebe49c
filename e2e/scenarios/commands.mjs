// Commands as an application runs them. Every value returned is free of ids,
// pids and times, so that two runs can be compared.
import assert from 'node:assert/strict'

/** What a caller sees of a failed command. */
function failure(error) {
  return { name: error.name, message: error.message, exitCode: error.exitCode, stdout: error.stdout, stderr: error.stderr, error: error.error }
}

const outcome = (result) => ({ exitCode: result.exitCode, stdout: result.stdout, stderr: result.stderr, error: result.error })

export const commands = {
  'foreground: stdout, stderr and exit code': async (sandbox) =>
    outcome(await sandbox.commands.run('echo out; echo err >&2')),

  'a failing command throws with its code and its output': async (sandbox) =>
    sandbox.commands.run('echo partial; echo why >&2; exit 3').catch(failure),

  'text sent to a process, and its end': async (sandbox) => {
    const results = []
    for (const [command, ...texts] of [['bash', 'echo a\n', 'ech', 'o b'], ['python3 -', 'for i in range(2):\n', '  print(i)\n'], ['cat', 'Größe\n', '🚀'], ['sort', 'b\na\n']]) {
      const handle = await sandbox.commands.run(command, { background: true, stdin: true })
      for (const text of texts) await sandbox.commands.sendStdin(handle.pid, text)
      await sandbox.commands.closeStdin(handle.pid)
      results.push(outcome(await handle.wait()))
    }
    return results
  },

  'text sent to a process that is not there': async (sandbox) =>
    sandbox.commands.sendStdin(4_000_000, 'x').catch((error) => error.name),

  'a missing program exits with 127': async (sandbox) =>
    sandbox.commands.run('no-such-program-here').catch((error) => ({ name: error.name, exitCode: error.exitCode })),

  'a command that kills itself reports the signal': async (sandbox) =>
    sandbox.commands.run('kill -9 $$').catch(failure),

  'quotes, newlines, globs and unicode reach the shell unchanged': async (sandbox) =>
    outcome(await sandbox.commands.run(`printf '%s\\n' "a  b" 'c"d' 'Größe 東京 🚀' "$(printf 'x\\ty')" '*'\nfor i in 1 2 3; do echo "line $i"; done`)),

  'a heredoc and a pipeline': async (sandbox) =>
    outcome(await sandbox.commands.run('cat <<EOF | sort -r | head -2\nb\na\nc\nEOF')),

  'bytes that are not UTF-8 arrive as the SDK shows them': async (sandbox) =>
    outcome(await sandbox.commands.run(`printf '\\xff\\xfeok'`)),

  'working directory and environment': async (sandbox) => {
    await sandbox.files.makeDir('project/inner')
    return outcome(await sandbox.commands.run('basename "$PWD"; echo "$GREETING, $NAME"', {
      cwd: '/home/user/project/inner',
      envs: { GREETING: 'hello', NAME: "O'Neil $HOME" },
    }))
  },

  'a variable set at creation is seen by commands': {
    create: { envs: { APP_MODE: 'test mode' } },
    run: async (sandbox) => outcome(await sandbox.commands.run('echo "$APP_MODE"')),
  },

  'the shell keeps its pid, so scripts that use $$ work': async (sandbox) => {
    const handle = await sandbox.commands.run('echo $$', { background: true })
    const result = await handle.wait()
    return result.stdout.trim() === String(handle.pid)
  },

  'output is streamed while the command runs': async (sandbox) => {
    const seen = []
    const started = performance.now()
    await sandbox.commands.run('echo first; sleep 1; echo second', {
      onStdout: (text) => { seen.push([text.trim(), performance.now() - started]) },
    })
    const ended = performance.now() - started
    return { order: seen.map(([text]) => text), firstCameEarly: ended - seen[0][1] > 800 }
  },

  'stdout and stderr keep to their own callbacks': async (sandbox) => {
    let stdout = ''
    let stderr = ''
    await sandbox.commands.run('for i in 1 2 3; do echo "o$i"; echo "e$i" >&2; done', {
      onStdout: (text) => { stdout += text },
      onStderr: (text) => { stderr += text },
    })
    return { stdout, stderr }
  },

  'megabytes of output arrive whole': async (sandbox) => {
    const result = await sandbox.commands.run('seq 1 300000')
    const lines = result.stdout.trimEnd().split('\n')
    return { lines: lines.length, last: lines.at(-1), bytes: result.stdout.length }
  },

  'background: start, wait, result': async (sandbox) => {
    const handle = await sandbox.commands.run('sleep 0.2; echo done', { background: true })
    assert.equal(typeof handle.pid, 'number')
    return outcome(await handle.wait())
  },

  'background: list shows the command as it was given': async (sandbox) => {
    const handle = await sandbox.commands.run('sleep 30', { background: true, envs: { PURPOSE: 'listing' } })
    const processes = await sandbox.commands.list()
    const mine = processes.find((process) => process.pid === handle.pid)
    await handle.kill()
    return { count: processes.length, cmd: mine.cmd, args: mine.args, envs: mine.envs, tag: mine.tag }
  },

  'background: connect by pid from a second handle': async (sandbox) => {
    const handle = await sandbox.commands.run('sleep 0.7; echo late; exit 4', { background: true })
    await handle.disconnect()
    const again = await sandbox.commands.connect(handle.pid)
    return again.wait().catch(failure)
  },

  'background: kill ends it, a second kill says it is gone': async (sandbox) => {
    const handle = await sandbox.commands.run('sleep 30', { background: true })
    const ended = handle.wait().catch(failure)
    const first = await sandbox.commands.kill(handle.pid)
    const how = await ended
    return { first, second: await sandbox.commands.kill(handle.pid), how }
  },

  'a command outlives its client': async (sandbox) => {
    const handle = await sandbox.commands.run('sleep 0.5; echo survived > mark', { background: true })
    await handle.disconnect()
    await sandbox.commands.run('for i in $(seq 50); do [ -s mark ] && break; sleep 0.1; done')
    return sandbox.files.read('mark')
  },

  // The SDK's clock and the sandbox's race to say so, each in words of its own.
  'the client\'s own timeout is the one it is told about': async (sandbox) =>
    sandbox.commands.run('sleep 20', { timeoutMs: 700 })
      .catch(({ name, message }) => ({ name, message: message.replace(/\[deadline_exceeded\] .*?: /, '[deadline_exceeded] ') })),

  'timeoutMs 0 means no timeout': async (sandbox) =>
    outcome(await sandbox.commands.run('sleep 0.3; echo patient', { timeoutMs: 0 })),

  'connecting to a pid that does not exist': async (sandbox) =>
    sandbox.commands.connect(4194303).catch((error) => ({ name: error.name, message: error.message })),

  'as root, and as a user who does not exist': async (sandbox) => [
    outcome(await sandbox.commands.run('echo as root', { user: 'root' })),
    await sandbox.commands.run('echo never', { user: 'nobody-of-that-name' }).catch(({ name, message }) => ({ name, message })),
  ],

  'ten at once': async (sandbox) => {
    const results = await Promise.all(Array.from({ length: 10 }, (_, i) => sandbox.commands.run(`sleep 0.1; echo ${i}`)))
    return results.map((result) => result.stdout.trim())
  },
}
