import type { Tool } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/internal'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { approvalPolicy, type ApprovalPolicy } from '../../define/approval.ts'
import { defineTool } from '../../define/define-tool.ts'
import { type ToolContext, askTraceparent, type ReadTraceparent } from '../../define/run-tool.ts'
import { hostTimers, type Timers } from '../../host.ts'
import {
  createHeaderPolicy,
  resolveByHost,
  type OriginHeaders,
  createReachPolicy,
  type Resolve,
} from './reach.ts'
import {
  defaultContentTypes,
  type Exchange,
  fetchPage,
  type HttpAnswer,
  type HttpRequest,
  type Method,
  listMethods,
  isWriting,
} from './exchange.ts'
import { undiciPackage } from '../../packages.ts'

/** Bounds of what a model may fetch and of what one call shows. */
export interface HttpFetchOptions {
  /** Default `http_fetch`. */
  readonly name?: string | undefined
  /** The description that the model reads instead of the default. */
  readonly description?: string | undefined
  /** Default `['GET']`. With any but GET and HEAD the tool is a write. */
  readonly methods?: readonly Method[] | undefined
  /** If given, only these origins can be reached, as in `https://api.example.com`. */
  readonly origins?: readonly string[] | undefined
  /**
   * Hosts that may be reached although their addresses are not public, each exactly as in `localhost:3000` or
   * `10.0.0.7:80`. Without it nothing in the machine or its networks can be reached.
   */
  readonly allow?: readonly string[] | undefined
  /**
   * Connects to another address than the URL names, and allows it: with `{ 'rates.internal:80': '127.0.0.1:4123' }` a
   * model requests http://rates.internal/ at that address.
   */
  readonly connectTo?: Readonly<Record<string, string>> | undefined
  /**
   * Headers by origin, such as keys. They are sent to that origin only, also after redirects, and masked in results: as
   * they are, in either case, in Base64 and hexadecimal, escaped, and in one layer of these. A secret needs at least 8
   * characters.
   */
  readonly headers?: OriginHeaders | undefined
  /** Names of headers whose value is not secret, such as `x-api-version`: it is not masked, and may have any length. */
  readonly openHeaders?: readonly string[] | undefined
  /** Media types whose bodies are shown, as in `text/*`. Default: text, JSON, XML. Others are named, not shown. */
  readonly contentTypes?: readonly string[] | undefined
  /** Bytes of a body that are shown, once it is unpacked. Default 50 000. */
  readonly maxBytes?: number | undefined
  /** Milliseconds for the whole exchange, redirects and body included. Default 15 000. */
  readonly timeoutMs?: number | undefined
  /**
   * The most redirects to follow. Default 5; with 0 the tool shows them instead. It also shows, and does not follow,
   * one that leads a write to another origin.
   */
  readonly maxRedirects?: number | undefined
  /** When a person has to approve a call first. Default: never. */
  readonly approval?: ApprovalPolicy<JsonObject> | undefined
  /** The `traceparent` header of a call. Any place that the model can reach gets it. Default: none is sent. */
  readonly traceparent?: ReadTraceparent | undefined
  /** Resolves host names. Default: as the host does. */
  readonly resolve?: Resolve | undefined
  /** The clock that `timeoutMs` is measured by. Default: the host's. */
  readonly timers?: Timers | undefined
}

/**
 * A tool that fetches over HTTP and answers `{ url, status, headers, title?, body, note? }` as JSON, where the body of a web
 * page is Markdown. Needs the package undici.
 *
 * It is guarded against being led into the machine's own networks: every address that a name has, or that a URL or a
 * redirect names, has to be public (or allowed by host and port), and the connection goes to the very address that
 * was checked.
 */
export function httpFetch(options: HttpFetchOptions = {}): Tool {
  requireOptions('httpFetch', httpFetchOptions, options)
  const { name = 'http_fetch', approval } = options
  undiciPackage.require(`The tool ${name}`)
  const methods = listMethods(name, options.methods ?? ['GET'])
  const { origins, maxBytes = 50_000, timeoutMs = 15_000, maxRedirects = 5 } = options
  const where = origins ? ` Only ${origins.join(', ')} can be reached.` : ''
  const rules: Exchange = {
    tool: name,
    reach: createReachPolicy(name, options, options.resolve ?? resolveByHost),
    headers: createHeaderPolicy(name, options.headers ?? {}, options.openHeaders ?? []),
    contentTypes: options.contentTypes ?? defaultContentTypes,
    maxBytes,
    timeoutMs,
    maxRedirects,
    timers: options.timers ?? hostTimers,
  }
  return defineTool({
    name,
    description:
      options.description ??
      `Sends an HTTP request (${methods.join(', ')}) and answers { url, status, headers, body } as JSON; a web page is shown as Markdown. ` +
        `Use it to read what is at a URL, or to ask an HTTP API.${where} An answer of status 400 or more is an answer too.`,
    input: describeInput(methods),
    effect: isWriting(methods) ? 'write' : 'read',
    // The exchange's own limit is reached first; this one is for a host that hangs.
    timeoutMs: timeoutMs + 1_000,
    ...(approval !== undefined && { approval }),
    execute: async (given, context): Promise<HttpAnswer> => {
      const traceparent = await askTraceparent(options.traceparent, context)
      const request = readRequest(given, methods, context)
      const headers = { ...request.headers, ...(traceparent !== undefined && { traceparent }) }
      return await fetchPage({ ...request, headers }, rules, context.signal)
    },
  })
}

const { anyFunction, anyObject, anyText, fields, filledText, listOf, maybe, milliseconds, numberFrom } =
  option
const { recordOf } = option

const httpFetchOptions = fields<HttpFetchOptions>(
  {
    name: maybe(filledText),
    description: maybe(filledText),
    methods: maybe(listOf(anyText)),
    origins: maybe(listOf(anyText)),
    allow: maybe(listOf(anyText)),
    connectTo: maybe(recordOf(anyText)),
    headers: maybe(recordOf(recordOf(anyText))),
    openHeaders: maybe(listOf(filledText)),
    contentTypes: maybe(listOf(anyText)),
    maxBytes: maybe(numberFrom(1, { whole: true })),
    timeoutMs: maybe(milliseconds),
    maxRedirects: maybe(numberFrom(0, { whole: true })),
    approval: maybe(approvalPolicy),
    traceparent: maybe(anyFunction),
    resolve: maybe(anyFunction),
    timers: maybe(anyObject),
  },
  { domains: 'origins', hosts: 'allow', timeout: 'timeoutMs' },
)

function readRequest(
  given: JsonObject,
  [defaultMethod]: readonly [Method, ...Method[]],
  { idempotencyKey }: ToolContext,
): HttpRequest {
  // The schema has been checked.
  const input = given as {
    url: string
    method?: Method
    body?: string
    contentType?: string
    raw?: boolean
  }
  const method = input.method ?? defaultMethod
  const headers: Record<string, string> = {}
  if (input.body !== undefined) headers['content-type'] = input.contentType ?? 'application/json'
  if (isWriting([method])) headers['idempotency-key'] = idempotencyKey
  const { url, body, raw = false } = input
  return { url, method, headers, raw, ...(body !== undefined && { body }) }
}

function describeInput(methods: readonly Method[]): JsonObject {
  const method: JsonObject = { enum: methods, description: `Default ${methods[0]}.` }
  const body: JsonObject = { type: 'string', maxLength: 200_000, description: 'The request body.' }
  const contentType: JsonObject = {
    type: 'string',
    pattern: '^[A-Za-z0-9.+-]+/[A-Za-z0-9.+-]+(; ?charset=[A-Za-z0-9-]+)?$',
    description: 'The media type of the body. Default application/json.',
  }
  return {
    type: 'object',
    required: ['url'],
    additionalProperties: false,
    properties: {
      url: {
        type: 'string',
        maxLength: 8_000,
        description: 'An http: or https: URL, without user and password.',
      },
      raw: { type: 'boolean', description: 'Shows the HTML of a page instead of Markdown. Default false.' },
      ...(methods.length > 1 && { method }),
      ...(isWriting(methods) && { body, contentType }),
    },
  }
}
