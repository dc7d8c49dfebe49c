// Every group of scenarios, and the SDK class it needs.
import { code } from './code.mjs'
import { commands } from './commands.mjs'
import { files } from './files.mjs'
import { git } from './git.mjs'
import { lifecycle } from './lifecycle.mjs'
import { refused } from './refused.mjs'
import { signed } from './signed.mjs'
import { volumes } from './volumes.mjs'

/** The packages under test, by the name a test gives them. */
export const sdks = {
  e2b: 'e2b',
  'e2b-old': 'e2b-old',
  'code-interpreter': '@e2b/code-interpreter',
}

export const groups = { commands, files, git, lifecycle, code, signed, refused, volumes }
