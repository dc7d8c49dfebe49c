// Files in every form the SDK reads and writes them.
const encoder = new TextEncoder()

/** 1 MiB in which every byte value occurs and no period is a power of two. */
const binary = Uint8Array.from({ length: 1 << 20 }, (_, i) => (i * 31 + (i >> 8)) & 0xff)

const entry = ({ name, type, path, size, mode, permissions, owner, group, symlinkTarget }) =>
  ({ name, type, path, size, mode, permissions, owner, group, symlinkTarget })

const same = (a, b) => a.length === b.length && a.every((byte, i) => byte === b[i])

const refused = (error) => ({ name: error.name, message: error.message })

async function bytes(stream) {
  return new Uint8Array(await new Response(stream).arrayBuffer())
}

export const files = {
  'a string': async (sandbox) => {
    const info = await sandbox.files.write('note.txt', 'Größe 東京 🚀\r\nline two')
    return { info, text: await sandbox.files.read('note.txt') }
  },

  'an empty file': async (sandbox) => {
    await sandbox.files.write('empty.txt', '')
    return { text: await sandbox.files.read('empty.txt'), size: (await sandbox.files.getInfo('empty.txt')).size }
  },

  'bytes': async (sandbox) => {
    await sandbox.files.write('data.bin', binary.buffer)
    return same(await sandbox.files.read('data.bin', { format: 'bytes' }), binary)
  },

  'a blob, read back as a blob': async (sandbox) => {
    await sandbox.files.write('blob.bin', new Blob([binary]))
    const blob = await sandbox.files.read('blob.bin', { format: 'blob' })
    return same(new Uint8Array(await blob.arrayBuffer()), binary)
  },

  'a stream, read back as a stream': async (sandbox) => {
    await sandbox.files.write('stream.bin', new Blob([binary]).stream())
    return same(await bytes(await sandbox.files.read('stream.bin', { format: 'stream' })), binary)
  },

  'gzip on the way up and down': async (sandbox) => {
    await sandbox.files.write('zip.bin', binary.buffer, { gzip: true })
    return same(await sandbox.files.read('zip.bin', { format: 'bytes', gzip: true }), binary)
  },

  'octet-stream': async (sandbox) => {
    await sandbox.files.write('octet.bin', binary.buffer, { useOctetStream: true })
    return same(await sandbox.files.read('octet.bin', { format: 'bytes' }), binary)
  },

  'several in one call, folders made on the way': async (sandbox) => {
    const infos = await sandbox.files.write([
      { path: 'a/one.txt', data: '1' },
      { path: 'a/b/two.txt', data: encoder.encode('22').buffer },
      { path: '/home/user/three.txt', data: '333' },
    ])
    return { infos, three: await sandbox.files.read('three.txt'), two: await sandbox.files.read('a/b/two.txt') }
  },

  'names with spaces, quotes, percent and unicode': async (sandbox) => {
    const names = ['with space.txt', 'it\'s "quoted".txt', '100%.txt', 'a+b&c=d.txt', 'Größe 東京.txt', 'semi;colon.txt', '#hash?.txt']
    for (const name of names) await sandbox.files.write(name, name)
    const read = []
    for (const name of names) read.push(await sandbox.files.read(name))
    return { read, listed: (await sandbox.files.list('.')).map(({ name }) => name).filter((name) => names.includes(name)).sort() }
  },

  'a source file that does no harm': async (sandbox) => {
    await sandbox.files.write('app/main.py', 'import json\n\nprint(json.dumps({"answer": 6 * 7}))\n')
    await sandbox.files.write('app/index.js', 'console.log(JSON.stringify({ answer: 6 * 7 }))\n')
    await sandbox.files.write('app/build.sh', '#!/bin/bash\nset -euo pipefail\nmkdir -p out\ncp main.py out/\n')
    const run = async (command) => (await sandbox.commands.run(command, { cwd: '/home/user/app' })).stdout
    return [await run('python3 main.py'), await run('node index.js'), await run('bash build.sh && ls out')]
  },

  'overwriting': async (sandbox) => {
    await sandbox.files.write('f.txt', 'a longer first version')
    await sandbox.files.write('f.txt', 'second')
    return sandbox.files.read('f.txt')
  },

  'reading what is not there': async (sandbox) => sandbox.files.read('missing.txt').catch(refused),

  'makeDir, exists, list, getInfo': async (sandbox) => {
    const made = await sandbox.files.makeDir('dir/sub')
    const again = await sandbox.files.makeDir('dir/sub')
    await sandbox.files.write('dir/x.txt', 'x')
    return {
      made,
      again,
      exists: [await sandbox.files.exists('dir/x.txt'), await sandbox.files.exists('dir/nothing')],
      list: (await sandbox.files.list('dir')).map(entry),
      deep: (await sandbox.files.list('.', { depth: 3 })).map(({ path }) => path).sort(),
      info: entry(await sandbox.files.getInfo('dir/x.txt')),
      directory: entry(await sandbox.files.getInfo('dir')),
      missing: await sandbox.files.getInfo('dir/nothing').catch(refused),
    }
  },

  'rename': async (sandbox) => {
    await sandbox.files.write('old.txt', 'content')
    const moved = entry(await sandbox.files.rename('old.txt', 'new.txt'))
    return { moved, old: await sandbox.files.exists('old.txt'), text: await sandbox.files.read('new.txt') }
  },

  'rename what is not there': async (sandbox) => sandbox.files.rename('nothing.txt', 'other.txt').catch(refused),

  'remove a file and a folder': async (sandbox) => {
    await sandbox.files.write('gone/a.txt', 'a')
    await sandbox.files.write('single.txt', 's')
    await sandbox.files.remove('single.txt')
    await sandbox.files.remove('gone')
    return [await sandbox.files.exists('single.txt'), await sandbox.files.exists('gone/a.txt')]
  },

  'watchDir reports writes, renames and removals': async (sandbox) => {
    await sandbox.files.makeDir('watched')
    const events = []
    const wanted = new Set(['create new.txt', 'write new.txt', 'rename new.txt', 'create moved.txt', 'remove moved.txt'])
    let finished
    const complete = new Promise((resolve, reject) => {
      finished = resolve
      setTimeout(() => reject(new Error(`only saw ${JSON.stringify(events)}`)), 5000).unref()
    })
    const watch = await sandbox.files.watchDir('watched', ({ type, name }) => {
      events.push(`${type} ${name}`)
      if ([...wanted].every((event) => events.includes(event))) finished()
    })
    await sandbox.files.write('watched/new.txt', 'n')
    await sandbox.files.rename('watched/new.txt', 'watched/moved.txt')
    await sandbox.files.remove('watched/moved.txt')
    await complete
    await watch.stop()
    return [...wanted].filter((event) => events.includes(event))
  },

  'watching what is not there': async (sandbox) => sandbox.files.watchDir('nothing', () => {}).catch(refused),
}
