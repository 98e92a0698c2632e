import { ConfigurationError } from '@tallystick/core'
import { isJsonObject } from '@tallystick/core/kit'
import { digestOf, type Json, type JsonObject, type RequestAddition } from '@tallystick/core/vocabulary'
import { textAt } from '../json/json-reading.ts'
import { secretName } from '../secrets/own-secrets.ts'

/** How an adapter records its options. */
export interface RecordedOptions<Options extends object> {
  /** Recorded with their values. Keys, headers, addresses, functions, and whatever may hold a token are never named here. */
  readonly pinned: readonly (keyof Options & string)[]
  /** Recorded by name and digest: each option, and the field of the body that it becomes. */
  readonly added?: { readonly [Name in keyof Options & string]?: string }
  /** Fields of the body that the adapter writes from the request, so that one of `extraBody` replaces what it says. */
  readonly written: readonly string[]
}

/** What the ledger keeps of a model's options. */
interface RecordOfOptions {
  readonly pinnedOptions?: JsonObject
  readonly additions?: readonly RequestAddition[]
}

/** Options of the adapters in the vendor's own words. With `recordAdditions` their values are recorded as well. */
interface WireOptions {
  readonly extraBody?: JsonObject | undefined
  readonly toolFields?: Readonly<Record<string, JsonObject>> | undefined
  readonly providerTools?: readonly JsonObject[] | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly recordAdditions?: boolean | undefined
}

const recordable = ['extraBody', 'toolFields', 'providerTools', 'settings', 'providerOptions']

/**
 * Returns the options with copies of their data, which the caller cannot change any more: what is recorded of them is
 * what every call sends.
 */
export function ownOptions<Options extends object>(maker: string, options: Options): Options {
  return Object.fromEntries(
    Object.entries(options).map(([name, value]) => [
      name,
      isData(value) ? copied(maker, name, value) : value,
    ]),
  ) as Options
}

/** A class's instance, such as a client, is no data. */
function isData(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return Array.isArray(value) || prototype === Object.prototype || prototype === null
}

function copied(maker: string, name: string, value: unknown): unknown {
  // A client of the user's own may be a plain object.
  if (name === 'client') return value
  try {
    return JSON.parse(JSON.stringify(value))
  } catch (error) {
    throw new ConfigurationError(
      `${maker}() got an option ${name} that no JSON can carry, so no request could: ${error instanceof Error ? error.message : 'it is not JSON'}. Give plain data.`,
      { cause: error },
    )
  }
}

/** What the ledger keeps of a model's options, so that each call shows what was sent, and a resume by others is found. */
export function recordedOptions<Options extends WireOptions>(
  options: Options,
  { pinned: names, added = {}, written }: RecordedOptions<Options>,
): RecordOfOptions {
  const pinned: Record<string, Json> = {}
  for (const name of [...names, ...(options.recordAdditions === true ? recordable : [])]) {
    const value = options[name as keyof Options]
    if (value !== undefined) pinned[name] = value as Json
  }
  const additions = [
    ...Object.entries(added).flatMap(([option, field]) =>
      addition(option, field as string, options[option as keyof Options]),
    ),
    ...wireAdditions(options, written),
  ]
  return {
    ...(Object.keys(pinned).length > 0 && { pinnedOptions: pinned }),
    ...(additions.length > 0 && { additions }),
  }
}

function wireAdditions(
  { extraBody = {}, toolFields = {}, providerTools = [], headers = {} }: WireOptions,
  written: readonly string[],
): readonly RequestAddition[] {
  return [
    ...Object.entries(extraBody).flatMap(([field, value]) =>
      addition('extraBody', field, value, written.includes(field)),
    ),
    ...Object.entries(toolFields).flatMap(([tool, fields]) =>
      Object.entries(fields).flatMap(([field, value]) =>
        addition('toolFields', `tools.${tool}.${field}`, value, writtenOfTool.has(field)),
      ),
    ),
    ...providerTools.flatMap((tool) =>
      addition('providerTools', `tools.${textAt(tool, 'name') ?? textAt(tool, 'type') ?? ''}`, tool),
    ),
    ...Object.entries(headers).flatMap(([name, value]) => addition('headers', name.toLowerCase(), value)),
  ]
}

/** Fields of a tool's definition that adapters write from the request. */
const writtenOfTool: ReadonlySet<string> = new Set([
  ...(['name', 'description', 'type', 'strict', 'parameters'] as const),
  ...(['input_schema', 'function', 'custom'] as const),
])

function addition(
  option: string,
  field: string,
  value: unknown,
  replaces = false,
): readonly RequestAddition[] {
  if (value === undefined) return []
  const isCredential = typeof value === 'string' && secretName.test(field)
  return [
    {
      option,
      field,
      ...(replaces && { replaces }),
      ...(!isCredential && { digest: digestOf(withoutCredentials(value as Json)) }),
    },
  ]
}

/** The value without texts that go by the name of a credential: these change, and their digests would confirm a guess. */
function withoutCredentials(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutCredentials)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, field]) => !(typeof field === 'string' && secretName.test(name)))
      .map(([name, field]) => [name, withoutCredentials(field)]),
  )
}
