import { createRuntime, type Ledger } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import { createServer, supervise } from '@tallystick/server'
import { serve as listen } from '@tallystick/server/node'
import { type Command, InvalidArgumentError } from 'commander'
import { firstValueFrom, type Observable } from 'rxjs'
import { declareLedger } from '../command/arguments.ts'
import { type CommandContext, toLedgerSource, printEither } from '../command/context.ts'
import { type Configured, withConfig } from '../drive/agents.ts'
import { withLedger } from '../runs/open-ledger.ts'
import { runUntilStopped } from '../terminal/wait.ts'

interface ServeOptions {
  readonly port?: number
  readonly host?: string
  readonly supervise: boolean
  readonly config?: string
}

/** Declares `serve`. Callers need the printed token. Ctrl-C lets what is in flight end, and stops. */
export function declareServe(verb: Command, context: CommandContext): void {
  declareLedger(
    verb,
    'serve the runs of a ledger over HTTP, on this machine only, and resume those that no process drives, until Ctrl-C',
  )
    .option('--port <number>', 'port to listen on (default: a free port)', parsePort)
    .option('--host <address>', 'loopback address to listen on (default: 127.0.0.1)')
    .option('--no-supervise', 'do not resume runs that no process drives')
    .option('--config <file>', 'file that exports the agents (default: the nearest tallystick.config.ts)')
    .action(async (ledgerPath: string, options: ServeOptions) => {
      const place = toLedgerSource(ledgerPath, context.workingDirectory)
      const config = { file: options.config, context: { verb: 'serve' as const, ledgerPath: place } }
      await runUntilStopped((stop$) =>
        withConfig(context, config, (configured) =>
          withLedger(ledgerPath, 'make', (ledger) =>
            serveUntil(stop$, context, { ...options, ledger, configured }),
          ),
        ),
      )
    })
}

function parsePort(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw new InvalidArgumentError('It has to be a port: 1 to 65535, or 0 for a free one.')
}

interface Served extends ServeOptions {
  readonly ledger: Ledger
  readonly configured: Configured
}

async function serveUntil(
  stop$: Observable<unknown>,
  context: CommandContext,
  { ledger, configured, port, host, supervise: isSupervised }: Served,
): Promise<void> {
  const { say } = context
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
    const { token } = server
    await printEither(context, { url, token }, `${url}\nauthorization: Bearer ${token}\n`)
    say('It answers on this machine only, to requests with that header. Ctrl-C stops it.')
    await firstValueFrom(stop$)
    say('Stopping: what is in flight may end.')
  } finally {
    await supervisor?.stop()
    await listening.close()
  }
}
