import { posix } from 'node:path'
import { parseSync } from 'oxc-parser'
import { type Finding, lineAt, type SourceFile } from './finding.ts'
import { maxFiles, foldersOf, keptApart, packageArrows } from './layout.ts'

interface Import {
  readonly specifier: string
  readonly line: number
}

/** What the tests of every package share: random texts, one file of a program, how far a test run looks, with which seed. */
const sharedByTests = new Set([
  'scripts/testing/any-text.ts',
  'scripts/testing/bundle-program.ts',
  'scripts/testing/effort.ts',
  'scripts/testing/empty-ledger.ts',
  'scripts/testing/seed.ts',
])

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
  if (sharedByTests.has(to) && !within.endsWith('/src/')) return undefined
  if (!to.startsWith(within)) return `${specifier} leaves ${within}. Import what the other package exports.`
  return within.endsWith('/src/') ? wrongFolder(from, specifier, within) : undefined
}

/** What is wrong with an import between the folders of one package's sources; `undefined` where nothing is. */
function wrongFolder(from: string, specifier: string, sources: string): string | undefined {
  const [, name = ''] = from.split('/')
  const folders = foldersOf[name]
  const source = folderIn(from, sources)
  const target = folderIn(posix.join(posix.dirname(from), specifier), sources)
  if (folders === undefined || source === undefined || source === target) return undefined
  if (target === undefined) {
    return `${specifier} stands above all folders of ${name}. Import the file that declares the name.`
  }
  const missing = [source, target].find((folder) => !folders.includes(folder))
  if (missing !== undefined) {
    return `${name}/src/${missing} has no place among the folders. Give it one in scripts/tidy/layout.ts.`
  }
  const allowed = folders.slice(0, folders.indexOf(source)).filter((folder) => isNear(name, source, folder))
  if (allowed.includes(target)) return undefined
  return `${source} may not import ${target}; it may import ${allowed.join(', ') || 'nothing but itself'}.`
}

/** Whether a folder is among those that another one may import, where that is kept apart. */
function isNear(name: string, source: string, folder: string): boolean {
  const begins = (path: string, beginning: string): boolean =>
    path === beginning || path.startsWith(`${beginning}/`)
  const kept = Object.entries(keptApart[name] ?? {}).find(([apart]) => begins(source, apart))
  return kept === undefined || kept[1].some((beginning) => begins(folder, beginning))
}

function wrongPackage(name: string, specifier: string): string | undefined {
  const target = /^@tallystick\/([^/]+)/.exec(specifier)?.[1]
  const allowed = packageArrows[name]
  if (target === undefined || allowed === undefined || allowed.includes(target)) return undefined
  return `${name} may not import @tallystick/${target}; it may import ${allowed.join(', ') || 'none of ours'}.`
}

/** The folder below the sources that a file is in; `undefined` for a file right below them. */
function folderIn(path: string, within: string): string | undefined {
  const folder = posix.dirname(path.slice(within.length))
  return folder === '.' ? undefined : folder
}

function isSource({ path }: SourceFile): boolean {
  return /^packages\/[^/]+\/src\/.*\.ts$/.test(path)
}

/** Every folder of a package's sources fits a reader's head. */
export function crowdedFolders(files: readonly SourceFile[]): readonly Finding[] {
  const sources = files.filter(isSource)
  const folders = Map.groupBy(sources, ({ path }) => posix.dirname(path))
  return [...folders].flatMap(([path, { length }]) =>
    length <= maxFiles
      ? []
      : [
          {
            rule: 'folders',
            level: 'error',
            path,
            line: 1,
            message: `${length} files; at most ${maxFiles}.`,
          },
        ],
  )
}

/** No file of a package's sources is imported, directly or through others, by a file that it imports; types count. */
export function circles(files: readonly SourceFile[]): readonly Finding[] {
  const sources = files.filter(isSource)
  const imported = new Map(
    sources.map((file) => [
      file.path,
      importsOf(file).flatMap(({ specifier, line }) =>
        specifier.startsWith('.') ? [{ to: posix.join(posix.dirname(file.path), specifier), line }] : [],
      ),
    ]),
  )
  const closed = new Set<string>()
  const findings: Finding[] = []
  const walk = (path: string, above: readonly string[]): void => {
    for (const { to, line } of imported.get(path) ?? []) {
      const start = above.indexOf(to)
      if (start !== -1) {
        const circle = [...above.slice(start), to].map((each) => posix.basename(each)).join(' → ')
        findings.push({
          rule: 'circles',
          level: 'error',
          path,
          line,
          message: `imports go in a circle: ${circle}`,
        })
      } else if (!closed.has(to)) walk(to, [...above, to])
    }
    closed.add(path)
  }
  for (const path of imported.keys()) if (!closed.has(path)) walk(path, [path])
  return findings
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
