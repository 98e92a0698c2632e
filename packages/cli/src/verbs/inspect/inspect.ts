import { outcomes } from '@tallystick/core'
import { Option, type Command } from 'commander'
import { addVerb, type Done } from '../../command/add-verb.ts'
import type { CommandContext } from '../../command/command-context.ts'
import { inputQuery } from '../../runs/call-query.ts'
import { filledText, moment, wholeNumber } from '../../command/parse-args.ts'
import { listStatuses } from '../../runs/list-statuses.ts'
import type { FindOptions } from './find.ts'
import type { ListOptions } from './list.ts'
import type { ShowOptions } from './show.ts'

/** Adds what looks at the runs of a ledger. */
export function addInspectVerbs(program: Command, context: CommandContext, done: Done): void {
  addVerb(program, 'list', 'list the runs, the newest first, and under each those that work for it')
    .summary('list the runs, the newest first')
    .option('--session <id>', 'those of this session only')
    .addOption(new Option('--status <status>', 'those that stand so only').choices(listStatuses))
    .option('--agent <name>', 'those in which this agent has, or had, the conversation only')
    .option('--tool <name>', 'those with a call of this tool only')
    .addOption(new Option('--outcome <outcome>', 'those with a call that ended so only').choices(outcomes))
    .option('--since <when>', 'those with an event since then only: 12h, 3d, 2026-06-30', moment)
    .option('--before <run>', 'only what comes behind this run in the list')
    .option('--limit <n>', 'at most so many (default: 50 on a terminal, elsewhere all)', wholeNumber)
    .action(async (ledger: string, options: Omit<ListOptions, 'ledger'>) => {
      const { list } = await import('./list.ts')
      done(await list(context, { ledger, ...options }))
    })
  addVerb(
    program,
    'find',
    'find calls, and what was said, in all runs: by tool, input, outcome, text and time',
  )
    .summary('find calls, and what was said, in all runs')
    .option('--tool <name>', 'calls of this tool')
    .option('--input <path=value>', 'calls with this in their input; may be repeated', inputQuery)
    .addOption(new Option('--outcome <outcome>', 'calls that ended so').choices(outcomes))
    .option('--text <text>', 'what holds this, in letters of either case', filledText)
    .option('--run <run>', 'in this run only')
    .option('--session <id>', 'in the runs of this session only')
    .option('--since <when>', 'from then on: 12h, 3d, 2026-06-30', moment)
    .option('--until <when>', 'up to then', moment)
    .option('--limit <n>', 'at most so many', wholeNumber)
    .action(async (ledger: string, options: Omit<FindOptions, 'ledger'>) => {
      const { find } = await import('./find.ts')
      done(await find(context, { ledger, ...options }))
    })
  addVerb(program, 'show', 'show the state of a run, and what happened in it')
    .argument('<run>', 'id of the run')
    .option('--at <seq>', 'as it was right behind this event', wholeNumber)
    .option('--turn <n>', 'of what happened, this turn only', wholeNumber)
    .addOption(
      new Option('--event <seq>', 'this event only, whole; with --json on one line')
        .argParser(wholeNumber)
        .conflicts(['at', 'turn', 'request', 'events']),
    )
    .option('--request', 'the request that the model was sent or would be sent there, not what happened')
    .addOption(
      new Option('--events', 'its events, one a line, not what happened').conflicts(['request', 'json']),
    )
    .option('--whole', 'turns that do the same one by one')
    .option('--no-pager', 'on a terminal: without a pager (default: PAGER, or less)')
    .action(async (ledger: string, run: string, options: Omit<ShowOptions, 'ledger' | 'run'>) => {
      const { show } = await import('./show.ts')
      done(await show(context, { ledger, run, ...options }))
    })
  addVerb(program, 'explain', 'show which events made up the request of a turn, and what each part is worth')
    .summary('show where the request of a turn came from, part by part')
    .argument('<run>', 'id of the run')
    .argument('<turn>', 'number of the turn', wholeNumber)
    .action(async (ledger: string, run: string, turn: number) => {
      const { explainTurn } = await import('./explain.ts')
      done(await explainTurn(context, { ledger, run, turn }))
    })
}
