import { getOwn, isJsonObject, type KnownSecrets } from '@tallystick/core/internal'
import type { Json, JsonObject, ResultPart } from '@tallystick/core/vocabulary'
import { file, image, text } from '../define/content.ts'
import { createSchemaParse } from '../define/schema.ts'
import { boundText } from '../define/text.ts'
import type { client } from './client-library.ts'
import { cleanLine, withoutSecrets } from './secrets.ts'

/** How much of a result is taken, and the secrets that are struck out of it. */
export interface ResultReading {
  /** Characters of text, over all of its parts. */
  readonly maxCharacters: number
  /** Characters of Base64 of images, sounds and files, over all of them. */
  readonly maxBinaryCharacters: number
  readonly secrets: KnownSecrets
}

const maxParts = 256

/** Turns a server's answer into parts of a result, within bounds, with the secrets of its configuration struck out. */
export async function toResultContent(
  result: client.CallToolResult,
  outputSchema: JsonObject | undefined,
  reading: ResultReading,
): Promise<readonly ResultPart[]> {
  const { structuredContent, isError } = result
  const parts = toParts(result.content, reading)
  if (structuredContent === undefined) {
    if (isError || outputSchema === undefined || parts.length > 0) return parts
    return [text('(The answer lacks the structured content that the server itself declares.)')]
  }
  const structured = JSON.stringify(structuredContent)
  // Libraries wrap texts in an object that holds nothing else, and give them as texts as well.
  const values = Object.values(Object(structuredContent) as object)
  const only: unknown = values.length === 1 ? values[0] : undefined
  const isShown = result.content.some(
    (block) => block.type === 'text' && (block.text === only || isSameJson(block.text, structured)),
  )
  // A whole number was rounded when the client library read it, and a model must not take it for an id.
  const own = JSON.stringify(structuredContent, (_name, value: unknown) => {
    const isRounded =
      value === Infinity || value === -Infinity || (Number.isInteger(value) && !Number.isSafeInteger(value))
    return isRounded ? `about ${String(value)} (rounded: numbers beyond 2^53 have to be sent as text)` : value
  })
  const shown = isShown ? parts : [...parts, ...toParts([{ type: 'text', text: own }], reading)]
  if (isError || outputSchema === undefined) return shown
  const parsed = await createSchemaParse(
    'the result',
    readCheckedSchema(outputSchema),
  )(structuredContent as JsonObject)
  if (parsed.ok) return shown
  const places = parsed.issues
    .slice(0, 3)
    .map(({ path, message }) => `${path.map(String).join('.')} ${message}`)
  const what = cleanLine(places.join('; '), 300)
  const fault = `(The answer does not fit the output schema that the server itself declares: ${what}.)`
  return [...shown, text(fault)]
}

/** Blocks of a message, of a result or of a prompt, as parts. */
export function toParts(
  blocks: readonly client.ContentBlock[],
  { secrets, maxCharacters, maxBinaryCharacters }: ResultReading,
): readonly ResultPart[] {
  let characters = maxCharacters
  let binary = maxBinaryCharacters
  const parts: ResultPart[] = []
  for (const block of blocks.slice(0, maxParts)) {
    const part = toPart(block)
    if (part.type === 'text') {
      const whole = cutWithout(secrets, part.text, characters)
      const leftOut = Math.max(0, part.text.length - Math.max(characters, 0))
      const kept = whole.slice(0, characters).replace(/[\ud800-\udbff]$/, '')
      const shown =
        leftOut > 0 ? `${kept}\n(${leftOut} characters were left out: ask for less, or for a part.)` : whole
      if (characters > 0) parts.push(text(shown.toWellFormed()))
      characters -= part.text.length
    } else if ('data' in part && part.data.length > binary) {
      parts.push(
        text(
          `(${part.mediaType} of ${part.data.length} characters of Base64 was left out: it is too large.)`,
        ),
      )
    } else {
      if ('data' in part) binary -= part.data.length
      parts.push(part)
    }
  }
  if (blocks.length > maxParts) parts.push(text(`(${blocks.length - maxParts} more parts were left out.)`))
  return parts.filter((part) => part.type !== 'text' || part.text !== '')
}

function toPart(block: client.ContentBlock): ResultPart {
  switch (block.type) {
    case 'text':
      return text(block.text)
    case 'image':
    case 'audio':
      return toBinaryPart(block.mimeType, block.data)
    case 'resource_link': {
      const { uri, name, mimeType, description } = block
      const kind = mimeType === undefined ? '' : ` (${cleanLine(mimeType, 100)})`
      const suffix = description === undefined ? '' : `: ${cleanLine(description, 1_000)}`
      return text(`Resource ${cleanLine(name, 200)}${kind} at ${cleanLine(uri, 2_000)}${suffix}`)
    }
    case 'resource':
      return toResourcePart(block.resource)
    default:
      // A newer protocol may know more kinds.
      return text(boundText(JSON.stringify(block), 10_000))
  }
}

export function toResourcePart(
  resource: client.TextResourceContents | client.BlobResourceContents,
): ResultPart {
  if ('text' in resource) return text(resource.text)
  return toBinaryPart(resource.mimeType ?? 'application/octet-stream', resource.blob)
}

function toBinaryPart(mediaType: string, data: string): ResultPart {
  try {
    return mediaType.startsWith('image/') ? image({ mediaType, data }) : file({ mediaType, data })
  } catch {
    return text(`(What should be ${cleanLine(mediaType, 100)} was left out: it is not Base64.)`)
  }
}

function isSameJson(given: string, json: string): boolean {
  if (given === json) return true
  try {
    return given.length < 1_000_000 && JSON.stringify(JSON.parse(given)) === json
  } catch {
    return false
  }
}

/**
 * The beginning of a text without secrets, `characters` of it at least where it is that long and nothing was struck out.
 * Struck out before it is cut, since a cut secret is not recognised; and only what may be shown is looked at.
 */
function cutWithout(secrets: KnownSecrets, whole: string, characters: number): string {
  const near = whole.slice(0, Math.max(0, characters) + secrets.maxFormLength)
  const struck = withoutSecrets(near, secrets)
  if (near.length === whole.length) return struck
  // The last characters that were looked at may be the beginning of a secret.
  return struck.slice(0, Math.max(0, struck.length - secrets.maxFormLength))
}

/** Levels of a schema that are checked; what is below them is the server's to check. */
const maxDepth = 32

/** The part of a keyword that is checked; `undefined` if none is. */
type Checked = (value: Json, depth: number, schema: JsonObject) => Json | undefined

const takeNumber: Checked = (value) => (typeof value === 'number' ? value : undefined)
const takeTexts: Checked = (value) => (isTexts(value) ? value : undefined)
const takeList: Checked = (value) => (Array.isArray(value) ? value : undefined)
const listBelowEach: Checked = (value, depth) =>
  Array.isArray(value) ? value.map((each: Json) => listBelow(each, depth)) : undefined

/**
 * The keywords that are checked: they take time in proportion to schema and value, and where less is checked below them,
 * they refuse less. Each is taken in the form that it has today; older drafts have others.
 */
const keywords: Readonly<Record<string, Checked>> = {
  type: (value) => (typeof value === 'string' || isTexts(value) ? value : undefined),
  enum: takeList,
  const: (value) => value,
  required: takeTexts,
  minimum: takeNumber,
  maximum: takeNumber,
  exclusiveMinimum: takeNumber,
  exclusiveMaximum: takeNumber,
  multipleOf: takeNumber,
  minLength: takeNumber,
  maxLength: takeNumber,
  minItems: takeNumber,
  maxItems: takeNumber,
  minProperties: takeNumber,
  maxProperties: takeNumber,
  allOf: listBelowEach,
  anyOf: listBelowEach,
  prefixItems: listBelowEach,
  items: (value, depth) => (Array.isArray(value) ? undefined : listBelow(value, depth)),
  properties: (value, depth) =>
    isJsonObject(value)
      ? Object.fromEntries(Object.entries(value).map(([name, each]) => [name, listBelow(each, depth)]))
      : undefined,
  additionalProperties: (value, depth, schema) =>
    schema['patternProperties'] === undefined ? listBelow(value, depth) : undefined,
}

/**
 * Returns the part of a server's schema that is checked here: less than the schema says, never more, and nothing that a
 * hostile one could make expensive. Patterns (which may backtrack), references (which may multiply), `not` and what depends
 * on other keywords are left to the server. So a usual mistake is explained without asking it.
 */
export function readCheckedSchema(schema: JsonObject, depth = 0): JsonObject {
  const checked: Record<string, Json> = {}
  for (const [keyword, value] of Object.entries(schema)) {
    const part = getOwn(keywords, keyword)?.(value, depth, schema)
    if (part !== undefined) checked[keyword] = part
  }
  // Only one of them may fit, but with less checked more than one may seem to.
  const { oneOf } = schema
  const choice =
    oneOf !== undefined && checked['anyOf'] === undefined ? listBelowEach(oneOf, depth, schema) : undefined
  return choice === undefined ? checked : { ...checked, anyOf: choice }
}

function listBelow(schema: Json, depth: number): Json {
  if (typeof schema === 'boolean') return schema
  return isJsonObject(schema) && depth < maxDepth ? readCheckedSchema(schema, depth + 1) : true
}

function isTexts(value: Json): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
}
