import { posix } from 'node:path'
import { parseSync } from 'oxc-parser'
import { type Finding, lineAt, type SourceFile } from './finding.ts'

/** The packages that the sources of a package may import. A package without an entry may import all of them. */
const packageArrows: Readonly<Record<string, readonly string[]>> = {
  core: [],
  providers: ['core'],
  ledger: ['core'],
  replay: ['core', 'ledger'],
  tools: ['core'],
  server: ['core', 'ledger'],
  otel: ['core'],
}

/** The folders of core, from the ground up: a folder imports itself and those before it. */
const foldersOfCore = ['values', 'events', 'machine', 'ledger', 'models', 'tools', 'runtime', 'testing']

/** What tests of all packages share. */
const sharedByTests = /^scripts\/testing\/(any-text|bundle-program|effort|empty-ledger|seed)\.ts$/

/** Imports that break the arrows between packages, or between the folders of core; types count. */
export function arrows(file: SourceFile): readonly Finding[] {
  const home = /^packages\/([^/]+)\/(src|test)\//.exec(file.path)
  if (home === null || !file.path.endsWith('.ts')) return []
  const [, name = '', folder = ''] = home
  return readImports(file).flatMap(({ specifier, line }) => {
    const message = specifier.startsWith('.')
      ? checkPath(file.path, specifier, folder === 'src' ? `packages/${name}/src/` : `packages/${name}/`)
      : folder === 'src' && checkPackage(name, specifier)
    return message ? [{ rule: 'arrows', level: 'error', path: file.path, line, message } as const] : []
  })
}

function checkPath(from: string, specifier: string, root: string): string | undefined {
  const to = posix.join(posix.dirname(from), specifier)
  if (!to.startsWith(root)) {
    if (sharedByTests.test(to) && !root.endsWith('/src/')) return undefined
    return `${specifier} leaves ${root}. Import what the other package exports.`
  }
  // The default host is bound in one file, which whoever needs a clock of the host imports.
  if (root !== 'packages/core/src/' || to.endsWith('/runtime/run/host.ts')) return undefined
  const [source, target] = [from, to].map((path) => foldersOfCore.indexOf(path.split('/')[3] ?? ''))
  return source === -1 || target === -1 || source === undefined || target === undefined || target <= source
    ? undefined
    : `${foldersOfCore[source]} may not import ${foldersOfCore[target]}.`
}

function checkPackage(name: string, specifier: string): string | undefined {
  const target = /^@tallystick\/([^/]+)/.exec(specifier)?.[1]
  const allowed = packageArrows[name]
  if (target === undefined || allowed === undefined || allowed.includes(target)) return undefined
  return `${name} may not import @tallystick/${target}; it may import ${allowed.join(', ') || 'none of ours'}.`
}

function readImports(file: SourceFile): readonly { readonly specifier: string; readonly line: number }[] {
  const { module } = parseSync(file.path, file.text)
  const found: { readonly value: string; readonly start: number }[] = []
  for (const { moduleRequest } of module.staticImports) found.push(moduleRequest)
  for (const { entries } of module.staticExports) {
    for (const { moduleRequest } of entries) if (moduleRequest) found.push(moduleRequest)
  }
  for (const match of file.text.matchAll(/\bimport\(\s*['"]([^'"]+)['"]/g)) {
    found.push({ value: match[1] ?? '', start: match.index })
  }
  return found.map(({ value, start }) => ({ specifier: value, line: lineAt(file.text, start) }))
}
