import { isAbsolute } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Clock, Usage } from '@tallystick/core'
import { option, type Schema, type OptionChecks, requireOptions } from '@tallystick/core/internal'
import type { Host, JsonObject } from '@tallystick/core/vocabulary'
import { approvalPolicy, type ApprovalPolicy } from '../define/approval.ts'
import type { ReadTraceparent } from '../define/run-tool.ts'
import type { client } from './client-library.ts'

interface AnyServer {
  /**
   * Believes what the server says about its own tools: a tool that it calls read-only is then a `read`. Default
   * false: every tool is a `write`, so calls run one by one and are not repeated after a crash.
   */
  readonly trusted?: boolean | undefined
  /** When a person has to approve a call of its tools. Default: never. A tool that has changed asks in any case. */
  readonly approval?: ApprovalPolicy<JsonObject> | undefined
  /** Names of the tools that are offered, as the server knows them. Default: all. */
  readonly includeTools?: readonly string[] | undefined
  /** Names of tools that are not offered. */
  readonly excludeTools?: readonly string[] | undefined
  /** Milliseconds without progress after which a call is given up as `timed_out`. Default 60 000. */
  readonly timeoutMs?: number | undefined
  /** Milliseconds after which a call is given up, whatever progress it makes. Default 600 000. */
  readonly maxTotalMs?: number | undefined
  /** Milliseconds that the server may take to start and to list its tools. Default 30 000. */
  readonly startMs?: number | undefined
  /** Bytes of one message of the server at most. Default 10 000 000. */
  readonly maxMessageBytes?: number | undefined
  /** Characters of text that a result shows at most; Base64 may be fifty times as long. Default 100 000. */
  readonly maxResultCharacters?: number | undefined
  /** The revision of the protocol: `legacy` up to 2025-11-25, `auto` asks the server first. Default: `auto` over HTTP. */
  readonly era?: 'legacy' | 'auto' | '2026-07-28' | undefined
  /** Rejects `mcpTools` if the server cannot be started. Default false: its status says so. */
  readonly required?: boolean | undefined
  /**
   * The folders that the server should work in (its roots), as absolute paths or `file:` URLs. Default: none is named to it. A
   * server may work elsewhere all the same.
   */
  readonly roots?: readonly string[] | undefined
  /** Leaves the server out. */
  readonly disabled?: boolean | undefined
  /**
   * Texts that are struck out of results and errors, besides headers, what the URL holds before its host, and variables
   * whose name says that they are secret (`KEY`, `TOKEN`, `SECRET`, `PASSWORD` …). Those of less than 8 characters are not
   * looked for.
   */
  readonly secrets?: readonly string[] | undefined
}

/** A server that runs as a program on this machine, over its standard input and output. */
export interface StdioServer extends AnyServer {
  readonly type?: 'stdio' | undefined
  readonly command: string
  readonly args?: readonly string[] | undefined
  /** Its environment, beside what programs need to run at all (`PATH`, `HOME` …). Nothing else of this process's. */
  readonly env?: Readonly<Record<string, string>> | undefined
  readonly cwd?: string | undefined
}

/** A server at a URL. */
export interface HttpServer extends AnyServer {
  /**
   * `http`: Streamable HTTP; `sse`: the older transport. Default: `http`, and `sse` if the server does not support it.
   */
  readonly type?: 'http' | 'sse' | undefined
  readonly url: string
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Tokens, or OAuth, as the client library takes it. */
  readonly authProvider?: client.AuthProvider | client.OAuthClientProvider | undefined
  /**
   * Resolves with the parameters that OAuth's redirect came back with, once `authProvider` has sent the user to the
   * authorization page. The user may take any time: time limits stand still, and `signal` aborts when the manager closes.
   * Without it a server that asks for that fails with a text that says so. `oauthServer` makes both.
   */
  readonly authorizationCallback?:
    | ((question: McpQuestion) => URLSearchParams | Promise<URLSearchParams>)
    | undefined
  /** Sends the requests. Default: the host's fetch. */
  readonly fetch?: client.FetchLike | undefined
}

/** One MCP server. */
export type McpServer = StdioServer | HttpServer

const {
  anyFunction,
  anyObject,
  anyText,
  fields,
  filledText,
  listOf,
  maybe,
  milliseconds,
  numberFrom,
  oneOf,
} = option
const { recordOf, trueOrFalse, valueThat } = option

const common: OptionChecks<AnyServer> = {
  trusted: maybe(trueOrFalse),
  approval: maybe(approvalPolicy),
  includeTools: maybe(listOf(filledText)),
  excludeTools: maybe(listOf(filledText)),
  timeoutMs: maybe(milliseconds),
  maxTotalMs: maybe(milliseconds),
  startMs: maybe(milliseconds),
  maxMessageBytes: maybe(numberFrom(1_000, { whole: true })),
  maxResultCharacters: maybe(numberFrom(1, { whole: true })),
  era: maybe(oneOf(['legacy', 'auto', '2026-07-28'])),
  required: maybe(trueOrFalse),
  disabled: maybe(trueOrFalse),
  secrets: maybe(listOf(anyText)),
  roots: maybe(
    listOf(valueThat('an absolute path or a file: URL', (value) => toRootUri(value) !== undefined)),
  ),
}

const otherNames = {
  timeout: 'timeoutMs',
  trust: 'trusted',
  enabledTools: 'includeTools',
  disabledTools: 'excludeTools',
}

const noNul = valueThat(
  'a text without the character NUL',
  (value) => typeof value === 'string' && !value.includes('\0'),
)

const stdioServer = fields<StdioServer>(
  {
    ...common,
    type: maybe(oneOf(['stdio'])),
    command: filledText,
    args: maybe(listOf(noNul)),
    env: maybe(recordOf(noNul)),
    cwd: maybe(filledText),
  },
  { ...otherNames, environment: 'env', arguments: 'args' },
)

const httpServer = fields<HttpServer>(
  {
    ...common,
    type: maybe(oneOf(['http', 'sse'])),
    url: valueThat('an http: or https: URL', isHttpUrl),
    headers: maybe(recordOf(anyText)),
    authProvider: maybe(anyObject),
    authorizationCallback: maybe(anyFunction),
    fetch: maybe(anyFunction),
  },
  { ...otherNames, serverUrl: 'url', httpUrl: 'url', auth: 'authProvider' },
)

export const mcpServer: Schema = (value) => {
  const { command, url } = Object(value) as { readonly command?: unknown; readonly url?: unknown }
  if (command !== undefined && url !== undefined) {
    return { path: '', what: 'has a command and a url; give one of the two' }
  }
  if (command === undefined && url === undefined && typeof value === 'object' && value !== null) {
    return { path: '', what: 'has neither a command nor a url; give the one that its server is reached by' }
  }
  return (url === undefined ? stdioServer : httpServer)(value)
}

/** The URL of a folder that is given as an absolute path, or as that URL. */
export function toRootUri(root: unknown): string | undefined {
  if (typeof root !== 'string') return undefined
  if (isAbsolute(root)) return pathToFileURL(root).href
  return URL.canParse(root) && new URL(root).protocol === 'file:' ? new URL(root).href : undefined
}

export function isHttpServer(server: McpServer): server is HttpServer {
  return 'url' in server && server.url !== undefined
}

export function isHttpUrl(value: unknown): boolean {
  if (typeof value !== 'string') return false
  const { protocol } = URL.canParse(value) ? new URL(value) : { protocol: '' }
  return protocol === 'http:' || protocol === 'https:'
}

/** The servers, and what they all share. */
export interface McpOptions extends McpHooks {
  /** The servers by their names, which are part of the names of their tools. */
  readonly servers: Readonly<Record<string, McpServer>>
  /** How much of a model a server may use within one call: `maxPerCall` answers (3) of `maxTokens` tokens each (4,096). */
  readonly sampleLimits?:
    | { readonly [Name in keyof SamplingLimits]?: SamplingLimits[Name] | undefined }
    | undefined
  /**
   * Digests of known tools, by the tools' names, as `pins` of a manager gives them: a tool with another digest needs an
   * approval. Default: what each server lists first.
   */
  readonly pins?: Readonly<Record<string, string>> | undefined
  /** The `traceparent` that a call carries in its `_meta`. Default: none is sent. */
  readonly traceparent?: ReadTraceparent | undefined
  /** Waits after a connection was lost. */
  readonly reconnect?:
    | {
        /** Milliseconds before the first attempt; each wait is twice the one before. Default 250. */
        readonly baseMs?: number | undefined
        /** Milliseconds of the longest wait. Default 15 000. */
        readonly capMs?: number | undefined
        /** Attempts in a row that may fail; afterwards the next call tries again. Default 5. */
        readonly maxAttempts?: number | undefined
      }
    | undefined
  /** The environment from which servers get `PATH` and the like. Default: that of this process. */
  readonly environment?: Environment | undefined
  /** The clock that waits are measured by. Default: the host's. */
  readonly timers?: Pick<Clock, 'schedule'> | undefined
  /** Spreads the attempts to reconnect. Default: the host's. */
  readonly random?: Host['random'] | undefined
}

const managerOptions = fields<McpOptions>(
  {
    servers: recordOf(mcpServer),
    pins: maybe(recordOf(filledText)),
    reconnect: maybe(
      fields<NonNullable<McpOptions['reconnect']>>({
        baseMs: maybe(numberFrom(1)),
        capMs: maybe(numberFrom(1)),
        maxAttempts: maybe(numberFrom(0, { whole: true })),
      }),
    ),
    traceparent: maybe(anyFunction),
    environment: maybe(anyObject),
    timers: maybe(anyObject),
    random: maybe(anyFunction),
    elicit: maybe(anyFunction),
    sample: maybe(anyFunction),
    sampleLimits: maybe(
      fields<NonNullable<McpOptions['sampleLimits']>>({
        maxPerCall: maybe(numberFrom(0, { whole: true })),
        maxTokens: maybe(numberFrom(1, { whole: true })),
      }),
    ),
  },
  {
    mcpServers: 'servers',
    onElicitation: 'elicit',
    elicitation: 'elicit',
    sampling: 'sample',
    env: 'environment',
  },
)

/** Refuses options that cannot work. Throws `ConfigurationError`. */
export function requireMcpOptions(options: McpOptions): void {
  requireOptions('mcpTools', managerOptions, options)
}

/** The server that asks, and the signal of its question. */
export interface McpQuestion {
  readonly server: string
  /** Aborts when the server takes the question back, or its connection ends. */
  readonly signal: AbortSignal
}

/**
 * Answers questions of servers. A server learns at the start which questions this client answers: those with a hook. If
 * a hook throws, the server reads a refusal. While a hook decides, the time limit of the call does not run; a server asks
 * one thing at a time, within a call of a tool, and only so often. Texts come without control characters, and addresses are
 * those of web pages.
 */
export interface McpHooks {
  /** A server asks the user for data, by a form or at a URL: `{ action: 'accept', content }`, `decline` or `cancel`. */
  readonly elicit?:
    | ((
        request: client.ElicitRequestParams,
        question: McpQuestion,
      ) => client.ElicitResult | Promise<client.ElicitResult>)
    | undefined
  /**
   * A server asks for an answer of a model, at your cost. Ask the user first, or give only servers that you trust a manager
   * with this hook: what it throws is a refusal, and not charged. An answer is charged to the run whose call the server is
   * at work for (its tokens, its cost, and a turn), and a server is refused once the run's limits leave too little. Hold the
   * model to `request.maxTokens`, which is cut to what is left.
   */
  readonly sample?:
    | ((
        request: client.CreateMessageRequestParams,
        question: McpQuestion,
      ) => SampleAnswer | Promise<SampleAnswer>)
    | undefined
}

/**
 * An answer of a model for a server, with what it used, which the server does not see. Tokens that are missing are
 * estimated by the texts. Where a run has a limit on cost, an answer without `costUsd` takes all that is left of it.
 */
export type SampleAnswer = client.CreateMessageResult & {
  readonly usage?: Usage | undefined
  readonly costUsd?: number | undefined
}

/** How much of a model a server may use within one call of a tool. */
export interface SamplingLimits {
  /** The most answers. */
  readonly maxPerCall: number
  /** The most tokens of each; a server that asks for more gets this many. */
  readonly maxTokens: number
}

/** Variables that programs need to run at all. None is a secret. */
const safeNames = {
  posix: 'HOME LANG LC_ALL LOGNAME PATH SHELL TERM TMPDIR TZ USER',
  windows:
    'APPDATA COMSPEC HOMEDRIVE HOMEPATH LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE PROGRAMDATA PROGRAMFILES ' +
    'PROGRAMFILES(X86) PROGRAMW6432 SYSTEMDRIVE SYSTEMROOT TEMP USERNAME USERPROFILE WINDIR',
}

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>

/** The environment of a server's process: what its configuration names, and of the host only what is safe. */
export function createChildEnvironment(
  host: Environment,
  named: Environment,
  platform: NodeJS.Platform,
): Record<string, string> {
  const names = safeNames[platform === 'win32' ? 'windows' : 'posix'].split(' ')
  // A value that begins so is a function that a shell would run.
  const safe = names.flatMap((name) => (host[name]?.startsWith('()') ? [] : [[name, host[name]] as const]))
  const all = [...safe, ...Object.entries(named)]
  return Object.fromEntries(all.filter((entry): entry is [string, string] => entry[1] !== undefined))
}

/** @ts-ignore Where the package is not installed, what declarations take from it is `any`: the command line names these. */
