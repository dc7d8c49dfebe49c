// The SDK's git helpers, on repositories that need no network.
const lines = (text) => text.trim().split('\n')

export const git = {
  'init, add, commit, branches, status': async (sandbox) => {
    await sandbox.git.configureUser('Test User', 'test@example.com')
    await sandbox.git.init('repo', { initialBranch: 'main' })
    await sandbox.files.write('repo/readme.md', '# hello\n')
    const before = await sandbox.git.status('repo')
    await sandbox.git.add('repo')
    const commit = await sandbox.git.commit('repo', 'first: "quoted" & $special')
    await sandbox.git.createBranch('repo', 'feature/x')
    const branches = await sandbox.git.branches('repo')
    await sandbox.git.checkoutBranch('repo', 'main')
    await sandbox.git.deleteBranch('repo', 'feature/x', { force: true })
    await sandbox.files.write('repo/readme.md', '# changed\n')
    const after = await sandbox.git.status('repo')
    await sandbox.git.restore('repo', { paths: ['readme.md'] })
    return {
      before: before.fileStatus,
      exitCode: commit.exitCode,
      branches,
      after: after.fileStatus,
      log: lines((await sandbox.commands.run('git -C repo log --format=%s%n%an')).stdout),
      restored: await sandbox.files.read('repo/readme.md'),
    }
  },

  'remotes, clone and pull from a local repository': async (sandbox) => {
    await sandbox.git.configureUser('Test User', 'test@example.com')
    await sandbox.git.init('upstream', { initialBranch: 'main' })
    await sandbox.files.write('upstream/a.txt', 'a')
    await sandbox.git.add('upstream')
    await sandbox.git.commit('upstream', 'one')
    const cloned = await sandbox.git.clone('./upstream', { path: 'clone' })
    await sandbox.git.remoteAdd('clone', 'fork', 'https://git.example.com/team/repo.git')
    return {
      exitCode: cloned.exitCode,
      remote: await sandbox.git.remoteGet('clone', 'fork'),
      file: await sandbox.files.read('clone/a.txt'),
    }
  },
}
