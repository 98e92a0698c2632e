import type { client } from '../options/client-library.ts'
import { digestOf, type Json, type JsonObject, type KnownSecrets } from '@tallystick/core/vocabulary'
import { jsonOf } from '../../content/json-value.ts'
import { listFaultOf } from '../transport/sound-lists.ts'
import { exposedName } from '../names/exposed-name.ts'
import { cleanLine, cleanText } from '../text/clean-text.ts'
import { withoutSecrets } from './result-content.ts'

const maxDescriptionCharacters = 8_000
const maxSchemaCharacters = 100_000
const maxNameCharacters = 256
/** Tools of one server that are taken. No model chooses among more. */
const maxTools = 1_000

/** What a server says about its own tools. Believed only of a server that the user trusts. */
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
export function listingOf(server: string, tools: readonly client.Tool[], secrets: KnownSecrets): Listing {
  const listed = new Map<string, ListedTool>()
  const exposed = new Set<string>()
  const faults: string[] = []
  if (tools.length > maxTools) {
    faults.push(`lists ${tools.length} tools; the first ${maxTools} are taken`)
  }
  for (const raw of tools.slice(0, maxTools)) {
    const shown = JSON.stringify(cleanLine(raw.name, 64))
    const tool = listedTool(server, raw, secrets)
    if (typeof tool === 'string') faults.push(`the tool ${shown} is left out: ${tool}`)
    else if (exposed.has(tool.exposedName)) faults.push(`the tool ${shown} is left out: it is listed twice`)
    else {
      exposed.add(tool.exposedName)
      listed.set(tool.name, tool)
    }
  }
  return { tools: listed, faults: faults.slice(0, 20) }
}

function listedTool(server: string, raw: client.Tool, secrets: KnownSecrets): ListedTool | string {
  const { name, annotations = {} } = raw
  const fault = listFaultOf(raw)
  if (fault !== undefined) return fault
  if (name === '' || name.length > maxNameCharacters) return `its name has ${name.length} characters`
  const inputSchema = schemaOf(raw.inputSchema, secrets)
  if (typeof inputSchema === 'string') return `its input schema ${inputSchema}`
  const outputSchema = raw.outputSchema === undefined ? undefined : schemaOf(raw.outputSchema, secrets)
  const title = raw.title ?? annotations.title ?? ''
  const given = shownText(raw.description?.trim() || title, secrets)
  const description = given === '' ? `The tool ${cleanLine(name, 64)} of ${cleanLine(server, 64)}.` : given
  return {
    name,
    exposedName: exposedName(server, name),
    description,
    inputSchema,
    ...(typeof outputSchema === 'object' && { outputSchema }),
    annotations,
    digest: digestOf({ description, inputSchema }),
    raw,
  }
}

/** What a server says of itself is recorded with every run: it may hold what the server was configured with. */
function shownText(text: string, secrets: KnownSecrets): string {
  return cleanText(
    withoutSecrets(text.slice(0, 2 * maxDescriptionCharacters), secrets),
    maxDescriptionCharacters,
  )
}

function schemaOf(raw: unknown, secrets: KnownSecrets): JsonObject | string {
  try {
    const json = jsonOf(raw)
    const length = JSON.stringify(json).length
    if (length > maxSchemaCharacters) return `has ${length} characters; ${maxSchemaCharacters} are taken`
    const { $schema: _dialect, ...schema } = withCleanTexts(json, secrets) as JsonObject & {
      readonly $schema?: Json
    }
    if (schema['type'] !== 'object') return 'is not of type object'
    return schema
  } catch (error) {
    return `is no JSON (${error instanceof Error ? error.message : 'it cannot be read'})`
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
      texts.has(key) && typeof each === 'string' ? shownText(each, secrets) : withCleanTexts(each, secrets),
    ]),
  )
}
