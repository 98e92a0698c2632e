import { metrics, trace, type MeterProvider, type TracerProvider } from '@opentelemetry/api'
import type { Ledger } from '@tallystick/core'
import { caughtUp, changesOfEveryRun, defaultHost, option, requireOptions } from '@tallystick/core/kit'
import type { RuntimeEvent, TailCursor } from '@tallystick/core/vocabulary'
import { holdsContent, type ContentOption } from '../content/capture.ts'
import { measurementsOf } from '../projection/measurements.ts'
import { startsBefore } from '../projection/recorded-spans.ts'
import { RunSpans } from '../projection/run-spans.ts'
import type { SpanMove } from '../span/span.ts'
import { MetricWriter } from './metric-writer.ts'
import { SpanWriter } from './span-writer.ts'

/** Options of `traceRuns`. */
export interface TraceRunsOptions extends ContentOption {
  /** Gets the spans. Default: the global provider. Its `idGenerator` should be `runIds()`. */
  readonly tracerProvider?: TracerProvider | undefined
  /** Gets the metrics. Default: the global provider. */
  readonly meterProvider?: MeterProvider | undefined
  /** The cursor of the last event that was traced before: spans that end after it are exported. */
  readonly after?: TailCursor | undefined
  /** Without a cursor: `start` exports everything on record; `now`, the default, only spans that end from now on. */
  readonly from?: 'start' | 'now' | undefined
  /** Gets errors of the ledger and the providers. Default: the console. */
  readonly report?: ((error: unknown, what: string) => void) | undefined
}

/** A ledger whose runs are traced. */
export interface RunTracing {
  /**
   * The last event whose spans the providers have. To continue from there, flush the providers, then store this cursor.
   */
  readonly cursor: TailCursor | undefined
  /** Resolves when tracing has ended: after `stop`, after the ledger was closed, or after an error of the ledger. */
  readonly ended: Promise<void>
  /** Ends tracing. Open spans are not exported: a process that continues after the cursor exports them. */
  stop(): Promise<void>
}

const checks = option.fields<TraceRunsOptions>({
  tracerProvider: option.maybe(
    option.valueThat('a TracerProvider', (given) => typeof Object(given).getTracer === 'function'),
  ),
  meterProvider: option.maybe(
    option.valueThat('a MeterProvider', (given) => typeof Object(given).getMeter === 'function'),
  ),
  after: option.maybe(option.filledText),
  from: option.maybe(option.oneOf(['start', 'now'])),
  report: option.maybe(option.anyFunction),
  content: option.maybe(option.trueOrFalse),
})

const anyLedger = option.valueThat(
  'a ledger, such as sqliteLedger(path) makes',
  (given) => typeof Object(given).tail === 'function',
)

/** What this package is called among those that write spans. */
const scope = '@tallystick/otel'

/** The most runs that are kept in memory between their events; others are read again from the ledger. */
const maxRuns = 1_000

/**
 * Exports the spans and metrics of all runs of a ledger live, whichever process drives them. The event that ends a span
 * exports it, so each span is exported once, however many processes drove its run. Trace a ledger in one process.
 */
export function traceRuns(ledger: Ledger, options: TraceRunsOptions = {}): RunTracing {
  requireOptions('traceRuns', anyLedger, ledger, 'the ledger')
  requireOptions('traceRuns', checks, options)
  return new LedgerTracing(ledger, options)
}

class LedgerTracing implements RunTracing {
  readonly #ledger: Ledger
  readonly #spans: SpanWriter
  readonly #metrics: MetricWriter
  readonly #withContent: boolean
  readonly #report: (error: unknown, what: string) => void
  /** The runs that have not ended, the one with the latest event last. */
  readonly #runs = new Map<string, RunSpans>()
  #changes: ReturnType<typeof changesOfEveryRun> | undefined
  #isStopped = false
  cursor: TailCursor | undefined
  readonly ended: Promise<void>

  constructor(ledger: Ledger, options: TraceRunsOptions) {
    const { tracerProvider = trace.getTracerProvider(), meterProvider = metrics.getMeterProvider() } = options
    this.#ledger = ledger
    this.#withContent = holdsContent(options)
    this.#spans = new SpanWriter(tracerProvider.getTracer(scope))
    this.#metrics = new MetricWriter(meterProvider.getMeter(scope))
    this.#report = options.report ?? defaultHost.report
    this.ended = this.#follow(options).catch((error: unknown) => {
      // The application has closed the ledger, and knows that it has.
      if (!this.#changes?.isCutOff) this.#report(error, 'The ledger is traced no more')
    })
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#changes?.return()
    await this.ended
  }

  async #follow({ after, from }: TraceRunsOptions): Promise<void> {
    this.cursor = after ?? (from === 'start' ? undefined : await this.#lastCursor())
    if (this.#isStopped) return
    const changes = changesOfEveryRun(this.#ledger, this.cursor)
    this.#changes = changes
    for await (const tailed of changes) {
      if (tailed === caughtUp) continue
      await this.#trace(tailed.event)
      this.cursor = tailed.cursor
    }
  }

  async #lastCursor(): Promise<TailCursor | undefined> {
    let last: TailCursor | undefined
    for await (const { cursor } of this.#ledger.tail()) {
      if (this.#isStopped) break
      last = cursor
    }
    return last
  }

  async #trace(event: RuntimeEvent): Promise<void> {
    const run = this.#runs.get(event.runId) ?? (await this.#readRun(event))
    if (run === undefined) return
    this.#runs.delete(event.runId)
    if (event.type !== 'run_finished') this.#keep(event.runId, run)
    for (const move of run.next(event)) this.#write(move)
  }

  /** Folds a run up to an event, and begins the spans that are open there. */
  async #readRun({ runId, seq }: RuntimeEvent): Promise<RunSpans | undefined> {
    let run: RunSpans | undefined
    for await (const event of this.#ledger.read(runId, { toSeq: Math.max(1, seq - 1) })) {
      if (event.type === 'run_started')
        run = new RunSpans(event, await startsBefore(this.#ledger, event), this.#withContent)
      if (event.seq < seq) run?.next(event)
    }
    for (const span of run?.open ?? []) this.#guarded(() => this.#spans.start(span))
    return run
  }

  #keep(runId: string, run: RunSpans): void {
    this.#runs.set(runId, run)
    if (this.#runs.size <= maxRuns) return
    for (const [oldest, { open }] of this.#runs) {
      this.#runs.delete(oldest)
      this.#spans.forget(open.map(({ spanId }) => spanId))
      break
    }
  }

  #write(move: SpanMove): void {
    this.#guarded(() => this.#spans.write(move))
    if (move.type === 'started') return
    for (const measurement of measurementsOf(move.span)) this.#guarded(() => this.#metrics.write(measurement))
  }

  /** What the code of a provider throws ends no tracing. */
  #guarded(write: () => void): void {
    try {
      write()
    } catch (error) {
      this.#report(error, 'A span was not exported')
    }
  }
}
