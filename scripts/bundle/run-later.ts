// Lets modules of a package run later than at its import, where a function hands them out, and lets Node read them later, too.
import { dirname, join } from 'node:path'
import type { Plugin } from 'rolldown'

/** By package, modules that import another one whole, and return it from a function: by the file that each is published as. */
const handingOut: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '@tallystick/core': { zod: 'vocabulary/zod/zod' },
}

/** The import of a whole module, in the form in which all sources of this repository are. */
const importOfModule = /^import \* as (\w+) from '([^']+)'$/m

/** The function that hands it out. */
const exportOfFunction = /^export function (\w+)\(\)/m

/** The paths of these modules, by the files that they are published as: each is an entry that only the package itself imports. */
export function laterEntries(packageName: string, sources: string): Readonly<Record<string, string>> {
  const entries = Object.entries(handingOut[packageName] ?? {})
  return Object.fromEntries(entries.map(([file, name]) => [file, join(sources, `${name}.ts`)]))
}

/**
 * Runs what these modules import when it is first asked for. The import becomes a `require` where the function returns it,
 * and the bundler makes that a call of a function around the module: it stays in a file that is imported, as every host and
 * bundler wants it, and takes no time until then but that of being read.
 *
 * Node spares that time, too. The other modules import `#FILE`, and the `imports` of the package lead Node to a module of
 * CommonJS that requires the file when the function is first called, and all others to the file itself.
 */
export function runLater(packageName: string, sources: string): Plugin {
  const fileOf = new Map(
    Object.entries(laterEntries(packageName, sources)).map(([file, path]) => [path, file] as const),
  )
  return {
    name: 'run-later',
    resolveId(specifier, importer) {
      const file = importer === undefined ? undefined : fileOf.get(join(dirname(importer), specifier))
      return file === undefined ? null : { id: `#${file}`, external: true }
    },
    transform: {
      order: 'pre',
      handler(code, id) {
        const file = fileOf.get(id)
        if (file === undefined) return null
        const [statement = '', name = '', imported = ''] = importOfModule.exec(code) ?? []
        const [, handOut] = exportOfFunction.exec(code) ?? []
        const returned = `return ${name}\n`
        if (statement === '' || handOut === undefined || !code.includes(returned)) {
          throw new Error(`${id} imports no module whole that it returns.`)
        }
        this.emitFile({ type: 'asset', fileName: `${file}.cjs`, source: requiredLater(file, handOut) })
        const later = `return (ran ??= require('${imported}'))\n`
        // Lines stay where they are, and so does what the source map says.
        return { code: code.replace(statement, 'let ran').replace(returned, later), map: null }
      },
    },
  }
}

/** A module of CommonJS with the same function. It requires the file that has it when it is called. */
function requiredLater(file: string, handOut: string): string {
  return `// Node reads ${file}.js when this is first called.\nexports.${handOut} = () => require('./${file}.js').${handOut}()\n`
}
