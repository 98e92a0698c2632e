import type { Command } from 'commander'
import { addVerb, type Done } from '../../command/add-verb.ts'
import type { CommandContext } from '../../command/command-context.ts'

/** Adds what moves runs from one ledger to another, a ledger to a newer release, and what keeps it quick. */
export function addTransferVerbs(program: Command, context: CommandContext, done: Done): void {
  addVerb(program, 'export', 'print the events, one JSON object a line')
    .option('--run <run>', 'of this run only')
    .action(async (ledger: string, options: { run?: string }) => {
      const { exportLedger } = await import('./export.ts')
      done(await exportLedger(context, { ledger, ...options }))
    })
  addVerb(
    program,
    'rebuild',
    'make anew what follows from the events: projections for list and stats, snapshots',
  )
    .summary('make anew what follows from the events')
    .action(async (ledger: string) => {
      const { rebuild } = await import('./rebuild.ts')
      done(await rebuild(context, ledger))
    })
  addVerb(program, 'import', 'read what export printed into a ledger, which is made where there is none')
    .summary('read what export printed into a ledger')
    .argument('<file>', 'what export printed; - for standard input')
    .action(async (ledger: string, file: string) => {
      const { importLedger } = await import('./import.ts')
      done(await importLedger(context, { ledger, file }))
    })
  addVerb(
    program,
    'upgrade',
    'bring a ledger of an older release up to date, whose releases can use it no more then',
  )
    .summary('bring a ledger of an older release up to date')
    .action(async (ledger: string) => {
      const { upgrade } = await import('./upgrade.ts')
      done(await upgrade(context, ledger))
    })
}
