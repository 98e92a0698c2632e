import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import type { Command } from '@commander-js/extra-typings'
import { ConfigurationError } from '@tallystick/core'
import { firstValueFrom } from 'rxjs'
import { configHelp, parsePort } from '../command/arguments.ts'
import { type CommandContext, toLedgerSource } from '../command/context.ts'
import { withConfig } from '../drive/agents.ts'
import { findConfig } from '../drive/config.ts'
import { Door } from '../inspector/door.ts'
import { offerEntry } from '../inspector/enter.ts'
import { serveInspector } from '../inspector/serve-inspector.ts'
import { withSource } from '../inspector/source.ts'
import { runUntilStopped } from '../terminal/wait.ts'
import { allPermissions } from './inspect.ts'

/** Tells a process that it is the one to be started anew, and where the door is that it shares with those before it. */
const doorVariable = 'TALLYSTICK_DEV_DOOR'

/** A restart gives what is in flight so long to end; what does not is resumed. */
const graceMs = 500

interface DevOptions {
  readonly port?: number
  readonly open: boolean
  readonly config?: string
}

/**
 * Declares `dev`. Node's watch mode starts the process that serves anew whenever a file changes that it has loaded, which are the
 * configuration and all that this imports.
 */
export function declareDev(verb: Command, context: CommandContext): void {
  verb
    .description(
      'work on your agents: start runs in a page in your browser and look into them; a changed configuration, or what it imports, takes effect at once, and runs under way continue with it. It is served on this machine only, to one browser, until Ctrl-C',
    )
    .argument('<ledger>', 'file or connection string of the ledger, which is created if it does not exist')
    .option('--port <number>', 'port to listen on (default: a free port)', parsePort)
    .option('--no-open', 'only print the URL')
    .option('--config <file>', configHelp)
    .action(async (place, options) => {
      const folder = process.env[doorVariable]
      if (folder === undefined) return await watch(context, place, options)
      // Tools of agents start programs, which are not to find the door.
      delete process.env[doorVariable]
      await serveOnce(context, place, { ...options, door: Door.open(folder) })
    })
}

async function watch(
  context: CommandContext,
  place: string,
  { port, open, config: file }: DevOptions,
): Promise<void> {
  const { workingDirectory } = context
  const [, program] = process.argv
  if (program === undefined)
    throw new ConfigurationError(
      'dev starts its program again, and there is no file of it. Run tallystick dev.',
    )
  const config = findConfig({ workingDirectory, ...(file !== undefined && { file }) })
  const door = Door.make()
  try {
    await runUntilStopped(async (stop$) => {
      const words = [
        'dev',
        place,
        '--port',
        `${port ?? (await findFreePort())}`,
        ...(open ? [] : ['--no-open']),
        '--config',
        config,
      ]
      const child = spawn(
        process.execPath,
        [...process.execArgv, '--watch', '--watch-preserve-output', program, ...words],
        { cwd: workingDirectory, env: { ...process.env, [doorVariable]: door.folder }, stdio: 'inherit' },
      )
      const ended = once(child, 'exit')
      // Ctrl-C reaches all processes of a terminal; another signal only this one.
      const stopping = stop$.subscribe(() => {
        child.kill('SIGTERM')
        // Watch mode waits for ever for the end of a process that had ended before the signal.
        setTimeout(() => child.kill('SIGKILL'), 10 * graceMs).unref()
      })
      await ended
      stopping.unsubscribe()
    })
  } finally {
    door.remove()
  }
}

async function findFreePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}

async function serveOnce(
  context: CommandContext,
  place: string,
  { port, open: isOpened, config: file, door }: DevOptions & { readonly door: Door },
): Promise<void> {
  const { workingDirectory, say } = context
  const configContext = { verb: 'dev', ledgerPath: toLedgerSource(place, workingDirectory) } as const
  const howToEnter =
    'Press Enter in the terminal of <code>tallystick dev</code>: it prints a link, which lets one browser in.'
  await runUntilStopped((stop$) =>
    withConfig(context, { file, context: configContext }, (configured) =>
      withSource(context, place, 'make', async ({ ledger, title }) => {
        const setup = {
          ledger,
          title,
          isImported: false,
          configured,
          may: allPermissions,
          supervises: true,
          door,
          port,
          howToEnter,
        }
        const listening = await serveInspector(context, setup)
        try {
          const makeUrl = (): string => listening.url + door.issueTicket()
          const isFirst = door.claimFirst()
          say(isFirst ? 'It answers on this machine only. Ctrl-C stops it.' : 'The agents are loaded anew.')
          const stopOffering = await offerEntry(context, { makeUrl, isOpened, isFirst })
          await firstValueFrom(stop$)
          stopOffering()
        } finally {
          await listening.close(graceMs)
        }
      }),
    ),
  )
}
