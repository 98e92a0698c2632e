import type { RunId } from '@tallystick/core'
import { verifyCheckpoints } from '@tallystick/ledger'
import type { Permission } from '@tallystick/server'
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { firstValueFrom } from 'rxjs'
import {
  configHelp,
  declareLedger,
  originHelp,
  parsePort,
  publicKeyHelp,
  readCheckpointOptions,
  rolesHelp,
} from '../command/arguments.ts'
import { type CommandContext, formatCommand, toLedgerSource } from '../command/context.ts'
import { type Configured, withConfig } from '../drive/agents.ts'
import { hasConfig } from '../drive/config.ts'
import { Door } from '../inspector/door.ts'
import { offerEntry } from '../inspector/enter.ts'
import { serveInspector } from '../inspector/serve-inspector.ts'
import { withSource } from '../inspector/source.ts'
import { runUntilStopped } from '../terminal/wait.ts'

/** What the page can be allowed beside reading, and the permissions of each. */
const allowances = {
  decisions: ['approve', 'deny', 'withdraw', 'settle', 'cancel', 'raise', 'steer', 'queue', 'resume'],
  feedback: ['feedback'],
  forks: ['fork'],
  starts: ['start'],
} as const satisfies Readonly<Record<string, readonly Permission[]>>

type Allowance = keyof typeof allowances

const allowanceNames = Object.keys(allowances) as readonly Allowance[]

/** All that the page can be allowed. */
export const allPermissions: readonly Permission[] = Object.values(allowances).flat()

/** Declares `inspect`. It changes nothing that `--allow` does not name. */
export function declareInspect(verb: Command, context: CommandContext): void {
  declareLedger(
    verb,
    'open a page that shows every run at any moment, of a ledger, an export or a folder of exports. It is served on this machine only, to one browser, until Ctrl-C',
  )
    .option(
      '--allow <list>',
      `what the page may do beside reading: ${allowanceNames.join(', ')}`,
      parseAllowances,
    )
    .option('--role <names...>', rolesHelp)
    .option('--port <number>', 'port to listen on (default: a free port)', parsePort)
    .option('--no-open', 'only print the URL')
    .option('--config <file>', `${configHelp}, to fork, start, resume and replay runs`)
    .option('--checkpoints <file>', 'show up to which event these signed checkpoints cover a run')
    .option('--public-key <file>', publicKeyHelp)
    .option('--origin <name>', originHelp)
    .action(async (place, { allow = [], role: roles, port, open: isOpened, config: file, ...given }) => {
      const checkpoints = readCheckpointOptions(given)
      const { workingDirectory, say, programName } = context
      const may = allow.flatMap((each): readonly Permission[] => allowances[each])
      const withAgents = async (use: (configured?: Configured) => Promise<void>): Promise<void> => {
        const isNeeded = file !== undefined || allow.includes('forks') || allow.includes('starts')
        // A decision also counts where no agent is known: it goes on record.
        if (!isNeeded && (may.length === 0 || !hasConfig({ workingDirectory }))) return await use()
        const ledgerPath = toLedgerSource(place, workingDirectory)
        await withConfig(context, { file, context: { verb: 'inspect', ledgerPath } }, use)
      }
      await runUntilStopped((stop$) =>
        withSource(context, place, may.length > 0 ? 'write' : 'read', async ({ ledger, title, isCopy }) => {
          // What cannot be used is said now, and not to a browser.
          if (checkpoints) await verifyCheckpoints(ledger, { ...checkpoints, runId: '' as RunId })
          await withAgents(async (configured) => {
            const door = Door.make()
            const howToEnter = `Run <code>${formatCommand(programName, 'inspect')}</code> again: it prints a link, which lets one browser in.`
            try {
              const setup = {
                ...{ ledger, title, isImported: isCopy, checkpoints, configured, may, roles },
                ...{ supervises: false, door, port, howToEnter },
              }
              await using listening = await serveInspector(context, setup)
              say(describeRights(allow, isCopy))
              const makeUrl = (): string => listening.url + door.issueTicket()
              const stopOffering = await offerEntry(context, { makeUrl, isOpened })
              await firstValueFrom(stop$)
              stopOffering()
            } finally {
              door.remove()
            }
          })
        }),
      )
    })
}

function describeRights(allow: readonly Allowance[], isCopy: boolean): string {
  const where = 'It answers on this machine only. Ctrl-C stops it.'
  if (allow.length === 0) return `The page only reads. ${where}`
  const kept = isCopy ? ', which is kept in memory and gone after Ctrl-C' : ''
  return `The page reads, and does what you allow: ${allow.join(', ')}${kept}. ${where}`
}

function parseAllowances(text: string): readonly Allowance[] {
  const given = text.split(',').map((each) => each.trim())
  const unknown = given.find((each) => !allowanceNames.includes(each as Allowance))
  if (unknown === undefined) return [...new Set(given as Allowance[])]
  throw new InvalidArgumentError(
    `${unknown === '' ? 'An empty name' : unknown} is none of ${allowanceNames.join(', ')}. Write them with commas, such as decisions,forks.`,
  )
}
