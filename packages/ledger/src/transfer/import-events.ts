import { type Ledger, type RunId } from '@tallystick/core'
import { option, requireLedger, requireOptions } from '@tallystick/core/kit'
import { damagedLine, importedLine, isBlank } from './import-line.ts'
import { ImportedOrigins } from './imported-origins.ts'
import { RunImport } from './import-run.ts'
import { ImportWriter } from './import-writer.ts'
import { ImportedHistories } from './shared-history.ts'

/** One run that was imported. */
export interface ImportedRun {
  readonly runId: RunId
  /** Events that were appended. */
  readonly events: number
  /** Equal events that were in the ledger already. */
  readonly present: number
}

/** The result of an import. */
export interface ImportReport {
  /** Runs that were read; one that occurs twice among the lines counts twice. */
  readonly runs: number
  /** Events that were appended, of all runs. */
  readonly events: number
  /** Equal events that were in the ledger already. */
  readonly present: number
  /** The last line, where it is cut off in the middle of an event. Nothing of it was imported. */
  readonly torn?: { readonly line: number }
}

/** Reports how an import proceeds. */
export interface ImportOptions {
  /** Called after each run; the import waits for it. */
  readonly onRun?: ((run: ImportedRun) => void | Promise<void>) | undefined
}

const importOptions = option.fields<ImportOptions>({ onRun: option.maybe(option.anyFunction) })

/** A text and bytes can be iterated too, and hold no lines. */
const lineSource = option.valueThat(
  'lines, such as linesOf(createReadStream(path)) or a list of texts',
  (value) => {
    if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return false
    return Symbol.iterator in value || Symbol.asyncIterator in value
  },
)

/**
 * Reads what `exportEvents` wrote into a ledger, run by run, holding the state of one run and a group of events at a
 * time. `lines` are texts or UTF-8 bytes without their line feeds; `linesOf` makes them of a file.
 *
 * Every event is checked before it is written: its fields, its number, the laws, and that the runs which it comes from
 * lead to no circle. Events are stored as they were
 * recorded, byte for byte (in a ledger that keeps no older versions, such as `memoryLedger`, in the newest version), with the epochs of their writers; salts and hashes are this ledger's own. What is there
 * already is left as it is: the same events count as `present`, and a run that ends early is carried on. When the
 * promise resolves, all of it is durable.
 *
 * Rejects at the first line that cannot be imported, everything before it being imported: with `LedgerDamagedError` for
 * what is no sound event, a file of one line that is cut off included, `UnknownEventError` for one that this release does not know, `LedgerConflictError` where the
 * ledger holds another event in its place, or another run at its place of a session. Rejects with `ConfigurationError` for
 * wrong options, before anything is read.
 */
export async function importEvents(
  ledger: Ledger,
  lines: AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>,
  options: ImportOptions = {},
): Promise<ImportReport> {
  requireLedger('importEvents', ledger)
  requireOptions('importEvents', lineSource, lines, 'the second argument')
  requireOptions('importEvents', importOptions, options)
  const { onRun } = options
  const writer = new ImportWriter(ledger)
  const histories = new ImportedHistories(ledger)
  const sum = { runs: 0, events: 0, present: 0 }
  let run: RunImport | undefined
  const endRun = async (): Promise<void> => {
    if (run === undefined) return
    const { runId, added: events, present } = run
    await run.end()
    sum.runs += 1
    sum.events += events
    sum.present += present
    await onRun?.({ runId, events, present })
  }

  const origins = new ImportedOrigins(ledger)
  let [line, torn] = [0, 0]
  try {
    for await (const text of lines) {
      line += 1
      if (isBlank(text)) continue
      if (torn > 0) throw damagedLine(torn, 'it is no JSON, and lines follow it.')
      const imported = await importedLine(line, text, histories)
      if (imported === undefined) {
        torn = line
        continue
      }
      const { runId } = imported.event
      if (run?.runId !== runId) {
        await endRun()
        run = await RunImport.begin(ledger, writer, runId)
        await origins.requireNoCircle(imported)
      }
      await run.add(imported)
    }
    await endRun()
  } catch (error) {
    // Keeps the sound runs, and reports the first error.
    await run?.end().catch(() => undefined)
    await writer.finish().catch(() => undefined)
    throw error
  }
  await writer.finish()
  return { ...sum, ...tornAt(torn, sum.runs) }
}

/** What a report says of a last line that is cut off. Where it is all that there is, nothing was imported. */
function tornAt(line: number, runs: number): Pick<ImportReport, 'torn'> {
  if (line === 0) return {}
  if (runs === 0) throw damagedLine(line, 'it is cut off, and there is no whole event before it.')
  return { torn: { line } }
}
