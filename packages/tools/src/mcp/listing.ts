import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { KnownSecrets } from '@tallystick/core/internal'
import { computeDigest, type Json, type JsonObject } from '@tallystick/core/vocabulary'
import { toJson } from '../define/content.ts'
import type { client } from './client-library.ts'
import { cleanLine, cleanText, withoutSecrets } from './secrets.ts'

const maxDescriptionCharacters = 8_000
const maxSchemaCharacters = 100_000
const maxNameCharacters = 256
/** Tools of one server that are taken. No model chooses among more. */
const maxTools = 1_000

/** A server's hints about its own tools. Believed only of a server that the user trusts. */
export type Annotations = NonNullable<client.Tool['annotations']>

/** A tool as a server lists it now, cleaned. */
export interface ListedTool {
  /** Its name at the server. */
  readonly name: string
  /** The name that models call it by. */
  readonly exposedName: string
  readonly description: string
  readonly inputSchema: JsonObject
  readonly outputSchema?: JsonObject
  readonly annotations: Annotations
  /** SHA-256 over what models are shown of it: another one means that the tool has changed. */
  readonly digest: string
  /** As the server listed it, for the client library. */
  readonly raw: client.Tool
}

/** The tools of a server, and what was wrong with those that are left out. */
export interface Listing {
  readonly tools: ReadonlyMap<string, ListedTool>
  readonly faults: readonly string[]
}

/** Takes over what a server lists. A tool that cannot be offered is left out, and named with the reason. */
export function readListing(server: string, tools: readonly client.Tool[], secrets: KnownSecrets): Listing {
  const listed = new Map<string, ListedTool>()
  const exposed = new Set<string>()
  const faults: string[] = []
  if (tools.length > maxTools) {
    faults.push(`lists ${tools.length} tools; the first ${maxTools} are taken`)
  }
  for (const raw of tools.slice(0, maxTools)) {
    const shown = JSON.stringify(cleanLine(raw.name, 64))
    const tool = readListedTool(server, raw, secrets)
    if (typeof tool === 'string') faults.push(`the tool ${shown} is left out: ${tool}`)
    else if (exposed.has(tool.exposedName)) faults.push(`the tool ${shown} is left out: it is listed twice`)
    else {
      exposed.add(tool.exposedName)
      listed.set(tool.name, tool)
    }
  }
  return { tools: listed, faults: faults.slice(0, 20) }
}

function readListedTool(server: string, raw: client.Tool, secrets: KnownSecrets): ListedTool | string {
  const { name, annotations = {}, _meta: meta } = raw
  const fault = meta?.[faultField]
  if (typeof fault === 'string') return fault
  if (name === '' || name.length > maxNameCharacters) return `its name has ${name.length} characters`
  const inputSchema = readSchema(raw.inputSchema, secrets)
  if (typeof inputSchema === 'string') return `its input schema ${inputSchema}`
  const outputSchema = raw.outputSchema === undefined ? undefined : readSchema(raw.outputSchema, secrets)
  const title = raw.title ?? annotations.title ?? ''
  const given = showText(raw.description?.trim() || title, secrets)
  const description = given === '' ? `The tool ${cleanLine(name, 64)} of ${cleanLine(server, 64)}.` : given
  return {
    name,
    exposedName: toExposedName(server, name),
    description,
    inputSchema,
    ...(typeof outputSchema === 'object' && { outputSchema }),
    annotations,
    digest: computeDigest({ description, inputSchema }),
    raw,
  }
}

/** A server's own words are recorded with every run, and may hold secrets of its configuration. */
function showText(text: string, secrets: KnownSecrets): string {
  return cleanText(
    withoutSecrets(text.slice(0, 2 * maxDescriptionCharacters), secrets),
    maxDescriptionCharacters,
  )
}

function readSchema(raw: unknown, secrets: KnownSecrets): JsonObject | string {
  try {
    const json = toJson(raw)
    const length = JSON.stringify(json).length
    if (length > maxSchemaCharacters) return `has ${length} characters; ${maxSchemaCharacters} are taken`
    const { $schema: _dialect, ...schema } = withCleanTexts(json, secrets) as JsonObject & {
      readonly $schema?: Json
    }
    if (schema['type'] !== 'object') return 'is not of type object'
    return schema
  } catch (error) {
    return `is not JSON (${error instanceof Error ? error.message : 'it cannot be read'})`
  }
}

const texts: ReadonlySet<string> = new Set(['description', 'title', '$comment'])

/** Descriptions within a schema are read by the model, too. */
function withCleanTexts(value: Json, secrets: KnownSecrets): Json {
  if (Array.isArray(value)) return value.map((each) => withCleanTexts(each, secrets))
  if (typeof value === 'string') return withoutSecrets(value, secrets)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      key,
      texts.has(key) && typeof each === 'string' ? showText(each, secrets) : withCleanTexts(each, secrets),
    ]),
  )
}

/** The changes by a server's new list of tools, by the names that models know. */
export interface ToolChanges {
  readonly server: string
  readonly added: readonly string[]
  readonly removed: readonly string[]
  /** Their description or input schema is another one. */
  readonly changed: readonly string[]
}

/** The difference between two lists of one server; `undefined` if they are equal. */
export function compareListings(server: string, before: Listing, after: Listing): ToolChanges | undefined {
  const names = (listing: Listing, other: Listing): readonly string[] =>
    [...listing.tools.values()].flatMap((tool) => (other.tools.has(tool.name) ? [] : [tool.exposedName]))
  const changed = [...after.tools.values()].flatMap((tool) => {
    const old = before.tools.get(tool.name)
    return old !== undefined && old.digest !== tool.digest ? [tool.exposedName] : []
  })
  const changes = { server, added: names(after, before), removed: names(before, after), changed }
  return changes.added.length + changes.removed.length + changed.length > 0 ? changes : undefined
}

/** The longest name that every model's API takes. */
const maxLength = 64
const hashLength = 8
/** Characters of a server's name that stay where the whole is too long: the tool's own name says more. */
const maxServerLength = 20

/**
 * The name that models call a server's tool by: `mcp__server__tool`, of letters, digits, `_` and `-`, 64 characters at
 * most. Where that would lose something (a character, the end of a name, where the server's name ends), it is cut and ends
 * in eight digits of a hash over both names, so that no two tools share a name. It is the same in every process, and says
 * nothing about the way back: `origin` of the tool does.
 */
export function toExposedName(server: string, tool: string): string {
  const plain = `mcp__${server}__${tool}`
  const isPlain = /^[\w-]+$/.test(server) && /^[\w-]+$/.test(tool)
  // No other tool can have it: its first `__` ends the server's name, and it ends in no hash.
  const isLossless =
    isPlain && !server.includes('__') && !server.endsWith('_') && !/_[0-9a-f]{8}$/.test(`_${tool}`)
  if (plain.length <= maxLength && isLossless) return plain
  const toReadable = (name: string, length: number): string =>
    name.slice(0, length).replaceAll(/[^\w-]/g, '_')
  const readable = `mcp__${toReadable(server, maxServerLength)}__${toReadable(tool, maxLength)}`
  const hash = computeDigest([server, tool]).slice(0, hashLength)
  return `${readable.slice(0, maxLength - hashLength - 1)}_${hash}`
}

/** The field of a listed tool that says why it is left out; such a tool is listed for its name alone. */
const faultField = 'tallystick/fault'

type Message = Parameters<NonNullable<client.Transport['onmessage']>>[0]
type Fields = Readonly<Record<string, unknown>>

/**
 * Has a transport mend the lists of tools that come through it, before the client library checks them: it refuses a whole
 * list for one tool of another form, and the server would be lost with it. Such a tool keeps its name, with its fault, which
 * `readListing` reads. Optional fields that are `null` count as missing.
 */
export function mendToolLists(transport: client.Transport, sdk: typeof client): void {
  const asked = new Set<unknown>()
  const send = transport.send.bind(transport)
  transport.send = async (message, ...more) => {
    if ('method' in message && message.method === 'tools/list' && 'id' in message) asked.add(message.id)
    await send(message, ...more)
  }
  const mend = (message: Message): Message =>
    'id' in message && asked.delete(message.id) && 'result' in message
      ? { ...message, result: mendList(message.result, sdk) }
      : message
  let handler = transport.onmessage
  Object.defineProperty(transport, 'onmessage', {
    configurable: true,
    get: () => handler,
    // The client library may read the handler to put another one around it: each mends for itself, and only the first finds the id.
    set(next: client.Transport['onmessage']) {
      handler = next && ((message, ...more) => next(mend(message), ...more))
    },
  })
}

function mendList(result: Fields, sdk: typeof client): Fields {
  const { tools } = result
  const list = withoutNulls(result)
  return Array.isArray(tools) ? { ...list, tools: tools.map((tool) => mendTool(tool, sdk)) } : list
}

function mendTool(given: unknown, sdk: typeof client): Fields {
  const { Tool: schema } = sdk.specTypeSchemas
  const faultIn = (tool: Fields): string | undefined => {
    let issue: StandardSchemaV1.Issue | undefined
    try {
      toJson(tool)
      const checked = schema['~standard'].validate(tool)
      if (checked instanceof Promise || checked.issues === undefined) return undefined
      issue = checked.issues[0]
    } catch (error) {
      // It is nested deeper than a check of it can go.
      return cleanLine(`it cannot be read (${error instanceof Error ? error.message : String(error)})`, 300)
    }
    const path = (issue?.path ?? [])
      .map((part) => String(typeof part === 'object' ? part.key : part))
      .join('.')
    return cleanLine(`${path === '' ? 'it' : path}: ${issue?.message ?? 'it is of another form'}`, 300)
  }
  if (typeof given !== 'object' || given === null) return describeLeftOut('', 'it is not an object')
  const { outputSchema, ...known } = withoutNulls(given as Fields)
  // A tool can be called without its output schema, and older revisions of the protocol take objects alone.
  const isKept = typeof outputSchema === 'object' && (outputSchema as Fields | null)?.['type'] === 'object'
  const whole = isKept ? { ...known, outputSchema } : known
  const tool = isKept && faultIn(whole) !== undefined ? known : whole
  const fault = faultIn(tool)
  if (fault === undefined) return tool
  const { name } = known
  return describeLeftOut(
    typeof name === 'string' ? name : typeof name === 'number' ? String(name) : '',
    fault,
  )
}

function describeLeftOut(name: string, fault: string): Fields {
  return { name, inputSchema: { type: 'object' }, _meta: { [faultField]: fault } }
}

function withoutNulls(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
}
