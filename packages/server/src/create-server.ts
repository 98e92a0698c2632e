import {
  type Agent,
  type Clock,
  ConfigurationError,
  type Ledger,
  type PendingApproval,
  type RecordedRun,
  type RunId,
  type RunResult,
  type Runtime,
} from '@tallystick/core'
import {
  ContextOfRecord,
  defaultHost,
  option,
  readStart,
  requireOptions,
  type Schema,
} from '@tallystick/core/internal'
import { keepsProjections, type VerifyCheckpointsOptions } from '@tallystick/ledger'
import { Hono } from 'hono'
import { addA2a } from './a2a/routes.ts'
import { addAgUi } from './ag-ui/routes.ts'
import { addChat } from './ai-sdk/routes.ts'
import {
  type ApprovalPage,
  type ApprovalPageOptions,
  createApprovalPage,
  type LinkOptions,
} from './approval-page.ts'
import { createSealedPlaces } from './http/cursors.ts'
import {
  type Authorize,
  createToken,
  type Principal,
  requirePrincipal,
  authorizeToken,
} from './http/principal.ts'
import { isServerFault, toProblemResponse, RefusedRequestError } from './http/problem.ts'
import {
  toCorsHeaders,
  isPreflight,
  isRead,
  requireLoopbackHost,
  requireNoSecretInUrl,
  requireOwnOrigin,
} from './http/request.ts'
import type { RequestScope, Served } from './http/served.ts'
import { addExport, addInspector, type InspectorOptions } from './inspector.ts'
import { toOpenAiErrorResponse } from './openai/answer.ts'
import { addOpenAi } from './openai/routes.ts'
import { Routes } from './http/routes.ts'
import { addCommands } from './runs/commands.ts'
import { addDrive } from './runs/drive.ts'
import { addAllEvents, addEvents } from './runs/events.ts'
import { addInspection } from './runs/inspection.ts'
import { addDataset } from './runs/dataset.ts'
import { addList } from './runs/list.ts'
import { addOverview } from './runs/overview.ts'
import { addAgents, addReads, addSessions } from './runs/reads.ts'
import { addSchedules } from './runs/schedules.ts'
import { addSignals, isSigned, signer, type SignalsOptions } from './runs/signals.ts'
import { addSessionEdits } from './runs/sessions.ts'
import { addStarts } from './runs/start.ts'
import { SharedReads } from './stream/shared-reads.ts'

/**
 * Says that a path is not served, and where the paths of the server begin if the request expects them elsewhere. `roots`
 * are the first segments of its routes.
 */
function explainPath(method: string, path: string, basePath: string, roots: readonly string[]): string {
  const isBelow = path === basePath || path.startsWith(`${basePath}/`)
  const segments = path.slice(isBelow ? basePath.length : 0).split('/')
  const index = segments.findIndex((segment, at) => at > 0 && segment !== '' && roots.includes(segment))
  const route = index < 0 ? undefined : `/${segments.slice(index).join('/')}`
  const mounted = path.slice(0, path.length - (route?.length ?? 0))
  const none = `There is no ${method} ${shortenPath(path)}`
  const isElsewhere = route !== undefined && mounted !== basePath
  if (isBelow && !isElsewhere) return `${none}. GET ${basePath}/openapi.json describes every path.`
  const begin = basePath === '' ? 'at the root, since it has no basePath' : `with ${basePath}, its basePath`
  const all = `${none}: the paths of this server begin ${begin}.`
  if (!isElsewhere) return `${all} Send the request there.`
  const change =
    mounted === '' ? 'leave basePath out' : `give createServer the basePath ${shortenPath(mounted)}`
  return `${all} Send ${method} ${shortenPath(basePath + route)}, or ${change} if requests are to begin so.`
}

function shortenPath(path: string): string {
  return path.slice(0, 200)
}

export interface ServerOptions {
  readonly runtime: Runtime
  /** Default: the ledger of the runtime. Another one is refused: its runs are not those that requests start. */
  readonly ledger?: Ledger | undefined
  /** The agents that callers can start. */
  readonly agents: readonly Agent<unknown>[]
  /** Identifies callers. Without it the server answers only on this machine, and requires `token`. */
  readonly authorize?: Authorize | undefined
  /**
   * Makes the context of a run from what is on record of it: `owner` is the name of the principal that started it. It is
   * asked each time that this process begins to drive the run, whoever decided about it or resumed it. A run whose context
   * cannot be made stays as it is; its caller gets the code `context_unavailable`. May be async.
   */
  readonly context?: ((run: RecordedRun) => unknown) | undefined
  /**
   * False for a process that drives nothing: requests put runs and commands on record, and workers carry them out
   * (`@tallystick/engines`). They are followed through the ledger. It forks no run. Default: true.
   */
  readonly drives?: boolean | undefined
  /**
   * Without `drives`: told of each run that has something to do. What it rejects is reported, and its caller hears nothing of that:
   * the run is on record, and due. Default: nobody is told, and workers find it in the ledger.
   */
  readonly engine?: { wake(wake: RunWake): Promise<void> } | undefined
  /**
   * Called before each request is served, to limit the rate: `false` refuses the request, a number refuses it for so
   * many seconds.
   */
  readonly admit?: Admit | undefined
  /**
   * At least 32 random characters that the processes of one service share, so that each continues a list of runs which
   * another one began. Default: a secret of this process, so that another process refuses its places.
   */
  readonly placeSecret?: string | undefined
  /** Where the server is mounted, such as `/api/agents`. Default: at the root. */
  readonly basePath?: string | undefined
  /** Origins of web pages that may read and send commands, beside the server's own: `https://app.example.com`. */
  readonly origins?: readonly string[] | undefined
  /** The largest body that is read. Default: 1 MB. */
  readonly maxBodyBytes?: number | undefined
  /** How long a body may take to arrive. Default: 10 seconds. */
  readonly bodyTimeoutMs?: number | undefined
  /** The largest headers that are read, in characters. Default: 16 kB. */
  readonly maxHeaderBytes?: number | undefined
  /** How often a stream without events shows that it lives. Default: 15 seconds. */
  readonly heartbeatMs?: number | undefined
  /**
   * Sends readers of `GET /runs/ID/events` the text of replies before it is on record, as events named `live_text` without an
   * id: `{ turn, attempt, part, text, replaces? }`. Only for runs that requests to this process start or resume, and only
   * if the runtime was created with `liveText: true`. Default: false.
   */
  readonly liveText?: boolean | undefined
  /**
   * Serves a page that shows runs at `GET /inspector`, to callers whom `authorize` knows by what a browser sends with it, such
   * as a cookie: it shows the runs that they see, and does what they may. Default: false.
   */
  readonly inspector?: boolean | InspectorOptions | undefined
  /**
   * Signed checkpoints of the ledger (`writeCheckpoint`), and the public key of their signer: `GET /runs/ID/verify` then says up to
   * which event they cover the run, for who may `inspect`. The whole file is read at each such request. Needs a ledger of `@tallystick/ledger`. Default: none.
   */
  readonly checkpoints?: Omit<VerifyCheckpointsOptions, 'runId'> | undefined
  /**
   * Takes events at `POST /signals/NAME` that a webhook has signed, without a caller: each wakes all runs that wait for it. Without it,
   * only callers with the permission `signal` send events.
   */
  readonly signals?: SignalsOptions | undefined
  /**
   * Serves a page at `/approval` on which a person decides about one call, by a link that `approvalLink` signs. It asks for no
   * login: the link is the permission.
   */
  readonly approvalPage?: ApprovalPageOptions | undefined
  /** Gets the faults of the server, which callers do not see. Default: the error output of the host. */
  readonly report?: ((error: unknown, what: string) => void) | undefined
  readonly clock?: Clock | undefined
}

/** A run that has something to do, as an engine is told of it. */
export interface RunWake {
  readonly runId: RunId
  /** Its session, of which one run is driven at a time. */
  readonly key?: string | undefined
  /** Its subject. */
  readonly tenant?: string | undefined
}

/** Decides whether a request is served now. */
export type Admit = (request: Request, principal: Principal) => boolean | number | Promise<boolean | number>

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
  trueOrFalse,
  valueThat,
} = option

/** An object that has these functions. */
function hasMethods(expected: string, ...names: readonly string[]): Schema {
  return valueThat(expected, (value) => names.every((name) => typeof Object(value)[name] === 'function'))
}

const origin = valueThat(
  'an origin such as https://app.example.com, without a path',
  (value) => typeof value === 'string' && URL.canParse(value) && new URL(value).origin === value,
)
const basePath = valueThat(
  'a path that begins with / and does not end with it',
  (value) => typeof value === 'string' && /^(?:\/[\w.~-]+)*$/.test(value),
)

const secretText = valueThat(
  'a secret of at least 32 characters',
  (value) => typeof value === 'string' && value.length >= 32,
)

const signingSecret = valueThat(
  'a secret of webhooks: whsec_ and base64 of at least 24 bytes, or a text of at least 32 characters',
  (value) => typeof value === 'string' && /^(?:whsec_[\w+/]{32,}={0,2}|(?!whsec_).{32,})$/.test(value),
)
const approvalPageOptions = fields<ApprovalPageOptions>({
  secret: (value) => (typeof value === 'string' ? secretText : listOf(secretText))(value),
  url: valueThat(
    'where people reach this server, such as https://ops.example.com',
    (value) => typeof value === 'string' && /^https?:\/\/[^?#]+$/.test(value) && URL.canParse(value),
  ),
})

const inspectorOptions = fields<InspectorOptions>({ title: maybe(anyText), isImported: maybe(trueOrFalse) })
const checkpoints = fields<NonNullable<ServerOptions['checkpoints']>>({
  file: filledText,
  publicKey: valueThat('a public key, as PEM, a KeyObject, or the line of signed notes', (value) =>
    ['string', 'object'].includes(typeof value),
  ),
  origin: maybe(anyText),
})

const serverOptions = fields<ServerOptions>(
  {
    runtime: hasMethods('a runtime, such as createRuntime({ ledger }) makes', 'run', 'resume', 'drain'),
    ledger: maybe(hasMethods('the ledger of the runtime', 'read', 'runs', 'changes')),
    agents: listOf(anyObject),
    authorize: maybe(anyFunction),
    context: maybe(anyFunction),
    drives: maybe(trueOrFalse),
    engine: maybe(hasMethods('an engine, such as pgBossEngine({ boss }) makes', 'wake')),
    admit: maybe(anyFunction),
    placeSecret: maybe(secretText),
    basePath: maybe(basePath),
    origins: maybe(listOf(origin)),
    maxBodyBytes: maybe(numberFrom(1, { whole: true })),
    bodyTimeoutMs: maybe(milliseconds),
    maxHeaderBytes: maybe(numberFrom(1_000, { whole: true })),
    heartbeatMs: maybe(milliseconds),
    liveText: maybe(trueOrFalse),
    signals: maybe(fields<SignalsOptions>({ secret: signingSecret })),
    inspector: maybe((value) => (typeof value === 'boolean' ? undefined : inspectorOptions(value))),
    checkpoints: maybe(checkpoints),
    approvalPage: maybe(approvalPageOptions),
    report: maybe(anyFunction),
    clock: maybe(anyObject),
  },
  { cors: 'origins', auth: 'authorize', authenticate: 'authorize', prefix: 'basePath', rateLimit: 'admit' },
)

/** Refuses options that no server can have. */
function requireServerOptions(options: ServerOptions): void {
  requireOptions('createServer', serverOptions, options)
  const { runtime, ledger = runtime.ledger } = options
  if (ledger !== runtime.ledger) {
    throw new ConfigurationError(
      'createServer: ledger is not the ledger of the runtime, so requests would start runs that later ones could not find. Leave it out.',
    )
  }
  if (options.drives === false && options.liveText === true) {
    throw new ConfigurationError(
      'createServer: liveText needs a process that drives runs, and drives is false. Leave one of them out.',
    )
  }
  if (options.checkpoints !== undefined && !keepsProjections(ledger)) {
    throw new ConfigurationError(
      'createServer: checkpoints sign the chain of hashes of a ledger, and this one keeps none. Use a ledger of @tallystick/ledger, or leave checkpoints out.',
    )
  }
  if (options.drives !== false && options.engine !== undefined) {
    throw new ConfigurationError(
      'createServer: engine wakes the runs of a process that drives none. Give drives: false too, or leave engine out.',
    )
  }
  requireOptions(
    'createServer',
    listOf(filledText),
    options.agents.map(({ name }) => name),
    'agents',
  )
  const names = new Set<string>()
  for (const { name } of options.agents) {
    if (names.has(name)) {
      throw new ConfigurationError(
        `createServer: two agents have the name ${name}. Give one of them another.`,
      )
    }
    names.add(name)
  }
}

/** A server of runs, for any host that speaks `Request` and `Response`. */
export interface Server {
  /** Answers a request. Never rejects: a failure is a response. */
  readonly fetch: (request: Request) => Promise<Response>
  /** Without `authorize`: what a request sends as `authorization: Bearer …`. */
  readonly token?: string
  /**
   * With `approvalPage`: a link on which one person decides about a call that waits. Throws a `ConfigurationError` without that
   * option.
   */
  approvalLink(approval: PendingApproval, options: LinkOptions): string
  /**
   * For a stop signal: starts nothing new, gives work in flight up to `graceMs` (5 seconds) to end, ends the streams
   * after the last event, and returns the runs as they stopped. Readers reconnect to another process.
   */
  drain(graceMs?: number): Promise<readonly RunResult[]>
}

/** Serves the runs of a ledger over HTTP. Throws a `ConfigurationError` for options that cannot work. */
export function createServer(options: ServerOptions): Server {
  requireServerOptions(options)
  const { runtime, basePath = '', clock = defaultHost.clock, report = defaultHost.report } = options
  const { ledger } = runtime
  const token = options.authorize ? undefined : createToken()
  const stop = new AbortController()
  let isDraining = false
  const served: Served = {
    runtime,
    ledger,
    agents: new Map(options.agents.map((agent) => [agent.name, agent])),
    context: options.context && new ContextOfRecord(options.context),
    wake: options.drives === false ? (runId) => wakeRun(runId, options) : undefined,
    basePath,
    body: {
      maxBodyBytes: options.maxBodyBytes ?? 1_000_000,
      bodyTimeoutMs: options.bodyTimeoutMs ?? 10_000,
      clock,
    },
    checkpoints: options.checkpoints,
    places: createSealedPlaces(options.placeSecret),
    reads: new SharedReads(ledger),
    liveRuns: options.liveText === true ? new Map() : undefined,
    stream: { clock, heartbeatMs: options.heartbeatMs ?? 15_000, stopping: stop.signal, report },
  }
  const page = options.approvalPage && createApprovalPage(served, options.approvalPage)
  const app = createApp(served, options, { token, page })
  const handle = async (request: Request): Promise<Response> => {
    try {
      if (isDraining && !isRead(request)) {
        throw new RefusedRequestError(
          503,
          'stopping',
          'This process is stopping. Send the request to another one.',
        )
      }
      return await app.fetch(request)
    } catch (error) {
      const { pathname } = new URL(request.url)
      if (isServerFault(error)) report(error, `${request.method} ${pathname} failed`)
      return pathname.startsWith(`${basePath}/v1/`) ? toOpenAiErrorResponse(error) : toProblemResponse(error)
    }
  }
  return {
    async fetch(request) {
      const { status, body, headers: given } = await handle(request)
      // No page of another origin reads a response, and no browser guesses its type.
      const headers = new Headers(given)
      headers.set('x-content-type-options', 'nosniff')
      for (const [name, value] of toCorsHeaders(request, options.origins ?? [])) headers.set(name, value)
      return new Response(body, { status, headers })
    },
    ...(token !== undefined && { token }),
    approvalLink(approval, given) {
      if (page) return page.link(approval, given)
      throw new ConfigurationError(
        'approvalLink: this server has no page for approvals. Give createServer the option approvalPage: { secret, url }.',
      )
    },
    async drain(graceMs) {
      isDraining = true
      try {
        return await runtime.drain(graceMs)
      } finally {
        stop.abort()
      }
    },
  }
}

/** Tells the engine of a run. Never rejects: a sender that heard of a failure would take what is on record for not done. */
async function wakeRun(
  runId: RunId,
  { runtime, engine, report = defaultHost.report }: ServerOptions,
): Promise<void> {
  try {
    if (engine === undefined) return
    const { sessionId, subject } = (await readStart(runtime.ledger, runId)) ?? {}
    await engine.wake({ runId, key: sessionId, tenant: subject })
  } catch (error) {
    report(error, `Run ${runId} was not woken. It is on record, and a worker that polls the ledger finds it`)
  }
}

function createApp(
  served: Served,
  options: ServerOptions,
  { token, page }: { readonly token: string | undefined; readonly page: ApprovalPage | undefined },
): Hono<RequestScope> {
  const app = new Hono<RequestScope>().basePath(served.basePath === '' ? '/' : served.basePath)
  const routes = new Routes(app, served)
  const { origins = [], maxHeaderBytes = 16_384, admit } = options
  const authorize = options.authorize ?? authorizeToken(token ?? '')
  app.onError((error) => {
    throw error
  })
  app.notFound(({ req: { method, path } }) => {
    const what = explainPath(method, path, served.basePath, routes.roots)
    throw new RefusedRequestError(404, 'not_found', what)
  })
  // Before callers are identified: a link names its person.
  page?.addTo(routes)
  app.use(async (context, next) => {
    const request = context.req.raw
    const url = new URL(request.url)
    requireMethod(request)
    requireShortHeaders(request, maxHeaderBytes)
    if (token !== undefined) requireLoopbackHost(request, url)
    requireNoSecretInUrl(url)
    requireOwnOrigin(request, url, origins)
    if (isPreflight(request, origins)) return new Response(null, { status: 204 })
    const bare = new Request(url, { method: request.method, headers: request.headers })
    const isWebhook = options.signals !== undefined && isSigned(request, served.basePath)
    const principal = isWebhook ? signer : await authorize(bare)
    if (principal === undefined) {
      throw new RefusedRequestError(
        401,
        'unauthorized',
        'The request does not name a caller that this server knows. Send authorization: Bearer TOKEN.',
        { headers: { 'www-authenticate': 'Bearer' } },
      )
    }
    requirePrincipal(principal)
    const admission = (await admit?.(bare, principal)) ?? true
    if (admission !== true) {
      throw new RefusedRequestError(
        429,
        'too_many_requests',
        'You have sent too many requests. Wait before the next one.',
        { headers: { 'retry-after': String(Math.max(1, Math.ceil(Number(admission)))) } },
      )
    }
    context.set('principal', principal)
    return await next()
  })
  addAgents(routes)
  addStarts(routes)
  addSchedules(routes)
  addSignals(routes, options.signals)
  addList(routes)
  addDataset(routes)
  addReads(routes)
  addInspection(routes)
  addEvents(routes)
  addCommands(routes)
  addDrive(routes)
  addAllEvents(routes)
  addSessions(routes)
  addSessionEdits(routes)
  addOverview(routes)
  addChat(routes)
  addAgUi(routes)
  addOpenAi(routes)
  addA2a(routes)
  addExport(routes)
  const { inspector } = options
  addInspector(routes, inspector === true ? {} : inspector || undefined)
  routes.addDocument()
  return app
}

/** A `Request` cannot be made of these methods, which echo or tunnel: no code of an application would meet them. */
const unservedMethods = new Set(['TRACE', 'TRACK', 'CONNECT'])

function requireMethod({ method }: Request): void {
  if (!unservedMethods.has(method.toUpperCase())) return
  throw new RefusedRequestError(
    405,
    'method_not_allowed',
    `${method} is not answered here. Send GET or POST; GET /openapi.json describes every path.`,
    { headers: { allow: 'GET, HEAD, POST, OPTIONS' } },
  )
}

function requireShortHeaders(request: Request, maxBytes: number): void {
  let length = request.url.length
  for (const [name, value] of request.headers) length += name.length + value.length + 4
  if (length <= maxBytes) return
  throw new RefusedRequestError(
    413,
    'headers_too_large',
    `The headers are longer than ${maxBytes} characters. Send fewer, or shorter ones.`,
  )
}
