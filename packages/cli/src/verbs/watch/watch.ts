import { Option, type Command } from 'commander'
import { addVerb, type Done } from '../../command/add-verb.ts'
import type { CommandContext } from '../../command/command-context.ts'
import { CommandError, type ExitCode } from '../../command/exit-code.ts'
import { positiveNumber, wholeNumber } from '../../command/parse-args.ts'
import type { StatsOptions } from './stats.ts'
import { statsParts } from '../../view/list/stats-parts.ts'

/** The options of `tail`. */
interface TailWords {
  readonly from?: number
  readonly untilRest?: boolean
  readonly after?: string
}

/** Adds what looks at runs over time, and beside each other. */
export function addWatchVerbs(program: Command, context: CommandContext, done: Done): void {
  addVerb(program, 'tail', 'follow a run live, or all of them, whichever process drives them')
    .argument('[run]', 'id of the run (default: every run)')
    .option('--from <seq>', 'of a run: from this event on (default: from the first)', wholeNumber)
    .option('--until-rest', 'of a run: end where it is suspended, too')
    .option('--after <cursor>', 'of every run: behind this cursor, as --json prints it')
    .action(async (ledger: string, run: string | undefined, options: TailWords) => {
      done(await tailGiven(context, ledger, run, options))
    })
  addVerb(program, 'diff', 'show where two runs part, such as a run and its fork, side by side')
    .summary('show where two runs part, side by side')
    .argument('<run>', 'id of the one run')
    .argument('<other>', 'id of the other')
    .action(async (ledger: string, left: string, right: string) => {
      const { diff } = await import('./diff.ts')
      done(await diff(context, { ledger, left, right }))
    })
  addVerb(program, 'stats', 'tell what waits, what went wrong and why, and what the last days cost')
    .summary('tell what waits, what failed and why, and what it cost')
    .option('--days <n>', 'how many days back, ends and costs (default: 7)', positiveNumber)
    .addOption(
      new Option('--by <part>', 'tell costs by day, or what sessions come to, as well').choices(statsParts),
    )
    .action(async (ledger: string, options: Omit<StatsOptions, 'ledger'>) => {
      const { stats } = await import('./stats.ts')
      done(await stats(context, { ledger, ...options }))
    })
}

/** Follows a run, or all of them where none is named. */
async function tailGiven(
  context: CommandContext,
  ledger: string,
  run: string | undefined,
  { after, ...ofRun }: TailWords,
): Promise<ExitCode> {
  if (run === undefined && (ofRun.from !== undefined || ofRun.untilRest === true)) {
    throw new CommandError('usage', '--from and --until-rest belong to one run. Name it, or leave them out.')
  }
  if (run !== undefined && after !== undefined) {
    throw new CommandError(
      'usage',
      '--after belongs to every run. Leave the run out, or give --from SEQ for it.',
    )
  }
  if (run === undefined) {
    const { tailAll } = await import('./tail-all.ts')
    return tailAll(context, { ledger, ...(after !== undefined && { after }) })
  }
  const { tail } = await import('./tail.ts')
  return tail(context, { ledger, run, ...ofRun })
}
