import type { Ledger, RunId } from '@tallystick/core'
import { evolve, type RunState, transcript } from '@tallystick/core/machine'
import type { RuntimeEvent } from '@tallystick/core/vocabulary'
import { recordedSpans, toOtlp, type Span } from '@tallystick/otel'
import { toAgUi } from '@tallystick/server'
import { Subject } from 'rxjs'

/** What `export` prints of a run beside its events: spans, what a chat is shown, and what the model is shown. */
export const viewFormats = ['otlp', 'agui', 'messages'] as const
export type ViewFormat = (typeof viewFormats)[number]

/** Which run a view is of, and whether it includes the child runs. */
export interface ViewedRun {
  readonly runId: RunId
  readonly withChildren: boolean
}

/** Returns a run in a format, as lines of JSON. */
export function viewLines(ledger: Ledger, format: ViewFormat, run: ViewedRun): AsyncIterable<string> {
  return views[format](ledger, run)
}

const views: Readonly<Record<ViewFormat, (ledger: Ledger, run: ViewedRun) => AsyncIterable<string>>> = {
  otlp: otlpLines,
  agui: agUiLines,
  messages: messageLines,
}

/** So many spans are in one request at most: receivers refuse large ones. */
const maxSpans = 500

/** Each line is the body of one request to a receiver. */
async function* otlpLines(ledger: Ledger, { runId, withChildren }: ViewedRun): AsyncGenerator<string> {
  const serviceName = process.env['OTEL_SERVICE_NAME'] || undefined
  let spans: Span[] = []
  for await (const span of recordedSpans(ledger, runId, { withChildren })) {
    spans.push(span)
    if (spans.length < maxSpans) continue
    yield JSON.stringify(toOtlp(spans, { serviceName }))
    spans = []
  }
  if (spans.length > 0) yield JSON.stringify(toOtlp(spans, { serviceName }))
}

async function* agUiLines(ledger: Ledger, { runId }: ViewedRun): AsyncGenerator<string> {
  const lines: string[] = []
  const events$ = new Subject<RuntimeEvent>()
  const shown = toAgUi(events$).subscribe((event) => lines.push(JSON.stringify(event)))
  for await (const event of ledger.read(runId)) {
    events$.next(event)
    yield* lines.splice(0)
  }
  shown.unsubscribe()
}

async function* messageLines(ledger: Ledger, { runId }: ViewedRun): AsyncGenerator<string> {
  let state: RunState | undefined
  for await (const event of ledger.read(runId)) state = evolve(state, event)
  if (state) yield JSON.stringify({ runId, messages: transcript(state) })
}
