// Has packages ask Node for its modules, in the place of importing them.
import type { Plugin } from 'rolldown'
import { isLaidIn } from './dependencies.ts'

/**
 * By package, the modules of Node that it asks for. The ledger runs in workers, too: where one has no files, its file functions
 * are missing when they are called, and not when the ledger is imported.
 */
const askedBy: Readonly<Record<string, RegExp>> = {
  '@tallystick/cli': /^node:/,
  '@tallystick/ledger': /^node:fs(?:\/promises)?$/,
}

/** The import of a module of Node, in the form in which the sources of this repository and commander have it. */
const importOfNode = /^import (?:(\w+)|\{([^}]*)\}) from '(node:[\w/]+)'/gm

/**
 * For an import, Node makes a module of each of its own, with the value of every property. Of `node:fs` and `node:util` that loads
 * a dozen others, for a sixth of the time of a short command. `process.getBuiltinModule` returns the object as it is.
 */
export function modulesOfNode(packageName: string, sources: string): Plugin {
  return {
    name: 'modules-of-node',
    transform: {
      order: 'pre',
      handler(code, id) {
        const isAsked = askedBy[packageName]
        if (!isAsked || !(id.startsWith(sources) || isLaidIn(id))) return null
        const asking = code.replace(
          importOfNode,
          (statement, whole: string | undefined, names: string | undefined, specifier: string) =>
            isAsked.test(specifier)
              ? `const ${whole ?? taken(names ?? '')} = ${asked(specifier, isLaidIn(id))}${newlinesOf(statement)}`
              : statement,
        )
        // Lines stay where they are, and so does what the source map says.
        return asking === code ? null : { code: asking, map: null }
      },
    },
  }
}

/** The names of an import, as a declaration takes them from an object. */
function taken(names: string): string {
  const values = names.split(',').filter((name) => !/^\s*(?:type |$)/.test(name))
  return `{ ${values.map((name) => name.trim().replace(' as ', ': ')).join(', ')} }`
}

function newlinesOf(statement: string): string {
  return '\n'.repeat(statement.split('\n').length - 1)
}

/** Commander starts a program for a verb that is one, and none of ours is: it never gets to the module that it imports for that. */
function asked(specifier: string, isOfDependency: boolean): string {
  const isNever = isOfDependency && specifier === 'node:child_process'
  return isNever ? 'undefined' : `(globalThis.process?.getBuiltinModule?.('${specifier}') ?? {})`
}
