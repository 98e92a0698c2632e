import { createRuntime, type Ledger } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import { createServer, supervise } from '@tallystick/server'
import { serve as listen } from '@tallystick/server/node'
import { type Command, InvalidArgumentError } from 'commander'
import { firstValueFrom, type Observable } from 'rxjs'
import { onLedger } from '../command/arguments.ts'
import { type CommandContext, ledgerSource } from '../command/context.ts'
import { type ExitCode, exitCodes } from '../command/exit-code.ts'
import { type Configured, withConfig } from '../drive/agents.ts'
import { withLedger } from '../runs/open-ledger.ts'
import { untilStopped } from '../terminal/wait.ts'
import type { Done } from '../verbs.ts'

/** What `serve` was given. */
export interface ServeVerbOptions {
  /** Created if it does not exist. */
  readonly ledger: string
  readonly port?: number
  readonly host?: string
  /** Takes up no run on its own. */
  readonly supervise?: boolean
  readonly config?: string
}

/** Declares what `serve` takes. */
export function declareServe(verb: Command, context: CommandContext, done: Done): void {
  onLedger(
    verb,
    'serve the runs of a ledger over HTTP, on this machine only, and resume those that no process drives, until Ctrl-C',
  )
    .option('--port <number>', 'where it listens (default: a free port)', portNumber)
    .option('--host <address>', 'a loopback address of this machine (default: 127.0.0.1)')
    .option('--no-supervise', 'do not resume runs that no process drives')
    .option('--config <file>', 'file that exports the agents (default: the nearest tallystick.config.ts)')
    .action(async (ledger: string, options: Omit<ServeVerbOptions, 'ledger'>) => {
      done(await serve(context, { ledger, ...options }))
    })
}

function portNumber(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw new InvalidArgumentError('It has to be a port: 1 to 65535, or 0 for a free one.')
}

/**
 * `serve`: serves runs of the agents of the configuration to callers with the printed token, and takes up runs that no
 * process drives any more. Ctrl-C lets what is in flight end, and stops.
 */
export function serve(context: CommandContext, options: ServeVerbOptions): Promise<ExitCode> {
  const { ledger: ledgerPath, config: file } = options
  const place = ledgerSource(ledgerPath, context.workingDirectory)
  return untilStopped((stop$) =>
    withConfig(context, { file, context: { verb: 'serve', ledgerPath: place } }, (configured) =>
      withLedger(ledgerPath, 'make', async (ledger) => {
        await serveUntil(stop$, context, { ...options, ledger, configured })
        return exitCodes.ok
      }),
    ),
  )
}

type Served = Omit<ServeVerbOptions, 'ledger'> & { readonly ledger: Ledger; readonly configured: Configured }

async function serveUntil(
  stop$: Observable<unknown>,
  { json, print, say }: CommandContext,
  { ledger, configured, port, host, supervise: isSupervised = true }: Served,
): Promise<void> {
  const { named, agents, prices, rules, context: own } = configured
  const report = (error: unknown, what: string): void =>
    say(`error: ${what}: ${error instanceof Error ? error.message : String(error)}`)
  const runtime = createRuntime({ ledger, agents, host: { report }, ...rules, ...omitUndefined({ prices }) })
  const given = () => own
  const server = createServer({ runtime, agents: named, context: given, report })
  const listening = await listen(server, omitUndefined({ port, host }))
  const supervisor = isSupervised ? supervise({ runtime, ledger, context: given, report }) : undefined
  try {
    const { url } = listening
    await print(
      json
        ? `${JSON.stringify({ url, token: server.token })}\n`
        : `${url}\nauthorization: Bearer ${server.token}\n`,
    )
    say('It answers on this machine only, to requests with that header. Ctrl-C stops it.')
    await firstValueFrom(stop$)
    say('Stopping: what is in flight may end.')
  } finally {
    await supervisor?.stop()
    await listening.close()
  }
}
