import { posix } from 'node:path'
import { parseSync } from 'oxc-parser'
import { type Finding, lineAt, type SourceFile } from './finding.ts'

/** The parts of core and what each may import beside itself: the picture in ARCHITECTURE.md, as data. */
const coreArrows: Readonly<Record<string, readonly string[]>> = {
  vocabulary: [],
  'errors.ts': ['vocabulary'],
  machine: ['vocabulary', 'errors.ts'],
  ports: ['vocabulary'],
  runtime: ['vocabulary', 'errors.ts', 'machine', 'ports'],
  testing: ['vocabulary', 'errors.ts', 'machine', 'ports', 'runtime', 'index.ts'],
  'index.ts': ['vocabulary', 'errors.ts', 'machine', 'ports', 'runtime'],
}

/** Which packages the sources of a package may import. What is not named here stands above all of them. */
const packageArrows: Readonly<Record<string, readonly string[]>> = {
  core: [],
  providers: ['core'],
  ledger: ['core'],
  tools: ['core'],
}

interface Import {
  readonly specifier: string
  readonly line: number
}

/** What the tests of every package share: how far a test run looks. */
const sharedByTests = 'scripts/testing/effort.ts'

/**
 * Every import of a package's sources follows the arrows. Works on resolved paths, so it also holds in nested
 * folders and for `import('…')` in types, which the linter's patterns do not see.
 */
export function arrows(file: SourceFile): readonly Finding[] {
  const home = /^(packages\/([^/]+)\/)(src|test)\//.exec(file.path)
  if (!home || !file.path.endsWith('.ts')) return []
  const [, root = '', name = '', folder = ''] = home
  return importsOf(file).flatMap(({ specifier, line }) => {
    const message = specifier.startsWith('.')
      ? wrongPath(file.path, specifier, folder === 'src' ? `${root}src/` : root)
      : folder === 'src' && wrongPackage(name, specifier)
    return message ? [{ rule: 'arrows', level: 'error', path: file.path, line, message } as const] : []
  })
}

function wrongPath(from: string, specifier: string, within: string): string | undefined {
  const to = posix.join(posix.dirname(from), specifier)
  if (to === sharedByTests && !within.endsWith('/src/')) return undefined
  if (!to.startsWith(within)) return `${specifier} leaves ${within}. Import what the other package exports.`
  const [source, target] = [corePart(from), corePart(to)]
  if (source === undefined || target === undefined || source === target) return undefined
  const allowed = coreArrows[source]
  if (!allowed)
    return `core/src/${source} has no place among the arrows. Give it one in scripts/tidy/arrows.ts.`
  if (allowed.includes(target)) return undefined
  return `${source} may not import ${target}; it may import ${allowed.join(', ') || 'nothing but itself'}.`
}

function wrongPackage(name: string, specifier: string): string | undefined {
  const target = /^@tallystick\/([^/]+)/.exec(specifier)?.[1]
  const allowed = packageArrows[name]
  if (target === undefined || allowed === undefined || allowed.includes(target)) return undefined
  return `${name} may not import @tallystick/${target}; it may import ${allowed.join(', ') || 'none of ours'}.`
}

/** The folder or file right below core's sources that a path is in. */
function corePart(path: string): string | undefined {
  return /^packages\/core\/src\/([^/]+)/.exec(path)?.[1]
}

function importsOf(file: SourceFile): readonly Import[] {
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
