import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { parseSync, type ParseResult } from 'oxc-parser'
import { meaningOf } from './meaning.ts'

const ownScope = /^@tallystick\/([^/]+)$/

/**
 * SHA-256, in hex, over what some modules mean and all that they stand on: their code without types, comments and
 * formatting, and the names and versions of the packages that they import. Of our own packages only the modules count
 * that an import by name leads to. `root` is the folder of the packages.
 */
export function codeDigest(entries: readonly string[], root: string): string {
  const graph = new ModuleGraph(root)
  for (const entry of entries) graph.add(entry)
  return createHash('sha256').update(JSON.stringify(graph.parts)).digest('hex')
}

class ModuleGraph {
  readonly #root: string
  readonly #parts = new Map<string, string>()

  constructor(root: string) {
    this.#root = root
  }

  get parts(): readonly (readonly [name: string, meaning: string])[] {
    return [...this.#parts].sort(([a], [b]) => (a < b ? -1 : 1))
  }

  add(path: string): void {
    const name = relative(this.#root, path).replaceAll(sep, '/')
    // The digests stand in a module that their own code imports.
    if (this.#parts.has(name) || name === 'ledger/src/projection/tables/code-digests.ts') return
    const parsed = parse(path)
    this.#parts.set(name, meaningOf(parsed.program))
    for (const { specifier, names } of importsOf(parsed)) this.#follow(path, specifier, names)
  }

  #follow(from: string, specifier: string, names: readonly string[]): void {
    if (specifier.startsWith('.')) return this.add(join(dirname(from), specifier))
    const [, own] = ownScope.exec(specifier) ?? []
    if (own === undefined) return this.#addPackage(from, specifier)
    const index = join(this.#root, own, 'src/index.ts')
    for (const name of names) this.add(definingModule(index, name))
  }

  /** What node has comes with the version of node, which stored bytes do not depend on. */
  #addPackage(from: string, specifier: string): void {
    if (specifier.startsWith('node:')) return
    const [home = ''] = relative(this.#root, from).split(sep)
    const { dependencies = {} } = JSON.parse(
      readFileSync(join(this.#root, home, 'package.json'), 'utf8'),
    ) as {
      dependencies?: Record<string, string>
    }
    const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
    this.#parts.set(specifier, dependencies[name] ?? '')
  }
}

function parse(path: string): ParseResult {
  const parsed = parseSync(path, readFileSync(path, 'utf8'))
  if (parsed.errors.length > 0) throw new Error(`${path} cannot be parsed: ${parsed.errors[0]?.message}`)
  return parsed
}

/** The modules that a module needs when it runs, and the names that it imports. */
function importsOf({
  module,
}: ParseResult): readonly { readonly specifier: string; readonly names: readonly string[] }[] {
  const imported = module.staticImports.flatMap(({ moduleRequest, entries }) => {
    const needed = entries.filter(({ isType }) => !isType)
    if (entries.length > 0 && needed.length === 0) return []
    return [{ specifier: moduleRequest.value, names: needed.map(({ importName }) => importName.name ?? '*') }]
  })
  const passedOn = module.staticExports.flatMap(({ entries }) =>
    entries.flatMap(({ moduleRequest, isType, importName }) =>
      moduleRequest && !isType ? [{ specifier: moduleRequest.value, names: [importName.name ?? '*'] }] : [],
    ),
  )
  return [...imported, ...passedOn]
}

/** The module that declares what an index passes on. Throws where none does. */
function definingModule(index: string, name: string): string {
  const found = findModule(index, name)
  if (found === undefined) throw new Error(`${index} does not export ${name}.`)
  return found
}

function findModule(path: string, name: string): string | undefined {
  if (!existsSync(path)) return undefined
  for (const { entries } of parse(path).module.staticExports) {
    for (const { moduleRequest, exportName, importName, isType } of entries) {
      if (isType) continue
      if (moduleRequest === null) {
        if (exportName.name === name) return path
        continue
      }
      const target = join(dirname(path), moduleRequest.value)
      if (exportName.name === name) return findModule(target, importName.name ?? name)
      const passesAllOn = exportName.name === null
      const found = passesAllOn ? findModule(target, name) : undefined
      if (found) return found
    }
  }
  return undefined
}
