import type { Command } from 'commander'
import { addVerb, exampleOf, type Done } from '../../command/add-verb.ts'
import type { CommandContext } from '../../command/command-context.ts'
import { ageMs, eventNumbers, filledText } from '../../command/parse-args.ts'
import type { RedactOptions } from './redact.ts'
import type { RetainOptions } from './retain.ts'

/** Adds what takes content away, on record. */
export function addRetentionVerbs(program: Command, context: CommandContext, done: Done): void {
  addVerb(program, 'redact', 'take away what events of a run said; who did it and why stays on record')
    .summary('take away what events said')
    .argument('<run>', 'id of the run')
    .option('--events <seqs>', 'these events, such as 4 or 4,7-9', eventNumbers)
    .option('--all', 'every event of the run')
    .option('--by <name>', 'who takes it away; your account where not given', filledText)
    .requiredOption('--reason <text>', 'why; it stays on record, so it must not say what is taken away')
    .action(async (ledger: string, run: string, options: Omit<RedactOptions, 'ledger' | 'run'>) => {
      const { redactEvents } = await import('./redact.ts')
      done(await redactEvents(context, { ledger, run, ...options }))
    })
  addVerb(program, 'retain', 'take away what is older than given, from runs that have ended')
    .summary('take away what is older than given')
    .option(
      '--deltas <age>',
      'pieces of what was streamed, such as 1d; what they say stands again whole',
      ageMs,
    )
    .option('--content <age>', 'what was said, such as 90d; facts stay', ageMs)
    .option('--facts <age>', 'whole runs, such as 2y', ageMs)
    .option('--by <name>', 'on record as who took it away', filledText, 'retention')
    .option('--reason <text>', 'on record as why')
    .option('--dry-run', 'only count')
    .action(async (ledger: string, options: Omit<RetainOptions, 'ledger'>) => {
      const { retain } = await import('./retain.ts')
      done(await retain(context, { ledger, ...options }))
    })
  program
    .command('erase')
    .description(
      'destroy the keys of a subject: what was said in its runs is gone, in every copy of a ledger',
    )
    .summary('destroy the keys of a subject')
    .argument('<keys>', 'file of the keyring')
    .argument('<subject>', 'whose keys')
    .option('--json', 'print JSON; errors too, on stderr')
    .addHelpText('after', exampleOf('erase'))
    .action(async (keys: string, subject: string) => {
      const { erase } = await import('./erase.ts')
      done(await erase(context, { keys, subject }))
    })
}
