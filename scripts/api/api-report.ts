// Own code, not @microsoft/api-extractor: 7.60.1 brings 43 packages (50 MB) and a second compiler, TypeScript 6.0, takes four
// minutes instead of six seconds, and fails for 7 of 35 entries ("Unable to follow symbol" for globals such as URL).
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseSync, type Program } from 'oxc-parser'

interface Manifest {
  readonly name: string
  readonly exports: Readonly<Record<string, string>>
}

/** An exported name, and the text of what declares it. */
interface Exported {
  readonly name: string
  readonly declaration: string
}

/**
 * The public surface of a package as text: for each entry of its manifest every exported name, with its declaration as the
 * compiler writes it, without comments and formatting. `folder` is that of the package; its declaration files are built.
 */
export function apiReport(folder: string): string {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
  const entries = Object.entries(manifest.exports)
    // What one package of this repository hands the others is not public.
    .filter(([entry, source]) => source.endsWith('.ts') && entry !== './internal')
    .map(([entry, source]) => ({
      entry,
      file: join(folder, source.replace('/src/', '/dist/').replace(/\.ts$/, '.d.ts')),
    }))
  const sections = entries.map(({ entry, file }) => {
    const exported = listExports(file).toSorted((a, b) => (a.name < b.name ? -1 : 1))
    const lines = [...new Set(exported.map(({ name, declaration }) => `${name}: ${declaration}`))]
    return [
      `## ${manifest.name}${entry.slice(1)} (${new Set(exported.map(({ name }) => name)).size} names)`,
      '',
      ...lines,
      '',
    ].join('\n')
  })
  return [
    `Written by \`pnpm api\`: what ${manifest.name} exports. A change here is a change for its users.`,
    '',
    ...sections,
  ].join('\n')
}

function listExports(file: string): readonly Exported[] {
  const text = readFileSync(file, 'utf8')
  const { program } = parseSync(file, text)
  return program.body.flatMap((node): readonly Exported[] => {
    if (node.type === 'ExportAllDeclaration') {
      const all = listExports(declarationFile(file, node.source.value))
      const name = node.exported && 'name' in node.exported ? node.exported.name : undefined
      if (name === undefined) return all
      return [
        {
          name,
          declaration: `namespace { ${all
            .map((each) => each.name)
            .toSorted()
            .join(', ')} }`,
        },
      ]
    }
    if (node.type !== 'ExportNamedDeclaration') return []
    if (node.declaration) return declared(text, program).filter(({ name }) => namesIn(node).includes(name))
    const { source } = node
    if (source && !source.value.startsWith('.')) {
      return node.specifiers.map(({ exported }) => ({
        name: readName(exported),
        declaration: `of ${source.value}`,
      }))
    }
    const known = source ? listExports(declarationFile(file, source.value)) : declared(text, program)
    return node.specifiers.flatMap((specifier) => {
      const local = readName(specifier.local)
      const name = readName(specifier.exported)
      return known.filter((each) => each.name === local).map(({ declaration }) => ({ name, declaration }))
    })
  })
}

/** Every declaration of a file, exported or not. */
function declared(text: string, program: Program): readonly Exported[] {
  return program.body.flatMap((node) => {
    const declaration = node.type === 'ExportNamedDeclaration' ? node.declaration : node
    if (!declaration) return []
    const source = plain(text.slice(declaration.start, declaration.end))
    return namesIn(node).map((name) => ({ name, declaration: source }))
  })
}

function namesIn(node: Program['body'][number]): readonly string[] {
  const declaration = node.type === 'ExportNamedDeclaration' ? node.declaration : node
  if (!declaration) return []
  if (declaration.type === 'VariableDeclaration') {
    return declaration.declarations.flatMap(({ id }) => (id.type === 'Identifier' ? [id.name] : []))
  }
  return 'id' in declaration && declaration.id?.type === 'Identifier' ? [declaration.id.name] : []
}

function readName(node: { readonly type: string; readonly name?: string; readonly value?: unknown }): string {
  return node.name ?? String(node.value)
}

/** Comments go and white space is one blank: only what the compiler sees counts. */
function plain(source: string): string {
  const { comments } = parseSync('declaration.d.ts', source)
  let text = ''
  let end = 0
  for (const comment of comments) {
    text += source.slice(end, comment.start)
    end = comment.end
  }
  return `${text}${source.slice(end)}`.replaceAll(/\s+/g, ' ').trim()
}

function declarationFile(from: string, specifier: string): string {
  return join(dirname(from), specifier.replace(/\.[jt]s$/, '.d.ts'))
}
