import {
  type Context,
  type HrTime,
  type Meter,
  type MeterProvider,
  metrics,
  ROOT_CONTEXT,
  type Span as ApiSpan,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
  type TracerProvider,
} from '@opentelemetry/api'
import type { Ledger, RuntimeEvent } from '@tallystick/core'
import { defaultHost, option, requireOptions } from '@tallystick/core/internal'
import { caughtUp, followAllChanges } from '@tallystick/core/store-kit'
import type { TailCursor } from '@tallystick/core/vocabulary'
import { metricKinds, type MetricName } from './conventions.ts'
import { type Measurement, toMeasurements, readStartsBefore } from './recorded-spans.ts'
import type { Attributes, Span, SpanMove, StartedSpan } from './span.ts'
import { type ContentOption, holdsContent } from './content.ts'
import { RunSpans } from './run-spans.ts'

type WriteMetric = (measurement: Measurement) => void

/** Returns what writes measurements through a meter, each metric through an instrument that its first measurement makes. */
function createMetricWriter(meter: Meter): WriteMetric {
  const known = new Map<MetricName, WriteMetric>()
  return (measurement) => {
    const { metric } = measurement
    const write = known.get(metric) ?? createInstrument(meter, metric)
    known.set(metric, write)
    write(measurement)
  }
}

function createInstrument(meter: Meter, name: MetricName): WriteMetric {
  const { unit, buckets } = metricKinds[name]
  if (buckets === undefined) {
    const counter = meter.createCounter(name, { unit })
    return ({ value, attributes }) => counter.add(value, { ...attributes })
  }
  const advice = { explicitBucketBoundaries: [...buckets] }
  const histogram = meter.createHistogram(name, { unit, advice })
  return ({ value, attributes }) => histogram.record(value, { ...attributes })
}

/** The ids of the span that is begun next. */
interface Ids {
  readonly traceId: string
  readonly spanId: string
}

/** Set while a span of a run is begun, and at no other time. */
let next: Ids | undefined

/** Calls a function that begins one span. The span gets these ids if its provider generates ids with `runIds`. */
function withIds<Result>(ids: Ids, begin: () => Result): Result {
  next = ids
  try {
    return begin()
  } finally {
    next = undefined
  }
}

/** Generates the ids of a tracer provider. */
export interface IdGenerator {
  generateTraceId(): string
  generateSpanId(): string
}

/**
 * The `idGenerator` of a tracer provider. Spans of runs get ids that follow from their runs, so that the spans of a run
 * belong together whichever process exports them. All other spans get random ids.
 */
export function runIds(): IdGenerator {
  return {
    generateTraceId: () => next?.traceId ?? drawHex(16),
    generateSpanId: () => next?.spanId ?? drawHex(8),
  }
}

function drawHex(bytes: number): string {
  const random = crypto.getRandomValues(new Uint8Array(bytes))
  // Ids of nothing but zeros are invalid.
  random[0] ||= 1
  return Array.from(random, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Writes spans through a tracer, each begun when it begins and ended when it ends, with the times of its events. */
class SpanWriter {
  readonly #tracer: Tracer
  readonly #open = new Map<string, ApiSpan>()

  constructor(tracer: Tracer) {
    this.#tracer = tracer
  }

  write(move: SpanMove): void {
    if (move.type === 'started') this.start(move.span)
    else this.#end(move.span)
  }

  start(span: StartedSpan): void {
    const { traceId, spanId, name, kind, startedAt } = span
    const options = {
      kind: kind === 'client' ? SpanKind.CLIENT : SpanKind.INTERNAL,
      startTime: toHrTime(startedAt),
      attributes: toOwnAttributes(span.attributes),
      links: span.links.map((link) => ({
        context: { traceId: link.traceId, spanId: link.spanId, traceFlags: 1, isRemote: true },
        attributes: toOwnAttributes(link.attributes),
      })),
      root: span.parentSpanId === undefined,
    }
    const begun = withIds({ traceId, spanId }, () => this.#tracer.startSpan(name, options, this.#above(span)))
    this.#open.set(spanId, begun)
  }

  #end({ spanId, attributes, events, status, statusMessage, endedAt }: Span): void {
    const open = this.#open.get(spanId)
    if (open === undefined) return
    this.#open.delete(spanId)
    open.setAttributes(toOwnAttributes(attributes))
    for (const { name, at, attributes: ofEvent } of events)
      open.addEvent(name, toOwnAttributes(ofEvent), toHrTime(at))
    if (status === 'error') {
      open.setStatus({
        code: SpanStatusCode.ERROR,
        ...(statusMessage !== undefined && { message: statusMessage }),
      })
    }
    open.end(toHrTime(endedAt))
  }

  /** Forgets spans that this writer will not end: they are not exported. */
  forget(spanIds: Iterable<string>): void {
    for (const spanId of spanIds) this.#open.delete(spanId)
  }

  /** The span above: the one that was begun here, or that of another process by its id. */
  #above({ traceId, parentSpanId, traceFlags }: StartedSpan): Context {
    if (parentSpanId === undefined) return ROOT_CONTEXT
    const open = this.#open.get(parentSpanId)
    const context = open?.spanContext() ?? { traceId, spanId: parentSpanId, traceFlags, isRemote: true }
    return trace.setSpanContext(ROOT_CONTEXT, context)
  }
}

/** As seconds and nanoseconds: the SDK takes a small number of milliseconds for one since the process began. */
function toHrTime(at: number): HrTime {
  return [Math.floor(at / 1000), (at % 1000) * 1_000_000]
}

function toOwnAttributes(attributes: Attributes): Record<string, string | number | boolean | string[]> {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [name, Array.isArray(value) ? [...value] : value]),
  ) as Record<string, string | number | boolean | string[]>
}

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

/** The instrumentation scope. */
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
  readonly #writeMetric: WriteMetric
  readonly #withContent: boolean
  readonly #report: (error: unknown, what: string) => void
  /** The runs that have not ended, the one with the latest event last. */
  readonly #runs = new Map<string, RunSpans>()
  #changes: ReturnType<typeof followAllChanges> | undefined
  #isStopped = false
  cursor: TailCursor | undefined
  readonly ended: Promise<void>

  constructor(ledger: Ledger, options: TraceRunsOptions) {
    const { tracerProvider = trace.getTracerProvider(), meterProvider = metrics.getMeterProvider() } = options
    this.#ledger = ledger
    this.#withContent = holdsContent(options)
    this.#spans = new SpanWriter(tracerProvider.getTracer(scope))
    this.#writeMetric = createMetricWriter(meterProvider.getMeter(scope))
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
    const changes = followAllChanges(this.#ledger, this.cursor)
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
    // The spans of the run have ended.
    if (event.type === 'feedback_given') return
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
        run = new RunSpans(event, await readStartsBefore(this.#ledger, event), this.#withContent)
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
    for (const measurement of toMeasurements(move.span)) this.#guarded(() => this.#writeMetric(measurement))
  }

  /** An error of a provider does not end the tracing. */
  #guarded(write: () => void): void {
    try {
      write()
    } catch (error) {
      this.#report(error, 'A span was not exported')
    }
  }
}
