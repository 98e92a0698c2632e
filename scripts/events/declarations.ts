// The types of the vocabulary as their sources declare them: fields, types, docstrings.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync, Visitor, type TSSignature, type TSType } from 'oxc-parser'

const vocabulary = join(import.meta.dirname, '../../packages/core/src/vocabulary')

/** A field of an object type. `type` is its TypeScript, in one line, without `readonly`. */
export interface Field {
  readonly name: string
  readonly type: string
  readonly optional: boolean
  readonly doc: string
  /** The names of types in `type`. */
  readonly refers: readonly string[]
  /** Where the type is an object that is written out: its fields. */
  readonly fields?: readonly Field[]
}

/** A declared type: an object with fields, or one of the given words, or another type as text. */
export interface Declaration {
  readonly name: string
  readonly doc: string
  readonly fields?: readonly Field[]
  readonly words?: readonly string[]
  readonly type?: string
  readonly refers: readonly string[]
}

/** Returns every exported type of the vocabulary by its name. */
export function vocabularyTypes(): ReadonlyMap<string, Declaration> {
  const files = globSync('**/*.ts', { cwd: vocabulary }).toSorted()
  const declarations = files.flatMap((file) => declarationsIn(readFileSync(join(vocabulary, file), 'utf8')))
  return new Map(declarations.map((declaration) => [declaration.name, declaration]))
}

/** Returns the exported types of a TypeScript source. */
export function declarationsIn(source: string): readonly Declaration[] {
  const { program, comments } = parseSync('source.ts', source)
  const docs = new Map(
    comments
      .filter(({ type, value }) => type === 'Block' && value.startsWith('*'))
      .map(({ end, value }) => [end, plainDoc(value)]),
  )
  const docBefore = (start: number): string => docs.get(source.slice(0, start).trimEnd().length) ?? ''
  const found: Declaration[] = []
  const words = new Map<string, readonly string[]>()

  const fieldOf = (member: TSSignature): readonly Field[] => {
    if (member.type !== 'TSPropertySignature' || member.key.type !== 'Identifier') return []
    const type = member.typeAnnotation?.typeAnnotation
    if (type === undefined) return []
    const text = typeText(source, type)
    return [
      {
        name: member.key.name,
        type: text,
        optional: member.optional,
        doc: docBefore(member.start),
        refers: namesIn(text),
        ...(type.type === 'TSTypeLiteral' && { fields: type.members.flatMap(fieldOf) }),
      },
    ]
  }
  const typeOf = (name: string, doc: string, type: TSType): Declaration => {
    if (type.type === 'TSTypeLiteral') {
      return { name, doc, fields: type.members.flatMap(fieldOf), refers: namesIn(typeText(source, type)) }
    }
    const text = typeText(source, type)
    const list = /^\(typeof (\w+)\)\[number\]$/.exec(text)?.[1]
    const listed = list === undefined ? undefined : words.get(list)
    return listed
      ? { name, doc, words: listed, refers: [] }
      : { name, doc, type: text, refers: namesIn(text) }
  }

  for (const node of program.body) {
    if (node.type !== 'ExportNamedDeclaration' || !node.declaration) continue
    const { declaration } = node
    const doc = docBefore(node.start)
    if (declaration.type === 'VariableDeclaration') {
      const list = declaration.declarations[0]
      if (list?.id.type === 'Identifier' && list.init) {
        words.set(list.id.name, stringsIn(source.slice(list.init.start, list.init.end)))
        if (doc !== '') found.push({ name: list.id.name, doc, refers: [] })
      }
    } else if (declaration.type === 'TSInterfaceDeclaration') {
      const fields = declaration.body.body.flatMap(fieldOf)
      const heads = declaration.extends.map((head) => source.slice(head.start, head.end))
      const refers = [...heads.flatMap(namesIn), ...fields.flatMap((field) => field.refers)]
      const type = heads.length > 0 ? heads.join(' & ') : undefined
      found.push({ name: declaration.id.name, doc, fields, refers, ...(type !== undefined && { type }) })
    } else if (declaration.type === 'TSTypeAliasDeclaration') {
      const { name } = declaration.id
      const list = /typeof (\w+)/.exec(typeText(source, declaration.typeAnnotation))?.[1]
      const listDoc = found.find((each) => each.name === list)?.doc ?? ''
      found.push(typeOf(name, doc || listDoc, declaration.typeAnnotation))
    }
  }
  return found
}

/** The text of a docstring in one line, without its stars. */
function plainDoc(comment: string): string {
  return comment
    .replaceAll(/^\s*\*+ ?/gm, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
}

/** A type in one line, without comments and `readonly`. */
function typeText(source: string, { start, end }: { readonly start: number; readonly end: number }): string {
  return source
    .slice(start, end)
    .replaceAll(/\/\*.*?\*\//gs, '')
    .replaceAll(/\breadonly /g, '')
    .replaceAll(/(?<=[\w\])'}>])\s*\n\s*(?=\w)/g, '; ')
    .replaceAll(/\s+/g, ' ')
    .replace(/^\| /, '')
    .trim()
}

function namesIn(type: string): readonly string[] {
  const names = new Set<string>()
  const { program } = parseSync('type.ts', `type T = ${type}`)
  new Visitor({
    TSTypeReference({ typeName }) {
      if (typeName.type === 'Identifier') names.add(typeName.name)
    },
  }).visit(program)
  return [...names]
}

function stringsIn(text: string): readonly string[] {
  return [...text.matchAll(/'([^']*)'/g)].map(([, word = '']) => word)
}
