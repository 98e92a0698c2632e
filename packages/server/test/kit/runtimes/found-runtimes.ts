import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

const repository = join(import.meta.dirname, '../../../../..')

/** Where `installLine` puts the runtimes. They take 350 MB, so that no `pnpm install` brings them. */
const ownFolder = join(repository, '.runtimes/node_modules/.bin')

/** Installs every runtime where the tests find it, besides the folders of PATH. */
const installLine = 'npm install --prefix .runtimes bun@1.4.5 deno@2.9.6 workerd@1.20261117.1'

/** Returns the path of a runtime; `undefined` if this machine has none, which the test run then says. */
export function findRuntime(name: string): string | undefined {
  const folders = [ownFolder, ...(process.env['PATH'] ?? '').split(delimiter)]
  const found = folders.map((folder) => join(folder, name)).find(isExecutable)
  if (found === undefined)
    console.warn(`The test of a server in ${name} is left out. Install ${name}: ${installLine}`)
  return found
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
