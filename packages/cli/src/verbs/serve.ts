import { omitUndefined } from '@tallystick/core/internal'
import { startWorker } from '@tallystick/engines'
import { pollingEngine } from '@tallystick/engines/polling'
import { createServer } from '@tallystick/server'
import { serve as listen } from '@tallystick/server/node'
import type { Command } from '@commander-js/extra-typings'
import { firstValueFrom } from 'rxjs'
import { configHelp, declareLedger, parsePort } from '../command/arguments.ts'
import { type CommandContext, toLedgerSource, printEither } from '../command/context.ts'
import { createConfiguredRuntime, withConfig } from '../drive/agents.ts'
import { withLedger } from '../runs/open-ledger.ts'
import { runUntilStopped } from '../terminal/wait.ts'

/** Declares `serve`. Callers need the printed token. Ctrl-C lets what is in flight end, and stops. */
export function declareServe(verb: Command, context: CommandContext): void {
  declareLedger(
    verb,
    'serve the runs of a ledger over HTTP, on this machine only, and resume those that no process drives, until Ctrl-C',
  )
    .option('--port <number>', 'port to listen on (default: a free port)', parsePort)
    .option('--host <address>', 'loopback address to listen on (default: 127.0.0.1)')
    .option('--no-supervise', 'do not resume runs that no process drives')
    .option('--config <file>', configHelp)
    .action(async (ledgerPath, { port, host, supervise: isSupervised, config: file }) => {
      const { say, workingDirectory } = context
      const report = (error: unknown, what: string): void =>
        say(`error: ${what}: ${error instanceof Error ? error.message : String(error)}`)
      const verbContext = { verb: 'serve', ledgerPath: toLedgerSource(ledgerPath, workingDirectory) } as const
      await runUntilStopped((stop$) =>
        withConfig(context, { file, context: verbContext }, (configured) =>
          withLedger(ledgerPath, 'make', async (ledger) => {
            const runtime = createConfiguredRuntime(ledger, configured, { report })
            const given = () => configured.context
            const server = createServer({ runtime, agents: configured.named, context: given, report })
            const listening = await listen(server, omitUndefined({ port, host }))
            const engine = pollingEngine({ ledger, report })
            const worker = isSupervised
              ? await startWorker({ runtime, engine, context: configured.context })
              : undefined
            try {
              const { url } = listening
              const { token } = server
              await printEither(context, { url, token }, `${url}\nauthorization: Bearer ${token}\n`)
              say('It answers on this machine only, to requests with that header. Ctrl-C stops it.')
              await firstValueFrom(stop$)
              say('Stopping: what is in flight may end.')
            } finally {
              await Promise.all([worker?.stop(5_000), listening.close()])
            }
          }),
        ),
      )
    })
}
