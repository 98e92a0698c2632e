import { ConfigurationError, type Agent, type Clock, type Ledger, type Runtime } from '@tallystick/core'
import { option, requireOptions, type OptionCheck, type RecordedRun } from '@tallystick/core/kit'
import type { Authorize, Principal } from '../access/principal.ts'

/** What a server serves, and to whom. */
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
  /** Gets the faults of the server, which callers do not see. Default: the error output of the host. */
  readonly report?: ((error: unknown, what: string) => void) | undefined
  readonly clock?: Clock | undefined
}

/** Decides whether a request is served now. */
export type Admit = (request: Request, principal: Principal) => boolean | number | Promise<boolean | number>

const { anyFunction, anyObject, fields, filledText, listOf, maybe, milliseconds, numberFrom, valueThat } =
  option

/** An object that has these functions. */
function having(expected: string, ...names: readonly string[]): OptionCheck {
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

const minSecret = 32
const secretText = valueThat(
  `a secret of at least ${minSecret} characters`,
  (value) => typeof value === 'string' && value.length >= minSecret,
)

const serverOptions = fields<ServerOptions>(
  {
    runtime: having('a runtime, such as createRuntime({ ledger }) makes', 'run', 'resume', 'drain'),
    ledger: maybe(having('the ledger of the runtime', 'read', 'runs', 'changes')),
    agents: listOf(anyObject),
    authorize: maybe(anyFunction),
    context: maybe(anyFunction),
    admit: maybe(anyFunction),
    placeSecret: maybe(secretText),
    basePath: maybe(basePath),
    origins: maybe(listOf(origin)),
    maxBodyBytes: maybe(numberFrom(1, { whole: true })),
    bodyTimeoutMs: maybe(milliseconds),
    maxHeaderBytes: maybe(numberFrom(1_000, { whole: true })),
    heartbeatMs: maybe(milliseconds),
    report: maybe(anyFunction),
    clock: maybe(anyObject),
  },
  { cors: 'origins', auth: 'authorize', authenticate: 'authorize', prefix: 'basePath', rateLimit: 'admit' },
)

/** Refuses options that no server can have. */
export function requireServerOptions(options: ServerOptions): void {
  requireOptions('createServer', serverOptions, options)
  const { runtime, ledger = runtime.ledger } = options
  if (ledger !== runtime.ledger) {
    throw new ConfigurationError(
      'createServer: ledger is not the ledger of the runtime, so requests would start runs that none of them finds again. Leave it out.',
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
