import { ConfigurationError, ProviderError } from '@tallystick/core'
import {
  isJsonObject,
  option,
  type OptionalCheck,
  type OptionCheck,
  requireOptions,
} from '@tallystick/core/internal'
import { digestOf, type Json, type JsonObject, type RequestAddition } from '@tallystick/core/vocabulary'
import { textAt } from './json.ts'
import { secretName } from './secrets.ts'

const {
  anyFunction,
  anyObject,
  anyText,
  filledText,
  listOf,
  maybe,
  milliseconds,
  numberFrom,
  recordOf,
  trueOrFalse,
} = option

/** Checks of options that mean the same to every adapter. */
export const commonChecks: {
  readonly [
    name in
      | 'baseURL'
      | 'contentTimeoutMs'
      | 'extraBody'
      | 'fetch'
      | 'headers'
      | 'idleTimeoutMs'
      | 'maxOutputTokens'
      | 'onWarning'
      | 'recordAdditions'
      | 'responseTimeoutMs'
      | 'totalTimeoutMs'
  ]: OptionalCheck
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
export const apiKey: OptionCheck = option.valueThat(
  'a key, as text that is not empty, or a function that gets one',
  (value) => typeof value === 'function' || (typeof value === 'string' && value !== ''),
)

/** Objects in the vendor's own words. */
export const objects: OptionCheck = listOf(anyObject)

/** Names by which users of other libraries look for an option. */
export const otherNames: { readonly [name: string]: string } = {
  url: 'baseURL',
  host: 'baseURL',
  endpoint: 'baseURL',
  timeout: 'responseTimeoutMs',
}

/** Refuses a model id or options with which no call could succeed. `maker` is the function that was called. */
export function requireModelOptions(
  maker: string,
  check: OptionCheck,
  { modelId, options }: { readonly modelId: unknown; readonly options: unknown },
): void {
  requireOptions(maker, filledText, modelId, 'the model id')
  requireOptions(maker, check, options)
}

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
export interface WireOptions {
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

/** Something that a request asked for and that a wire cannot express. The call goes out without it. */
export interface Warning {
  /** What was left out or changed. */
  readonly what: string
  /** One sentence, for people: names and places, never what was said. */
  readonly message: string
}

/** Reports a warning. */
export type Warn<Reported extends Warning> = (warning: Reported) => void

/** An optional peer, which is loaded when it is needed first. */
export interface OptionalPackage<Module> {
  /** Throws `ConfigurationError`, with the line that installs the package, where the host can tell at once that it is missing. */
  require(maker: string): void
  /** Loads the package once. Rejects with a `ProviderError` that names the line that installs it. */
  load(maker: string): Promise<Module>
}

/** `load` imports the package by its literal name, so that bundlers see it. */
export function optionalPackage<Module>(name: string, load: () => Promise<Module>): OptionalPackage<Module> {
  let loading: Promise<Module> | undefined
  return {
    require: (maker) => {
      try {
        if (resolvesPackages()) import.meta.resolve(name)
      } catch (error) {
        // Other hosts refuse names that they cannot resolve by other errors: there only loading tells.
        if (isMissing(error)) throw missingPackage(maker, name, error)
      }
    },
    load: async (maker) => {
      loading ??= load()
      try {
        return await loading
      } catch (error) {
        loading = undefined
        const cause = missingPackage(maker, name, error)
        throw new ProviderError(
          { class: 'invalid_request', retryable: false, message: cause.message },
          { cause },
        )
      }
    },
  }
}

/** The error of a package that is not installed, with the line that installs it. */
export function missingPackage(maker: string, name: string, cause: unknown): ConfigurationError {
  const what = isMissing(cause) ? 'is not installed' : 'could not be loaded'
  return new ConfigurationError(
    `${maker}() needs the package ${name}, which ${what}. Add it: npm install ${name}.`,
    {
      cause,
    },
  )
}

/** A bundle holds this module where not even its own package has a name: there only loading tells whether another is missing. */
function resolvesPackages(): boolean {
  try {
    import.meta.resolve('@tallystick/providers/package.json')
    return true
  } catch {
    return false
  }
}

function isMissing(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
}
