import { existsSync, globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { parseSync } from 'oxc-parser'

/** Which files the files of the repository load, by paths from its root. */
export class Imports {
  readonly #root: string
  readonly #loaded = new Map<string, readonly string[]>()
  readonly #entries: ReadonlyMap<string, string>

  constructor(root: string) {
    this.#root = root
    this.#entries = packageEntries(root)
  }

  /** Returns the files that are loaded with this one, itself included, each with how many imports away it is. */
  reachedFrom(path: string): ReadonlyMap<string, number> {
    const distances = new Map([[path, 0]])
    // A map that grows while it is walked: files come in the order of their distance.
    for (const [each, distance] of distances) {
      for (const next of this.#loadedBy(each)) if (!distances.has(next)) distances.set(next, distance + 1)
    }
    return distances
  }

  #loadedBy(path: string): readonly string[] {
    const known = this.#loaded.get(path)
    if (known) return known
    const loaded = specifiersIn(path, readFileSync(posix.join(this.#root, path), 'utf8')).flatMap(
      (specifier) => {
        const to = specifier.startsWith('.')
          ? posix.join(posix.dirname(path), specifier)
          : this.#entries.get(specifier)
        return to?.endsWith('.ts') && existsSync(posix.join(this.#root, to)) ? [to] : []
      },
    )
    this.#loaded.set(path, loaded)
    return loaded
  }
}

/** The names under which packages of the workspace are imported, each with its source file. */
function packageEntries(root: string): ReadonlyMap<string, string> {
  return new Map(
    globSync('packages/*/package.json', { cwd: root }).flatMap((file) => {
      const folder = posix.dirname(file)
      const { name, exports } = JSON.parse(readFileSync(posix.join(root, file), 'utf8')) as {
        readonly name: string
        readonly exports: Readonly<Record<string, string>>
      }
      return Object.entries(exports).map(
        ([subpath, target]) => [posix.join(name, subpath), posix.join(folder, target)] as const,
      )
    }),
  )
}

/** What a file imports when it runs: imports of types leave nothing. */
function specifiersIn(path: string, text: string): readonly string[] {
  const { module } = parseSync(path, text)
  const imports = module.staticImports.filter(
    ({ entries }) => entries.length === 0 || entries.some(({ isType }) => !isType),
  )
  const exported = module.staticExports.flatMap(({ entries }) =>
    entries.flatMap(({ moduleRequest, isType }) => (moduleRequest && !isType ? [moduleRequest.value] : [])),
  )
  const lazy = [...text.matchAll(/\bimport\(\s*['"]([^'"]+)['"]/g)].map(([, specifier = '']) => specifier)
  return [...imports.map(({ moduleRequest }) => moduleRequest.value), ...exported, ...lazy]
}
