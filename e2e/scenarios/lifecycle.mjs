// A sandbox's life as the control plane tells it.

const describe = ({ templateId, name, metadata, state }) => ({ templateId, name, metadata, state })

export const lifecycle = {
  'info, isRunning, kill': {
    create: { metadata: { purpose: 'life' } },
    run: async (sandbox, { Sandbox, options }) => {
      const info = await sandbox.getInfo()
      const running = await sandbox.isRunning()
      const killed = await sandbox.kill()
      return {
        info: describe(info),
        started: info.startedAt instanceof Date,
        running,
        killed,
        after: await sandbox.isRunning(),
        again: await Sandbox.kill(sandbox.sandboxId, options),
        gone: await Sandbox.getInfo(sandbox.sandboxId, options).catch(({ name }) => name),
        command: await sandbox.commands.run('true').catch(({ name }) => name),
      }
    },
  },

  'a lifetime the client names is the one it gets': {
    create: { timeoutMs: 120_000 },
    run: async (sandbox) => {
      const first = await sandbox.getInfo()
      await sandbox.setTimeout(600_000)
      const second = await sandbox.getInfo()
      return [first, second].map(({ startedAt, endAt }) => Math.round((endAt - startedAt) / 60_000))
    },
  },

  'connect to a running sandbox from elsewhere': async (sandbox, { Sandbox, options }) => {
    await sandbox.files.write('shared.txt', 'shared')
    const again = await Sandbox.connect(sandbox.sandboxId, options)
    return { same: again.sandboxId === sandbox.sandboxId, text: await again.files.read('shared.txt') }
  },

  'list by metadata, page by page': {
    create: { metadata: { page: 'a' } },
    run: async (sandbox, { Sandbox, options }) => {
      const tag = `page-${sandbox.sandboxId}`
      const extra = []
      for (let i = 0; i < 3; i++) extra.push(await Sandbox.create({ ...options, metadata: { tag, i: String(i) } }))
      try {
        const pages = []
        const paginator = Sandbox.list({ ...options, limit: 2, query: { metadata: { tag } } })
        while (paginator.hasNext) pages.push((await paginator.nextItems()).map(({ metadata }) => metadata.i))
        return { sizes: pages.map((page) => page.length), all: pages.flat().sort() }
      } finally {
        await Promise.all(extra.map((one) => one.kill()))
      }
    },
  },

  'metrics': async (sandbox) => Array.isArray(await sandbox.getMetrics()),

  'connecting to a sandbox that does not exist': async (_sandbox, { Sandbox, options }) =>
    Sandbox.connect('i0000000000000000000', options).catch(({ name }) => name),
}
