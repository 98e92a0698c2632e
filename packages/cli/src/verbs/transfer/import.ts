import { createReadStream, statSync } from 'node:fs'
import { importEvents, linesOf, type ImportedRun, type ImportReport } from '@tallystick/ledger'
import type { CommandContext } from '../../command/command-context.ts'
import type { ExitCode } from '../../command/exit-code.ts'
import { CommandError, exitCodes } from '../../command/exit-code.ts'
import { withLedger } from '../../ledger/open-ledger.ts'
import { bytesText, withProgress } from '../../view/text/progress.ts'
import { counted } from '../../view/text/run-ending.ts'
import type { Command } from 'commander'
import { onLedger } from '../../command/declare-verb.ts'
import type { Done } from '../../verbs.ts'

/** What `import` was given. */
export interface ImportOptions {
  /** Created if it does not exist. */
  readonly ledger: string
  /** What `export` printed; `-` for standard input. */
  readonly file: string
}

/** Declares what `import` takes. */
export function declareImport(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb, 'read an export into a ledger, which is created if it does not exist')
    .argument('<file>', 'file that export wrote; - reads standard input')
    .action(async (ledger: string, file: string) => {
      done(await importLedger(context, { ledger, file }))
    })
}

/** `import`: reads what `export` printed into a ledger, every event checked before it is written. A line a run. */
export function importLedger(
  context: CommandContext,
  { ledger: ledgerPath, file }: ImportOptions,
): Promise<ExitCode> {
  if (file !== '-' && statSync(file, { throwIfNoEntry: false })?.isDirectory() !== false) {
    throw new CommandError(
      'not_found',
      `There is no file ${file}. Name one that tallystick export has written.`,
    )
  }
  return withLedger(ledgerPath, 'make', async (ledger) => {
    const chunks = file === '-' ? context.stdin : createReadStream(file)
    const countAll = async (): Promise<number | undefined> => (file === '-' ? undefined : statSync(file).size)
    const report = await withProgress(
      context,
      countAll,
      ({ context: aside, add }) =>
        importEvents(ledger, linesOf(bytesOf(chunks, add)), { onRun: (run) => printRun(aside, run) }),
      bytesText,
    )
    const { json, print, say } = context
    if (report.torn) say(tornText(report.torn))
    await print(json ? `${JSON.stringify(report)}\n` : summaryText(report))
    return exitCodes.ok
  })
}

async function printRun({ json, print }: CommandContext, run: ImportedRun): Promise<void> {
  const { runId, events, present } = run
  const line = json ? JSON.stringify(run) : `${runId}  ${counted(events, 'event')}${presentText(present)}`
  await print(`${line}\n`)
}

/** Yields the bytes of a stream, counted. A stream with an encoding yields texts. */
async function* bytesOf(
  chunks: AsyncIterable<string | Uint8Array>,
  count: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    yield bytes
    count(bytes.length)
  }
}

function presentText(present: number): string {
  return present === 0 ? '' : `, ${present} were there`
}

function tornText({ line }: NonNullable<ImportReport['torn']>): string {
  return `Line ${line}, the last one, is cut off in the middle of an event, so it was left out.`
}

function summaryText({ runs, events, present }: ImportReport): string {
  return `imported  ${counted(runs, 'run')}, ${counted(events, 'event')}${presentText(present)}\n`
}
