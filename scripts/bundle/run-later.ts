// Lets a module of a package run later than at its import, where a function hands it out.
import { join } from 'node:path'
import type { Plugin } from 'rolldown'

/** By package, modules that import another one whole, and return it from a function. */
const handingOut: Readonly<Record<string, readonly string[]>> = {
  '@tallystick/core': ['vocabulary/zod/zod'],
}

/** The import of a whole module, in the form in which all sources of this repository are. */
const importOfModule = /^import \* as (\w+) from '([^']+)'$/m

/**
 * Runs what these modules import when it is first asked for. The import becomes a `require` where the function returns it,
 * and the bundler makes that a call of a function around the module: it stays in a file that is imported, as every host and
 * bundler wants it, and takes no time until then but that of being read.
 */
export function runLater(packageName: string, sources: string): Plugin {
  const paths = new Set((handingOut[packageName] ?? []).map((name) => join(sources, `${name}.ts`)))
  return {
    name: 'run-later',
    transform: {
      order: 'pre',
      handler(code, id) {
        if (!paths.has(id)) return null
        const [statement = '', name = '', imported = ''] = importOfModule.exec(code) ?? []
        const returned = `return ${name}\n`
        if (statement === '' || !code.includes(returned)) {
          throw new Error(`${id} imports no module whole that it returns.`)
        }
        const later = `return (ran ??= require('${imported}'))\n`
        // Lines stay where they are, and so does what the source map says.
        return { code: code.replace(statement, 'let ran').replace(returned, later), map: null }
      },
    },
  }
}
