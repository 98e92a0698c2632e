import {
  ConfigurationError,
  type Ledger,
  LedgerConflictError,
  LedgerDamagedError,
  type RunId,
  type RuntimeEvent,
  TallystickError,
} from '@tallystick/core'
import { option, readJson, requireLedger, requireOptions } from '@tallystick/core/internal'
import { emptyHead } from '@tallystick/core/store-kit'
import { type Head, type Json, parseEvent } from '@tallystick/core/vocabulary'
import { toExportLine, ImportedHistories } from './export-events.ts'
import { upcast } from './format/body.ts'
import { readRecordedEvents } from './store/read-events.ts'
import { noteImport } from './store/removals.ts'
import { getDatabase, getInternals } from './store/store.ts'
import { EventAudit } from './verify/event-audit.ts'

/** No real run has more take-overs without an event. */
const maxEmptyEpochs = 10_000

/** So many take-overs are made at once: they share a commit. */
const takeOversAtOnce = 250

/** A run that an import brings, and who does. */
interface Brought {
  readonly runId: RunId
  readonly by: string
}

/** Brings the events of one run into a ledger, one after the other, each checked before it is written. */
class RunImport {
  readonly runId: RunId
  readonly #ledger: Ledger
  readonly #writer: ImportWriter
  /** Events that the ledger has already. */
  readonly #present: AsyncGenerator<RuntimeEvent>
  readonly #head: Head
  readonly #keepsVersions: boolean
  readonly #laws = new EventAudit()
  #epoch: number
  /** Writers that took over and wrote nothing. */
  #emptyEpochs = 0
  #seq = 0
  #added = 0
  readonly #by: string

  private constructor(ledger: Ledger, writer: ImportWriter, { runId, by }: Brought, head: Head) {
    this.runId = runId
    this.#by = by
    this.#ledger = ledger
    this.#writer = writer
    this.#head = head
    this.#epoch = head.epoch
    this.#present = readRecordedEvents(ledger, runId)
    this.#keepsVersions = getInternals(ledger) !== undefined
  }

  static async begin(ledger: Ledger, writer: ImportWriter, brought: Brought): Promise<RunImport> {
    // Earlier lines of the file may be of the same run: they have to be written before its head is read.
    await writer.flush()
    return new RunImport(ledger, writer, brought, (await ledger.head(brought.runId)) ?? emptyHead)
  }

  /** Events that were appended. */
  get added(): number {
    return this.#added
  }

  /** Events that stood in the ledger already. */
  get present(): number {
    return this.#seq - this.#added
  }

  /**
   * Imports the next event. Throws a `LedgerDamagedError` if it cannot be the next one, and a `LedgerConflictError` if the
   * ledger holds another event in its place.
   */
  async add(line: ImportedLine): Promise<void> {
    // A ledger that brings no event to its newest version when it is read gets it in that version.
    const event = this.#keepsVersions ? line.recorded : line.event
    this.#requireSound(line)
    if (event.seq <= this.#head.seq) await this.#requireSame(event)
    else {
      if (this.#added === 0) await this.#note(event.seq)
      await this.#takeOver(line)
      await this.#writer.add(event, line.length)
      this.#added += 1
    }
    this.#seq = event.seq
  }

  /** Notes where the run comes from, before its events, so that no crash leaves them without it. */
  async #note(seq: number): Promise<void> {
    const from = seq === 1 ? {} : { reason: `from event ${seq} on` }
    const note = { runId: this.runId, at: Date.now(), by: this.#by, ...from }
    await getDatabase(this.#ledger)?.change((queries) => noteImport(queries, note))
  }

  /** Releases what the ledger lent. */
  async end(): Promise<void> {
    await this.#present.return(undefined)
  }

  #requireSound({ line, event }: ImportedLine): void {
    const { runId, seq, epoch, type } = event
    const due = this.#seq + 1
    if (seq !== due)
      throw createDamagedLineError(line, `it holds event ${seq} of run ${runId} where event ${due} is due.`)
    if (seq === 1 && epoch !== emptyHead.epoch) {
      throw createDamagedLineError(
        line,
        `run ${runId} begins with the epoch ${epoch}, and every run begins with 1.`,
      )
    }
    const fault = this.#laws.check(event)
    if (fault === undefined) return
    throw createDamagedLineError(
      line,
      `event ${seq} (${type}) of run ${runId} breaks ${fault.what}: ${fault.found}.`,
    )
  }

  async #requireSame(recorded: RuntimeEvent): Promise<void> {
    const { value: present } = await this.#present.next()
    if (present !== undefined && toExportLine(present) === toExportLine(recorded)) return
    throw new LedgerConflictError(
      'seq',
      `Event ${recorded.seq} of run ${this.runId} in this ledger differs from the imported one: two records ` +
        'claim to be the same run. Nothing of the run was changed. Import it into a ledger without that run, and compare the two.',
    )
  }

  /** Makes the take-overs of the run's past again, so that the ledger knows its writers as the first one did. */
  async #takeOver({ line, recorded: { seq, epoch } }: ImportedLine): Promise<void> {
    if (epoch < this.#epoch) {
      throw new LedgerConflictError(
        'epoch',
        `Run ${this.runId} ends at event ${this.#seq} in this ledger, and was taken over since, by writer ` +
          `${this.#epoch}: event ${seq} of the imported lines, by writer ${epoch}, can no longer follow. Import into another ledger.`,
      )
    }
    if (epoch === this.#epoch) return
    this.#emptyEpochs += epoch - this.#epoch - 1
    if (this.#emptyEpochs > maxEmptyEpochs) {
      throw createDamagedLineError(
        line,
        `the epoch rises from ${this.#epoch} to ${epoch} at event ${seq}, and no run is taken over so often.`,
      )
    }
    await this.#writer.flush()
    while (this.#epoch < epoch) {
      const length = Math.min(epoch - this.#epoch, takeOversAtOnce)
      const heads = await Promise.all(Array.from({ length }, () => this.#ledger.acquire(this.runId)))
      this.#epoch = Math.max(...heads.map((head) => head.epoch))
    }
  }
}

/** A group holds at most this many events, and ends with the first that takes its lines over this many characters. */
const maxGroupEvents = 256
const maxGroupCharacters = 1024 * 1024
/** At most this much is lazy before a barrier makes it durable. */
const maxLazyEvents = 4096
const maxLazyCharacters = 16 * 1024 * 1024

/** Appends imported events in groups, several of them to a barrier. */
export class ImportWriter {
  readonly #ledger: Ledger
  #group: RuntimeEvent[] = []
  #groupCharacters = 0
  #lazyEvents = 0
  #lazyCharacters = 0
  /** The end of the run that was written last. */
  #written: { readonly runId: RunId; readonly head: Head } | undefined

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  /** Adds the next event of its run. `length` is that of its line. */
  async add(event: RuntimeEvent, length: number): Promise<void> {
    const [first] = this.#group
    if (first && (first.runId !== event.runId || first.epoch !== event.epoch)) await this.flush()
    this.#group.push(event)
    this.#groupCharacters += length
    if (this.#group.length >= maxGroupEvents || this.#groupCharacters >= maxGroupCharacters)
      await this.flush()
  }

  /** Appends what was added. */
  async flush(): Promise<void> {
    const lazyEvents = this.#lazyEvents + this.#group.length
    const lazyCharacters = this.#lazyCharacters + this.#groupCharacters
    const isLazy = lazyEvents < maxLazyEvents && lazyCharacters < maxLazyCharacters
    await this.#append(isLazy ? 'lazy' : 'barrier')
    this.#lazyEvents = isLazy ? lazyEvents : 0
    this.#lazyCharacters = isLazy ? lazyCharacters : 0
  }

  /** Appends what was added, and makes all of it durable. */
  async finish(): Promise<void> {
    if (this.#group.length > 0) await this.#append('barrier')
    else if (this.#lazyEvents > 0 && this.#written) {
      const { runId, head } = this.#written
      await this.#ledger.append(runId, { expectedSeq: head.seq, epoch: head.epoch }, [], {
        durability: 'barrier',
      })
    }
  }

  async #append(durability: 'lazy' | 'barrier'): Promise<void> {
    const events = this.#group
    const [first] = events
    if (first === undefined) return
    // Removed first: a refused batch is not appended twice.
    this.#group = []
    this.#groupCharacters = 0
    const { runId, seq, epoch } = first
    const head = await this.#ledger.append(runId, { expectedSeq: seq - 1, epoch }, events, { durability })
    this.#written = { runId, head }
  }
}

/** An event that a line of an export holds. */
interface ImportedLine {
  /** Its number, from 1. */
  readonly line: number
  /** Of its text. */
  readonly length: number
  /** As it was recorded, in whatever version. */
  readonly recorded: RuntimeEvent
  /** As today's code knows it. */
  readonly event: RuntimeEvent
}

/**
 * Returns the JSON value of a line; `undefined` if the line is not JSON or no UTF-8, because it is torn or damaged. Throws a
 * `LedgerDamagedError` for a number that no ledger wrote so: reading it would make another one of it.
 */
function parseJson(line: number, text: string | Uint8Array): Json | undefined {
  try {
    return readJson(decodeText(text)) as Json
  } catch (error) {
    if (!(error instanceof RangeError)) return undefined
    if (!error.message.includes('nested')) {
      throw createDamagedLineError(line, `it holds a number that no ledger wrote so. ${error.message}`)
    }
    throw new ConfigurationError(
      `Line ${line} cannot be imported: it is nested deeper than 500 levels, and not every store can read that. Nothing of it was written.`,
    )
  }
}

// Bytes that are not UTF-8 throw, instead of turning into replacement characters.
const decoder = new TextDecoder('utf-8', { fatal: true })

function decodeText(text: string | Uint8Array): string {
  return typeof text === 'string' ? text : decoder.decode(text)
}

function isBlank(text: string | Uint8Array): boolean {
  return text.length < 16 && /^\s*$/.test(typeof text === 'string' ? text : Buffer.from(text).toString())
}

/** How every line of an export begins. */
const beginning = '{"runId":"'

/**
 * A line that is not JSON may be left where an export was cut off: the beginning of an event, or the NULs that
 * a file system leaves after a loss of power.
 */
function isEventCutOff(text: string | Uint8Array): boolean {
  const head = text.slice(0, beginning.length)
  let begun = typeof head === 'string' ? head : Buffer.from(head).toString('latin1')
  while (begun.endsWith('\0')) begun = begun.slice(0, -1)
  return beginning.startsWith(begun)
}

/**
 * The event that a line holds; `undefined` if the line is an event that was cut off. Throws an `UnknownEventError` for
 * what this release does not know, and a `LedgerDamagedError` for anything else that is not an event.
 */
async function parseLine(
  line: number,
  text: string | Uint8Array,
  histories: ImportedHistories,
): Promise<ImportedLine | undefined> {
  const value = parseJson(line, text)
  if (value === undefined) {
    if (isEventCutOff(text)) return undefined
    throw createDamagedLineError(line, 'it is not JSON, and not the beginning of an event.')
  }
  try {
    const whole = await histories.whole(value)
    const event = parseEvent(isVersioned(whole) ? upcast(whole) : whole)
    return { line, length: text.length, recorded: whole as RuntimeEvent, event }
  } catch (cause) {
    if (cause instanceof LedgerDamagedError) throw createDamagedLineError(line, cause.message, cause)
    throw cause
  }
}

function isVersioned(value: unknown): value is RuntimeEvent {
  if (typeof value !== 'object' || value === null) return false
  const { type, v } = value as { readonly type?: unknown; readonly v?: unknown }
  return typeof type === 'string' && Number.isSafeInteger(v)
}

/** The refusal of a line. */
function createDamagedLineError(line: number, what: string, cause?: unknown): LedgerDamagedError {
  return new LedgerDamagedError(
    `Line ${line} cannot be imported: ${what} The lines before it were imported, and importing a sound export of the ` +
      'same ledger continues from there.',
    { cause },
  )
}

/** So many runs are remembered; of others it is found out again. */
const maxSoundRuns = 100_000

/** Follows where imported runs come from, so that no run comes from itself, through whichever others. */
class ImportedOrigins {
  readonly #ledger: Ledger
  /** Runs whose origins lead to a run that came from nothing. */
  readonly #sound = new Set<RunId>()

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  /**
   * Throws a `LedgerDamagedError` at the first event of a run that would close a circle. To be asked when everything
   * before that line is in the ledger.
   */
  async requireNoCircle({ line, event }: ImportedLine): Promise<void> {
    if (event.type !== 'run_started') return
    const { runId } = event
    const passed = [runId]
    let from = event.parent?.runId
    while (from !== undefined && !this.#sound.has(from)) {
      if (from === runId) throw createDamagedLineError(line, describeCircle(passed))
      passed.push(from)
      const origin = await this.#findOrigin(from)
      // A run that is not in the ledger may still come, and then name one of these.
      if (origin === 'unknown') return
      from = origin
    }
    if (this.#sound.size + passed.length > maxSoundRuns) this.#sound.clear()
    for (const each of passed) this.#sound.add(each)
  }

  async #findOrigin(runId: RunId): Promise<RunId | undefined | 'unknown'> {
    try {
      for await (const event of this.#ledger.read(runId, { toSeq: 1 })) {
        return event.type === 'run_started' ? event.parent?.runId : undefined
      }
      return 'unknown'
    } catch (error) {
      // A run that was damaged before is not part of the import: verify names it.
      if (error instanceof TallystickError) return 'unknown'
      throw error
    }
  }
}

function describeCircle(runIds: readonly RunId[]): string {
  const [runId] = runIds
  if (runIds.length === 1) return `run ${runId} says that it comes from itself.`
  return `run ${runId} says that it comes from run ${runIds[1]}, which comes from it: no run began first.`
}

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
  /** The last line, if it is cut off in the middle of an event. Nothing of it was imported. */
  readonly torn?: { readonly line: number }
}

/** Reports how an import proceeds. */
export interface ImportOptions {
  /** Called after each run; the import waits for it. */
  readonly onRun?: ((run: ImportedRun) => void | Promise<void>) | undefined
  /** Who imports: recorded with each run, where the ledger is one of this package. Default: `import`. */
  readonly by?: string | undefined
}

const importOptions = option.fields<ImportOptions>({
  onRun: option.maybe(option.anyFunction),
  by: option.maybe(option.filledText),
})

/** A text and bytes can be iterated too, and hold no lines. */
const lineSource = option.valueThat(
  'lines, such as splitLines(createReadStream(path)) or a list of texts',
  (value) => {
    if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return false
    return Symbol.iterator in value || Symbol.asyncIterator in value
  },
)

/**
 * Reads what `exportEvents` wrote into a ledger, run by run, holding the state of one run and a group of events at a
 * time. `lines` are texts or UTF-8 bytes without their line feeds; `splitLines` makes them of a file.
 *
 * Every event is checked before it is written: its fields, its number, the laws, and that the runs which it comes from
 * lead to no circle. Events are stored as they were recorded, byte for byte (in a ledger that keeps no older versions,
 * such as `memoryLedger`, in the newest version), with the epochs of their writers; salts and hashes are this ledger's
 * own. What is there already is left as it is: the same events count as `present`, and a run that ends early is carried
 * on. A ledger of this package records of each run with new events that it was imported, when and by whom (`verifyRun`
 * tells). When the promise resolves, all of it is durable.
 *
 * Rejects at the first line that cannot be imported, everything before it being imported: with `LedgerDamagedError` for
 * what is not a sound event, a file of one line that is cut off included, `UnknownEventError` for one that this release does not know, `LedgerConflictError` where the
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
  const { onRun, by = 'import' } = options
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
      if (torn > 0) throw createDamagedLineError(torn, 'it is not JSON, and lines follow it.')
      const imported = await parseLine(line, text, histories)
      if (imported === undefined) {
        torn = line
        continue
      }
      const { runId } = imported.event
      if (run?.runId !== runId) {
        await endRun()
        run = await RunImport.begin(ledger, writer, { runId, by })
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
  return { ...sum, ...reportTorn(torn, sum.runs) }
}

/** Reports a last line that is cut off; if it is the only line, nothing was imported. */
function reportTorn(line: number, runs: number): Pick<ImportReport, 'torn'> {
  if (line === 0) return {}
  if (runs === 0) throw createDamagedLineError(line, 'it is cut off, and there is no whole event before it.')
  return { torn: { line } }
}
