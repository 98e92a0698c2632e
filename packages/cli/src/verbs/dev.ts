import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import type { Command } from '@commander-js/extra-typings'
import { ConfigurationError } from '@tallystick/core'
import { debounceTime, firstValueFrom, from, ignoreElements, map, merge, tap } from 'rxjs'
import { configHelp, parsePort, rolesHelp } from '../command/arguments.ts'
import { type CommandContext, toLedgerSource } from '../command/context.ts'
import { withConfig } from '../drive/agents.ts'
import { findConfig } from '../drive/config.ts'
import { LoadedFiles, reportLoadedFiles } from '../drive/loaded-files.ts'
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
  readonly role?: readonly string[]
  readonly port?: number
  readonly open: boolean
  readonly config?: string
}

/** Saving a file may take several steps, and saving all of them somewhat longer. */
const settleMs = 100

/**
 * Declares `dev`. It starts the process that serves anew whenever a file changes that this has loaded: the configuration, and all
 * that it imports.
 */
export function declareDev(verb: Command, context: CommandContext): void {
  verb
    .description(
      'work on your agents: start runs in a page in your browser and look into them; a changed configuration, or what it imports, takes effect at once, and runs under way continue with it. It is served on this machine only, to one browser, until Ctrl-C',
    )
    .argument('<ledger>', 'file or connection string of the ledger, which is created if it does not exist')
    .option('--role <names...>', rolesHelp)
    .option('--port <number>', 'port to listen on (default: a free port)', parsePort)
    .option('--no-open', 'only print the URL')
    .option('--config <file>', configHelp)
    .action(async (place, options) => {
      const folder = process.env[doorVariable]
      if (folder === undefined) return await restartOnChange(context, place, options)
      reportLoadedFiles()
      // The parent may be killed, and would leave this process to nobody.
      process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
      process.channel?.unref()
      // Tools of agents start programs, which are not to find the door.
      delete process.env[doorVariable]
      await serveOnce(context, place, { ...options, door: Door.open(folder) })
    })
}

async function restartOnChange(
  context: CommandContext,
  place: string,
  { role = [], port, open, config: file }: DevOptions,
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
    const words = [
      'dev',
      place,
      ...role.flatMap((name) => ['--role', name]),
      '--port',
      `${port ?? (await findFreePort())}`,
      ...(open ? [] : ['--no-open']),
      '--config',
      config,
    ]
    const start = (): ChildProcess =>
      spawn(process.execPath, [...process.execArgv, program, ...words], {
        cwd: workingDirectory,
        env: { ...process.env, [doorVariable]: door.folder },
        stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
      })
    await runUntilStopped(async (stop$) => {
      let before: LoadedFiles | undefined
      for (;;) {
        const child = start()
        using files = new LoadedFiles(child, before)
        const ended = once(child, 'exit')
        const waitForChange = (): void =>
          context.say('Waiting for a change of the configuration, or of a file that it imports.')
        const isStopped = await firstValueFrom(
          merge(
            files.changed$.pipe(
              debounceTime(settleMs),
              map(() => false),
            ),
            stop$.pipe(map(() => true)),
            from(ended).pipe(tap(waitForChange), ignoreElements()),
          ),
        )
        // Ctrl-C reaches all processes of a terminal; another signal only this one.
        child.kill('SIGTERM')
        const hanging = setTimeout(() => child.kill('SIGKILL'), 10 * graceMs)
        await ended
        clearTimeout(hanging)
        if (isStopped) return
        before = files
      }
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
  { role: roles, port, open: isOpened, config: file, door }: DevOptions & { readonly door: Door },
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
          roles,
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
