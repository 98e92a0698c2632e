import type { RunId } from '@tallystick/core'
import { ExportedHistories, exportEvents } from '@tallystick/ledger'
import type { CommandContext } from '../../command/command-context.ts'
import { countEvents } from '../../ledger/count-events.ts'
import type { ExitCode } from '../../command/exit-code.ts'
import { exitCodes } from '../../command/exit-code.ts'
import { findRun } from '../../lookup/find-run.ts'
import { withLedger } from '../../ledger/open-ledger.ts'
import { readEachRun, runsFromTheFirst } from '../../ledger/read-each-run.ts'
import { withProgress } from '../../view/text/progress.ts'
import { Option, type Command } from 'commander'
import { onLedger } from '../../command/declare-verb.ts'
import type { Done } from '../../verbs.ts'
import { viewFormats, viewLines, type ViewFormat } from './export-formats.ts'

/** What `export` was given. */
export interface ExportOptions {
  readonly ledger: string
  /** The one run to export; every run where none is named. */
  readonly run?: string
  /** What is printed of it: its events, or a view of them. */
  readonly format?: 'events' | ViewFormat
}

/** Declares what `export` takes. */
export function declareExport(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb)
    .option('--run <run>', 'only this run')
    .addOption(
      new Option('--format <format>', 'print spans, AG-UI events or messages instead of events')
        .choices(['events', ...viewFormats])
        .default('events'),
    )
    .action(async (ledger: string, options: Omit<ExportOptions, 'ledger'>) => {
      done(await exportLedger(context, { ledger, ...options }))
    })
}

/**
 * `export`: the events as JSON Lines, run by run in the order in which they were made, so that `import` makes them
 * in that order. Damage in one run keeps no other from being exported.
 */
export function exportLedger(
  given: CommandContext,
  { ledger: ledgerPath, run, format = 'events' }: ExportOptions,
): Promise<ExitCode> {
  const place = { programName: given.programName, ledgerPath }
  return withLedger(ledgerPath, 'read', async (ledger) => {
    const one = run === undefined ? undefined : await findRun(ledger, run, place)
    const countAll = async (): Promise<number> =>
      one === undefined ? await countEvents(ledger) : ((await ledger.head(one))?.seq ?? 0)
    return await withProgress(given, countAll, async ({ add, context }) => {
      const histories = new ExportedHistories()
      const read = async (runId: RunId): Promise<void> => {
        if (format !== 'events') {
          // Of all runs, each is printed once, child runs included.
          const view = { runId, withChildren: one !== undefined }
          for await (const line of viewLines(ledger, format, view)) await context.print(`${line}\n`)
          add((await ledger.head(runId))?.seq ?? 0)
          return
        }
        for await (const line of exportEvents(ledger, runId, histories)) {
          await context.print(`${line}\n`)
          add(1)
        }
      }
      if (one === undefined) return await readEachRun(context, runsFromTheFirst(ledger), read)
      await read(one)
      return exitCodes.ok
    })
  })
}
