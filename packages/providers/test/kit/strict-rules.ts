import type { Loose } from './loose.ts'

const refused = [
  'allOf',
  'oneOf',
  'not',
  'if',
  'then',
  'else',
  'contains',
  'dependentRequired',
  'dependentSchemas',
  'patternProperties',
  'propertyNames',
  'prefixItems',
  'minProperties',
  'maxProperties',
  'uniqueItems',
  'unevaluatedItems',
  'unevaluatedProperties',
  'contentEncoding',
  'contentMediaType',
  '$anchor',
  '$dynamicRef',
  'default',
  'examples',
  '$schema',
]
const formats = ['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid']

/** What OpenAI refuses in a schema that claims to be strict, written from its documentation. */
export function brokenSchema(schema: Loose): string[] {
  const broken: string[] = []
  if (schema.type !== 'object') broken.push('the root is an object')
  walk(schema, '#', broken)
  return broken
}

function walk(node: Loose, at: string, broken: string[]): void {
  const rule = (holds: boolean, name: string): void => void (holds || broken.push(`${at}: ${name}`))
  rule(typeof node === 'object' && node !== null, 'is a schema')
  for (const keyword of refused) rule(!(keyword in node), `${keyword} is not permitted`)
  for (const all of [node.$defs, node.definitions]) {
    for (const [key, one] of Object.entries(all ?? {})) walk(one, `${at}/${key}`, broken)
  }
  if (node.$ref) checkReference(node, rule)
  else checkSchema(node, at, broken, rule)
}

type Rule = (holds: boolean, name: string) => void

function checkReference(node: Loose, rule: Rule): void {
  const { $ref, $defs: _, definitions: __, ...rest } = node
  rule(Object.keys(rest).length === 0, '$ref cannot have keywords beside it')
  rule($ref.startsWith('#'), 'refers to this document')
}

function checkSchema(node: Loose, at: string, broken: string[], rule: Rule): void {
  rule(
    ['type', 'anyOf', 'enum', 'const'].some((keyword) => keyword in node),
    'schema must have a type',
  )
  if (node.format) rule(formats.includes(node.format), `format ${node.format}`)
  const types = [node.type].flat()
  const names = Object.keys(node.properties ?? {})
  const required: string[] = node.required ?? []
  if (types.includes('object')) {
    rule(node.additionalProperties === false, 'additionalProperties is false')
    rule(required.toSorted().join() === names.toSorted().join(), 'all properties are required, and no others')
  }
  if (types.includes('array')) rule(!!node.items, 'array schema is missing items')
  for (const name of names) walk(node.properties[name], `${at}/${name}`, broken)
  if (node.items) walk(node.items, `${at}/items`, broken)
  for (const [index, choice] of (node.anyOf ?? []).entries()) walk(choice, `${at}/anyOf/${index}`, broken)
}
