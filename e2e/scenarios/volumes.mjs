// Volumes: files that outlive sandboxes, written and read from outside too.
const encoder = new TextEncoder()
const binary = Uint8Array.from({ length: 1 << 20 }, (_, i) => (i * 31 + (i >> 8)) & 0xff)

const entry = ({ name, type, path, size, mode, uid, gid }) => ({ name, type, path, size, mode, uid, gid })
const failed = ({ name, message }) => ({ name, message })
const same = (a, b) => a.length === b.length && a.every((byte, i) => byte === b[i])

/** A scenario with a volume of its own. */
const withVolume = (name, run) => async (sandbox, sdk) => {
  const volume = await sdk.Volume.create(name, sdk.options)
  try {
    return JSON.parse(JSON.stringify(await run(volume, sdk, sandbox) ?? null).replaceAll(volume.volumeId, '<volume>'))
  } finally {
    await sdk.Volume.destroy(volume.volumeId, sdk.options)
  }
}

export const volumes = {
  'made, found, listed, destroyed': async (_sandbox, { Volume, options }) => {
    const volume = await Volume.create('life', options)
    const info = await Volume.getInfo(volume.volumeId, options)
    const again = await Volume.connect(volume.volumeId, options)
    const listed = (await Volume.list(options)).filter(({ volumeId }) => volumeId === volume.volumeId).map(({ name }) => name)
    return {
      names: [volume.name, info.name, again.name, listed],
      same: again.volumeId === volume.volumeId && info.token === again.token,
      destroyed: [await Volume.destroy(volume.volumeId, options), await Volume.destroy(volume.volumeId, options)],
      gone: await Volume.getInfo(volume.volumeId, options).catch(({ name }) => name),
    }
  },

  'a name twice, and one that is none': withVolume('twice', async (_volume, { Volume, options }) => [
    await Volume.create('twice', options).catch(({ name }) => name),
    await Volume.create('no/name', options).catch(({ name }) => name),
  ]),

  'text in every form': withVolume('text', async (volume) => {
    const made = await volume.writeFile('note.txt', 'Größe 東京 🚀\r\nline two')
    await volume.writeFile('/empty.txt', '')
    return {
      made: entry(made),
      text: await volume.readFile('/note.txt'),
      bytes: new TextDecoder().decode(await volume.readFile('note.txt', { format: 'bytes' })),
      blob: await (await volume.readFile('note.txt', { format: 'blob' })).text(),
      stream: await new Response(await volume.readFile('note.txt', { format: 'stream' })).text(),
      empty: [await volume.readFile('empty.txt'), (await volume.readFile('empty.txt', { format: 'bytes' })).length],
    }
  }),

  'bytes, a blob, a stream': withVolume('bytes', async (volume) => {
    await volume.writeFile('/a.bin', binary.buffer)
    await volume.writeFile('/b.bin', new Blob([binary]))
    await volume.writeFile('/c.bin', new Blob([binary]).stream())
    return Promise.all(['/a.bin', '/b.bin', '/c.bin'].map(async (path) => same(await volume.readFile(path, { format: 'bytes' }), binary)))
  }),

  'code': withVolume('code', async (volume) => {
    await volume.writeFile('/app/main.py', 'print("hello")\n', { force: true, mode: 0o755 })
    return { info: entry(await volume.getInfo('/app/main.py')), text: await volume.readFile('/app/main.py') }
  }),

  'written over only by force': withVolume('force', async (volume) => {
    await volume.writeFile('/x.txt', 'one')
    const refused = await volume.writeFile('/x.txt', 'two').catch(failed)
    await volume.writeFile('/x.txt', 'three', { force: true })
    return { refused, text: await volume.readFile('/x.txt') }
  }),

  'folders': withVolume('folders', async (volume) => {
    const made = await volume.makeDir('/a/b', { force: true, mode: 0o700, uid: 1000, gid: 1001 })
    await volume.writeFile('/a/b/x.txt', 'x', { mode: 0o640, uid: 1000, gid: 1000 })
    return {
      made: entry(made),
      // The length of a folder is the file system's own.
      listed: (await volume.list('/', { depth: 3 })).map(entry).map(({ size, type, ...rest }) => ({ ...rest, type, size: type === 'file' ? size : 0 })),
      twice: await volume.makeDir('/a/b').catch(failed),
      alone: await volume.makeDir('/c/d').catch(failed),
      none: await volume.list('/none').catch(failed),
    }
  }),

  'metadata and removal': withVolume('metadata', async (volume) => {
    await volume.writeFile('/d/x.txt', 'x', { force: true })
    return {
      updated: entry(await volume.updateMetadata('/d/x.txt', { uid: 7, gid: 8, mode: 0o600 })),
      missing: await volume.updateMetadata('/none', { mode: 0o600 }).catch(failed),
      exists: [await volume.exists('/d/x.txt'), await volume.exists('/none')],
      removed: [await volume.remove('/d'), await volume.exists('/d/x.txt'), await volume.remove('/d').catch(failed), await volume.remove('/').catch(failed)],
    }
  }),

  'seen by a sandbox, and by the next': withVolume('mounted', async (volume, { Sandbox, options }) => {
    await volume.writeFile('/in.txt', 'from outside')
    const first = await Sandbox.create({ ...options, volumeMounts: { '/mnt/data': volume } })
    let text, mounts
    try {
      text = await first.files.read('/mnt/data/in.txt')
      mounts = (await first.getInfo()).volumeMounts
      await first.files.write('/mnt/data/out.txt', encoder.encode('from inside').buffer)
    } finally {
      await first.kill()
    }
    const second = await Sandbox.create({ ...options, volumeMounts: { '/home/user/shared': 'mounted' } })
    try {
      return { text, mounts, kept: await second.files.read('/home/user/shared/out.txt'), outside: await volume.readFile('/out.txt') }
    } finally {
      await second.kill()
    }
  }),

  'a mount of what is not there': async (_sandbox, { Sandbox, options }) =>
    Sandbox.create({ ...options, volumeMounts: { '/mnt/data': 'no-such-volume' } }).catch(({ name }) => name),
}
