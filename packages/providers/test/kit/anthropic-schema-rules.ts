import type { Loose } from './loose.ts'

const known = [
  'type',
  'title',
  'description',
  'enum',
  'const',
  'format',
  'minItems',
  'items',
  'properties',
  'required',
  'additionalProperties',
  'anyOf',
  '$ref',
  '$defs',
  'definitions',
]
const types = ['object', 'array', 'string', 'integer', 'number', 'boolean', 'null']
const formats = ['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid']

/** What Anthropic refuses in a schema that it has to compile, and what it counts, written from its documentation. */
export function brokenSchema(schema: Loose): { broken: string[]; optional: number; unions: number } {
  const found: Found = { broken: [], optional: 0, unions: 0, root: schema }
  if (schema?.type !== 'object') found.broken.push('the root is an object')
  walk(schema, '#', found, [])
  for (const keyword of ['$defs', 'definitions']) {
    for (const [name, one] of Object.entries(schema?.[keyword] ?? {})) walk(one, name, found, [])
  }
  return found
}

interface Found {
  readonly broken: string[]
  optional: number
  unions: number
  readonly root: Loose
}

type Rule = (holds: boolean, name: string) => void

function walk(node: Loose, at: string, found: Found, through: readonly string[]): void {
  const rule: Rule = (holds, name) => void (holds || found.broken.push(`${at}: ${name}`))
  rule(typeof node === 'object' && node !== null && !Array.isArray(node), 'is a schema')
  for (const keyword of Object.keys(node)) rule(known.includes(keyword), `${keyword} is not supported`)
  if (node.$ref) return follow(node.$ref, at, found, through)
  const named: string[] = [node.type ?? []].flat()
  if (named.length > 1 || node.anyOf) found.unions += 1
  checkValues(node, named, rule)
  if (named.includes('object')) checkObject(node, found, rule)
  if (named.includes('array')) rule(!!node.items, 'array schema is missing items')
  for (const [name, one] of schemasIn(node)) walk(one, `${at}/${name}`, found, through)
}

function schemasIn({ properties = {}, anyOf = [], items }: Loose): [string, Loose][] {
  return [...Object.entries(properties), ...Object.entries(anyOf), ...Object.entries(items ? { items } : {})]
}

function checkValues(node: Loose, named: readonly string[], rule: Rule): void {
  rule(
    ['type', 'anyOf', 'enum', 'const'].some((keyword) => keyword in node),
    'schema must have a type',
  )
  rule(
    named.every((type) => types.includes(type)),
    `type ${named.join()}`,
  )
  if (node.format) rule(formats.includes(node.format), `format ${node.format}`)
  if ('minItems' in node) rule(node.minItems === 0 || node.minItems === 1, 'minItems')
  for (const one of [...(node.enum ?? []), ...('const' in node ? [node.const] : [])])
    rule(typeof one !== 'object' || one === null, 'complex values in enum')
}

function checkObject(node: Loose, found: Found, rule: Rule): void {
  rule(node.additionalProperties === false, 'additionalProperties is false')
  const required: string[] = node.required ?? []
  const names = Object.keys(node.properties ?? {})
  rule(
    required.every((name) => names.includes(name)),
    'what is required has a schema',
  )
  found.optional += names.filter((name) => !required.includes(name)).length
}

/** A reference has to lead somewhere, and never back. The schema that it leads to is counted in its own place. */
function follow(reference: string, at: string, found: Found, through: readonly string[]): void {
  const [document, keyword = '', name = ''] = reference.split('/')
  const target = document === '#' ? found.root[keyword]?.[name] : undefined
  if (target === undefined) found.broken.push(`${at}: ${reference} is not a definition`)
  else if (through.includes(reference)) found.broken.push(`${at}: recursive schemas are not supported`)
  else walk(target, at, { ...found, optional: 0, unions: 0 }, [...through, reference])
}
