import { ConfigurationError, ProviderError } from '@tallystick/core'
import {
  declarePackage as declareOptional,
  isJsonObject,
  omitUndefined,
  option,
  type OptionalPackage,
  type OptionalSchema,
  type Schema,
  requireOptions,
} from '@tallystick/core/internal'
import { computeDigest, type Json, type JsonObject, type RequestAddition } from '@tallystick/core/vocabulary'
import type { Timeouts } from './body.ts'
import { getText } from './json.ts'
import { secretName } from './secrets.ts'

const { anyFunction, anyObject, anyText, filledText, listOf, maybe, milliseconds } = option
const { numberFrom, recordOf, trueOrFalse } = option

/** Checks of options that all adapters share. */
export const commonChecks: {
  readonly [
    name in
      | keyof Timeouts
      | 'baseURL'
      | 'extraBody'
      | 'fetch'
      | 'headers'
      | 'maxOutputTokens'
      | 'onWarning'
      | 'recordAdditions'
  ]: OptionalSchema
} = {
  baseURL: maybe(filledText),
  contentTimeoutMs: maybe(milliseconds),
  extraBody: maybe(anyObject),
  fetch: maybe(anyFunction),
  headers: maybe(recordOf(anyText)),
  idleTimeoutMs: maybe(milliseconds),
  maxOutputTokens: maybe(numberFrom(1, { whole: true })),
  onWarning: maybe(anyFunction),
  recordAdditions: maybe(trueOrFalse),
  responseTimeoutMs: maybe(milliseconds),
  totalTimeoutMs: maybe(milliseconds),
}

/** A key, or a function that gets one. */
export const apiKey: Schema = option.valueThat(
  'a key, as text that is not empty, or a function that gets one',
  (value) => typeof value === 'function' || (typeof value === 'string' && value !== ''),
)

/** Objects in the vendor's own words. */
export const objects: Schema = listOf(anyObject)

/** Names by which users of other libraries look for an option. */
export const otherNames: { readonly [name: string]: string } = {
  url: 'baseURL',
  host: 'baseURL',
  endpoint: 'baseURL',
  timeout: 'responseTimeoutMs',
}

/** Throws `ConfigurationError` for a model id or options that cannot work. `maker` is the function that was called. */
export function requireModelOptions(
  maker: string,
  check: Schema,
  { modelId, options }: { readonly modelId: unknown; readonly options: object },
): void {
  requireOptions(maker, filledText, modelId, 'the model id')
  requireOptions(maker, check, options)
  const { client, apiKey, baseURL, fetch } = options as { readonly [name: string]: unknown }
  if (client && (apiKey ?? baseURL ?? fetch) !== undefined) {
    throw new ConfigurationError(
      `${maker}() got a client together with apiKey, baseURL or fetch, which the client would ignore. Pass one or the other.`,
    )
  }
}

/** How an adapter records its options. */
export interface RecordedOptions<Options extends object> {
  /** Recorded with their values: no keys, headers, addresses, functions, nor what may hold a token. */
  readonly pinned: readonly (keyof Options & string)[]
  /** Recorded by name and digest: each option, and the field of the body that it becomes. */
  readonly added?: { readonly [Name in keyof Options & string]?: string }
  /** Fields of the body that the adapter writes from the request, which `extraBody` would replace. */
  readonly written: readonly string[]
}

/** Options of the adapters in the vendor's own words. With `recordAdditions` their values are recorded as well. */
export interface WireOptions {
  readonly extraBody?: JsonObject | undefined
  readonly toolFields?: Readonly<Record<string, JsonObject>> | undefined
  readonly providerTools?: readonly JsonObject[] | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly recordAdditions?: boolean | undefined
}

const recordable = ['extraBody', 'toolFields', 'providerTools', 'settings', 'providerOptions']

/**
 * Copies the data of the options, so that the caller cannot change it: the ledger records what every call sends.
 */
export function copyOptions<Options extends object>(maker: string, options: Options): Options {
  const entries = Object.entries(options).map(([name, value]): [string, unknown] => {
    // A client of the user's own may be a plain object.
    if (name === 'client' || !isPlain(value)) return [name, value]
    try {
      return [name, JSON.parse(JSON.stringify(value))]
    } catch (error) {
      throw new ConfigurationError(
        `${maker}() got an option ${name} that JSON cannot carry, so no request could: ${error instanceof Error ? error.message : 'it is not JSON'}. Give plain data.`,
        { cause: error },
      )
    }
  })
  return Object.fromEntries(entries) as Options
}

function isPlain(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return Array.isArray(value) || prototype === Object.prototype || prototype === null
}

/** Returns what the ledger keeps of the options, so that each call shows what was sent, and a resume with others is detected. */
export function describeOptions<Options extends WireOptions>(
  options: Options,
  { pinned: names, added = {}, written }: RecordedOptions<Options>,
): { readonly pinnedOptions?: JsonObject; readonly additions?: readonly RequestAddition[] } {
  const { extraBody = {}, toolFields = {}, providerTools = [], headers = {} } = options
  const pinned: Record<string, Json> = {}
  for (const name of [...names, ...(options.recordAdditions === true ? recordable : [])]) {
    const value = options[name as keyof Options]
    if (value !== undefined) pinned[name] = value as Json
  }
  const given: readonly (readonly [option: string, field: string, value: unknown, replaces?: boolean])[] = [
    ...Object.entries(added).map(
      ([option, field]) => [option, field as string, options[option as keyof Options]] as const,
    ),
    ...Object.entries(extraBody).map(
      ([field, value]) => ['extraBody', field, value, written.includes(field)] as const,
    ),
    ...Object.entries(toolFields).flatMap(([tool, fields]) =>
      Object.entries(fields).map(
        ([field, value]) =>
          ['toolFields', `tools.${tool}.${field}`, value, writtenOfTool.includes(field)] as const,
      ),
    ),
    ...providerTools.map((tool) => {
      const name = getText(tool, 'name') ?? getText(tool, 'type') ?? ''
      return ['providerTools', `tools.${name}`, tool] as const
    }),
    ...Object.entries(headers).map(([name, value]) => ['headers', name.toLowerCase(), value] as const),
  ]
  const additions = given
    .filter(([, , value]) => value !== undefined)
    .map(([option, field, value, replaces = false]): RequestAddition => {
      const isCredential = typeof value === 'string' && secretName.test(field)
      const digest = isCredential ? undefined : computeDigest(withoutCredentials(value as Json))
      return { option, field, ...(replaces && { replaces }), ...omitUndefined({ digest }) }
    })
  return {
    ...(Object.keys(pinned).length > 0 && { pinnedOptions: pinned }),
    ...(additions.length > 0 && { additions }),
  }
}

/** Fields of a tool's definition that adapters write from the request. */
const writtenOfTool: readonly string[] = [
  ...(['name', 'description', 'type', 'strict', 'parameters'] as const),
  ...(['input_schema', 'function', 'custom'] as const),
]

/** Leaves out texts named like a credential: these change, and their digests would confirm a guess. */
function withoutCredentials(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutCredentials)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, field]) => !(typeof field === 'string' && secretName.test(name)))
      .map(([name, field]) => [name, withoutCredentials(field)]),
  )
}

/** Something in a request that a wire cannot express. The request is sent without it. */
export interface Warning {
  /** The part of the request that was left out or changed. */
  readonly what: string
  /** One sentence for people: names and places, no content. */
  readonly message: string
}

export type Warn<Reported extends Warning> = (warning: Reported) => void

/** Declares an optional peer, which is loaded at its first use. A call without it rejects with a `ProviderError`. */
export function declarePackage<Module>(name: string, load: () => Promise<Module>): OptionalPackage<Module> {
  const optional = declareOptional(home, name, load)
  return {
    require: (maker) => optional.require(`${maker}()`),
    load: (maker) =>
      optional.load(`${maker}()`).catch((cause: Error) => {
        const { message } = cause
        throw new ProviderError({ class: 'invalid_request', retryable: false, message }, { cause })
      }),
  }
}

const home = { name: '@tallystick/providers', resolve: (name: string) => import.meta.resolve(name) }
