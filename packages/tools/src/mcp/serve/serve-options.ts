import type { Clock, Runtime, Tool } from '@tallystick/core'
import { option, type OptionCheck } from '@tallystick/core/kit'
import type { ServedCall } from './served-call.ts'

/** How tools are served. */
export interface ServeMcpOptions {
  /** What the server calls itself. Default `tallystick`. */
  readonly name?: string | undefined
  /** Default `1.0.0`. */
  readonly version?: string | undefined
  /** For the model of the client: what the tools are about. */
  readonly instructions?: string | undefined
  /** Serves over HTTP instead of the standard input and output of this process. */
  readonly http?: ServeHttpOptions | undefined
  /** Runs the agents among the tools (`agentTool`): each call is a run in its ledger. */
  readonly runtime?: Runtime | undefined
  /** Decides about calls that need an approval. Default: they are refused. */
  readonly approve?: ((call: ServedCall) => boolean | Promise<boolean>) | undefined
  /** The context of the calls. */
  readonly context?: unknown
  /** The clock that `timeoutMs` of tools is measured by. Default: the host's. */
  readonly timers?: Pick<Clock, 'schedule'> | undefined
}

/** Where an HTTP server listens. */
export interface ServeHttpOptions {
  /** Default 0: a port that is free. */
  readonly port?: number | undefined
  /** Default `127.0.0.1`. Another one needs a `token`. */
  readonly host?: string | undefined
  /** Clients have to send it as `authorization: Bearer …`. At least 16 characters. */
  readonly token?: string | undefined
}

const { anyFunction, anyObject, fields, filledText, listOf, maybe, valueThat } = option

/** What can be given as options. */
export const serveOptions: OptionCheck = fields<ServeMcpOptions>(
  {
    name: maybe(filledText),
    version: maybe(filledText),
    instructions: maybe(filledText),
    http: maybe(
      fields<ServeHttpOptions>({
        port: maybe(
          valueThat(
            'a port from 1 to 65535, or 0 for a free one',
            (value) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 65_535,
          ),
        ),
        host: maybe(filledText),
        token: maybe(
          valueThat(
            'a text of at least 16 characters',
            (value) => typeof value === 'string' && value.length >= 16,
          ),
        ),
      }),
    ),
    runtime: maybe(anyObject),
    approve: maybe(anyFunction),
    context: maybe(valueThat('anything', () => true)),
    timers: maybe(anyObject),
  },
  { port: 'http', transport: 'http', onApproval: 'approve' },
)

/** What can be given as tools. */
export const toolList: OptionCheck = listOf(
  valueThat('a tool, such as defineTool makes it', (value) => {
    const { name, run, check } = Object(value) as Partial<Tool>
    return typeof name === 'string' && typeof run === 'function' && typeof check === 'function'
  }),
)
