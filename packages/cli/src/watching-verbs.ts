import type { Command } from 'commander'
import { addVerb, type Done } from './add-verb.ts'
import type { CommandContext } from './command-context.ts'
import { positiveNumber, wholeNumber } from './given-values.ts'

/** Adds what looks at runs over time, and beside each other. */
export function addWatchingVerbs(program: Command, context: CommandContext, done: Done): void {
  addVerb(program, 'tail', 'follow a run live, whichever process drives it')
    .argument('<run>', 'id of the run')
    .option('--from <seq>', 'from this event on (default: from the first)', wholeNumber)
    .option('--until-rest', 'end where the run is suspended, too')
    .action(async (ledger: string, run: string, options: { from?: number; untilRest?: boolean }) => {
      const { tail } = await import('./verbs/tail.ts')
      done(await tail(context, { ledger, run, ...options }))
    })
  addVerb(program, 'diff', 'show where two runs part, such as a run and its fork, side by side')
    .summary('show where two runs part, side by side')
    .argument('<run>', 'id of the one run')
    .argument('<other>', 'id of the other')
    .action(async (ledger: string, left: string, right: string) => {
      const { diff } = await import('./verbs/diff.ts')
      done(await diff(context, { ledger, left, right }))
    })
  addVerb(program, 'stats', 'tell what waits, what went wrong and why, and what the last days cost')
    .summary('tell what waits, what failed and why, and what it cost')
    .option('--days <n>', 'how many days back, ends and costs (default: 7)', positiveNumber)
    .action(async (ledger: string, options: { days?: number }) => {
      const { stats } = await import('./verbs/stats.ts')
      done(await stats(context, { ledger, ...options }))
    })
}
