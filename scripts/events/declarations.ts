// The types of the vocabulary as their sources declare them: fields, types, docstrings.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  parseSync,
  Visitor,
  type ParseResult,
  type TSInterfaceDeclaration,
  type TSSignature,
  type TSTypeAliasDeclaration,
  type VariableDeclaration,
} from 'oxc-parser'

const core = join(import.meta.dirname, '../../packages/core/src')

/** A field of an object type. `type` is its TypeScript, in one line, without `readonly`. */
export interface Field {
  readonly name: string
  readonly type: string
  readonly optional: boolean
  readonly doc: string
  /** The names of types in `type`. */
  readonly refers: readonly string[]
  /** The fields, if the type is an object that is written out. */
  readonly fields?: readonly Field[]
  /** The types whose fields it has beside those that are written out. */
  readonly heads?: readonly string[]
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
  const files = globSync('{values,events}/*.ts', { cwd: core }).toSorted()
  const declarations = files.flatMap((file) => declarationsIn(readFileSync(join(core, file), 'utf8')))
  return new Map(declarations.map((declaration) => [declaration.name, declaration]))
}

/** Returns the exported types of a TypeScript source. */
function declarationsIn(source: string): readonly Declaration[] {
  return new SourceReader(source).declarations()
}

class SourceReader {
  readonly #source: string
  readonly #parsed: ParseResult
  /** Docstrings, by the place where they end. */
  readonly #docs: ReadonlyMap<number, string>
  /** Lists of words, by the name of their constant. */
  readonly #lists = new Map<string, { readonly words: readonly string[]; readonly doc: string }>()

  constructor(source: string) {
    this.#source = source
    this.#parsed = parseSync('source.ts', source)
    this.#docs = new Map(
      this.#parsed.comments
        .filter(({ type, value }) => type === 'Block' && value.startsWith('*'))
        .map(({ end, value }) => [end, plainDoc(value)]),
    )
  }

  declarations(): readonly Declaration[] {
    return this.#parsed.program.body.flatMap((node): readonly Declaration[] => {
      if (node.type !== 'ExportNamedDeclaration' || !node.declaration) return []
      const { declaration } = node
      const doc = this.#docBefore(node.start)
      if (declaration.type === 'VariableDeclaration') this.#keepList(declaration, doc)
      if (declaration.type === 'TSInterfaceDeclaration') return [this.#ofInterface(declaration, doc)]
      if (declaration.type === 'TSTypeAliasDeclaration') return [this.#ofAlias(declaration, doc)]
      return []
    })
  }

  #keepList({ declarations: [list] }: VariableDeclaration, doc: string): void {
    if (list?.id.type !== 'Identifier' || !list.init) return
    const words = stringsIn(this.#source.slice(list.init.start, list.init.end))
    this.#lists.set(list.id.name, { words, doc })
  }

  #ofInterface({ id, body, extends: heads }: TSInterfaceDeclaration, doc: string): Declaration {
    const fields = body.body.flatMap((member) => this.#fieldOf(member))
    const names = heads.map(({ start, end }) => this.#source.slice(start, end))
    const refers = [...names.flatMap((name) => namesIn(name)), ...fields.flatMap((field) => field.refers)]
    return { name: id.name, doc, fields, refers, ...(names.length > 0 && { type: names.join(' & ') }) }
  }

  #ofAlias({ id: { name }, typeAnnotation }: TSTypeAliasDeclaration, ownDoc: string): Declaration {
    const type = typeText(this.#source, typeAnnotation)
    const list = this.#lists.get(/typeof (\w+)/.exec(type)?.[1] ?? '')
    const doc = ownDoc || (list?.doc ?? '')
    const refers = namesIn(type)
    if (typeAnnotation.type === 'TSTypeLiteral') {
      return { name, doc, fields: typeAnnotation.members.flatMap((member) => this.#fieldOf(member)), refers }
    }
    if (list && /^\(typeof \w+\)\[number\]$/.test(type)) return { name, doc, words: list.words, refers: [] }
    return { name, doc, type, refers }
  }

  #fieldOf(member: TSSignature): readonly Field[] {
    if (member.type !== 'TSPropertySignature' || member.key.type !== 'Identifier') return []
    const declared = member.typeAnnotation?.typeAnnotation
    if (declared === undefined) return []
    const type = typeText(this.#source, declared)
    const doc = this.#docBefore(member.start)
    const field = { name: member.key.name, type, optional: member.optional, doc, refers: namesIn(type) }
    const types = declared.type === 'TSIntersectionType' ? declared.types : [declared]
    const literals = types.filter((one) => one.type === 'TSTypeLiteral')
    if (literals.length === 0) return [field]
    const fields = literals.flatMap(({ members }) => members.flatMap((inner) => this.#fieldOf(inner)))
    const others = types.filter((one) => one.type !== 'TSTypeLiteral')
    const heads = others.map(({ start, end }) => this.#source.slice(start, end))
    return [{ ...field, fields, ...(heads.length > 0 && { heads }) }]
  }

  #docBefore(start: number): string {
    return this.#docs.get(this.#source.slice(0, start).trimEnd().length) ?? ''
  }
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
