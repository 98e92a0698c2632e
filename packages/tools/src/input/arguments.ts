import type { JsonObject } from '@tallystick/core/vocabulary'
import { boundedText } from '../content/bounded-text.ts'
import { expectationAt, isOfTypes, kindOf } from './expectation.ts'
import type { InputIssue } from './input-issue.ts'

const maxLines = 8
const maxLineCharacters = 200
const maxValuesShown = 12

/**
 * Tells a model what is wrong with its input so that it can correct it: one line an issue, with the path, what was
 * expected and what kind of value was given. Bounded in lines and in their length.
 */
export function explainIssues(
  tool: { readonly name: string; readonly inputSchema: JsonObject },
  input: JsonObject,
  issues: readonly InputIssue[],
): string {
  const lines = new Set<string>()
  for (const issue of issues) {
    for (const line of linesOf(tool.inputSchema, input, issue))
      lines.add(boundedText(line, maxLineCharacters))
  }
  const shown = [...lines].slice(0, maxLines).map((line) => `- ${line}`)
  if (lines.size > maxLines) shown.push(`- and ${lines.size - maxLines} more`)
  return (
    `The input does not fit the schema of ${tool.name}. Nothing was run. ` +
    `Correct it and call the tool again:\n${shown.join('\n')}`
  )
}

function linesOf(schema: JsonObject, input: JsonObject, issue: InputIssue): readonly string[] {
  if (issue.unknownKeys)
    return issue.unknownKeys.map((key) => unknownKey(schema, input, [...issue.path, key]))
  const label = pathText(input, issue.path)
  const parentPath = issue.path.slice(0, -1)
  const key = issue.path.at(-1)
  const parent = valueAt(input, parentPath)
  const value = valueAt(input, issue.path)
  if (key !== undefined && holdsKeys(parent) && !Object.hasOwn(parent, key)) {
    return [`${label}: missing${expected(schema, issue.path, ', ')}`]
  }
  const allowed = expectationAt(schema, parentPath).keys
  if (key !== undefined && allowed && !allowed.includes(String(key)))
    return [unknownKey(schema, input, issue.path)]
  const { types, values } = expectationAt(schema, issue.path)
  if (types && !isOfTypes(value, types))
    return [`${label}:${expected(schema, issue.path)}, received ${kindOf(value)}`]
  if (values && !values.some((known) => known === value)) {
    return [`${label}:${expected(schema, issue.path)}, received another ${kindOf(value)}`]
  }
  return [`${label}: ${tidy(issue.message, label)}`]
}

function unknownKey(schema: JsonObject, input: JsonObject, path: readonly PropertyKey[]): string {
  const keys = expectationAt(schema, path.slice(0, -1)).keys
  const known = keys && keys.length > 0 ? `; the keys are ${keys.slice(0, maxValuesShown).join(', ')}` : ''
  return `${pathText(input, path)}: unknown key${known}`
}

function expected(schema: JsonObject, path: readonly PropertyKey[], lead = ' '): string {
  const { types, values } = expectationAt(schema, path)
  if (values && values.length > 0) {
    const shown = values.slice(0, maxValuesShown).map((value) => JSON.stringify(value))
    const more = values.length > maxValuesShown ? ', …' : ''
    return `${lead}expected ${values.length > 1 ? 'one of ' : ''}${shown.join(', ')}${more}`
  }
  return types && types.length > 0 ? `${lead}expected ${types.join(' or ')}` : ''
}

/** A validator's message without what the line says already: a category in front, or the path (arktype). */
function tidy(message: string, label: string): string {
  const withoutPath = message.startsWith(`${label} `) ? message.slice(label.length + 1) : message
  const bare = withoutPath.replace(/^Invalid (?:input|type|value|option): /, '')
  const text = bare === '' || bare === 'Invalid input' ? 'does not fit the schema' : bare
  return text.replaceAll(/\s+/g, ' ')
}

/** `items[2].name`; keys that are no plain words in quotes; the input itself as `input`. */
function pathText(input: JsonObject, path: readonly PropertyKey[]): string {
  let label = ''
  path.forEach((key, index) => {
    if (Array.isArray(valueAt(input, path.slice(0, index)))) label += `[${String(key)}]`
    else if (/^[\w$-]+$/.test(String(key))) label += `${label && '.'}${String(key)}`
    else label += `[${JSON.stringify(String(key))}]`
  })
  return label || 'input'
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input
  for (const key of path) value = holdsKeys(value) && Object.hasOwn(value, key) ? value[key] : undefined
  return value
}

function holdsKeys(value: unknown): value is Readonly<Record<PropertyKey, unknown>> {
  return typeof value === 'object' && value !== null
}
