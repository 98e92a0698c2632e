import { type RunId, type RunState, type RuntimeEvent, textOf } from '@tallystick/core'
import type { ShownChange } from '@tallystick/core/internal'
import {
  canonicalJson,
  childRunIdOf,
  type EventOf,
  type EventType,
  type ParentRef,
} from '@tallystick/core/vocabulary'
import { contentText, counted, oneLine, runEnding } from '../command/text.ts'
import { type Paint, type Screen, screenOn } from '../terminal/paint.ts'

/** What tells of what a run is a part. */
export type Origin = Pick<RunState, 'sessionId' | 'sessionPlace' | 'parent'>

/** What a run is a part of, for people: its session, its parent, the run that it branched or was forked from. */
export function originText({ sessionId, sessionPlace = 1, parent }: Origin): string {
  const session = sessionId === undefined ? [] : [`run ${sessionPlace} of session ${sessionId}`]
  // Within a session the run before it goes without saying.
  const origin = parent === undefined || parent.relation === 'session' ? [] : [relationText(parent)]
  return [...session, ...origin].join(', ')
}

/** Says how a run relates to the one that it came from. */
export function relationText({ runId, seq, relation }: ParentRef): string {
  switch (relation) {
    case 'child':
      return `child of run ${runId}`
    case 'fork':
      return `forked from run ${runId} at event ${seq}`
    case 'branch':
      return `a branch of run ${runId} at event ${seq}`
    case 'session':
      return `continues run ${runId}`
  }
}

/** Shows a person what there is to see of an event. */
export function printEvent(event: RuntimeEvent, screen: Screen): void {
  const print = printed[event.type] as (event: RuntimeEvent, screen: Screen) => void
  print(event, screen)
}

/** What a person sees of an event of each type; of some, nothing. */
const printed: { readonly [T in EventType]: (event: EventOf<T>, screen: Screen) => void } = {
  run_started: (event, { line, paint }) => {
    const { sessionId, sessionPlace = 1 } = event
    const session = sessionId === undefined ? '' : `, run ${sessionPlace} of session ${sessionId}`
    const model = event.definition.model.modelId
    line(paint('dim', `run ${event.runId} of ${event.agent}, model ${model}${session}${parentText(event)}`))
  },
  run_resumed: ({ why, epoch, inDoubt }, { note }) => {
    const doubt = inDoubt.length > 0 ? `, in doubt: ${inDoubt.join(', ')}` : ''
    note(`taken up again (${why}) by writer ${epoch}${doubt}`)
  },
  run_finished: (event, { block, line, paint }) => {
    block('')
    line(`${paint('bold', 'done:')} ${runEnding(event)}`)
  },
  history_carried: ({ messages, missing = 0 }, { note }) =>
    note(`${missing + messages.length} earlier messages are carried over`),
  history_edited: ({ edits, by, reason }, { note }) =>
    note(`${edits.length} earlier messages were changed or removed${byText(by)}${why(reason)}`),
  input_received: ({ message }, { block, paint }) => block(paint('bold', `> ${contentText(message.parts)}`)),
  input_settled: (event, { note }) => {
    if (!event.delivered) note(`an input was not taken${why(event.why)}`)
  },
  model_call_started: silent,
  assistant_started: silent,
  assistant_text_delta: ({ text, replaces }, { note, stream }) => {
    if (replaces) note('the provider took back what it said here before, and says instead:')
    stream(text)
  },
  assistant_reasoning_delta: ({ text }, { stream, paint }) => stream(paint('dim', text)),
  tool_input_delta: silent,
  tool_request_ready: ({ name, toolCallId, input, malformed }, { line, paint, cutAt }) => {
    line(`${paint('cyan', '┌ request')} ${paint('bold', name)} ${paint('dim', toolCallId)}`)
    line(`${paint('cyan', '│')} ${oneLine(malformed?.text ?? JSON.stringify(input), cutAt)}`)
  },
  usage_updated: silent,
  assistant_message_finished: ({ partial, written = [] }, { note, endStream, cutAt }) => {
    if (partial) note('the reply was cut off here')
    else endStream()
    for (const { part } of written) note(`the model wrote: ${oneLine(part.text, cutAt)}`)
  },
  model_stream_failed: ({ attempt, failure, retryAt }, { note }) => {
    const next = retryAt === undefined ? '' : '; it is tried again, and what it said so far is withdrawn'
    note(`attempt ${attempt} of the model call failed (${failure.class}): ${failure.message}${next}`)
  },
  tool_requests_collected: ({ calls }, { note }) => {
    for (const { toolCallId, input, repairs } of calls) {
      if (input === undefined) continue
      const how = repairs ? `was repaired (${repairs.join('; ')})` : 'was changed by guardrails'
      note(`the input of ${toolCallId} ${how}: ${canonicalJson(input)}`)
    }
  },
  approval_requested: ({ name, toolCallId, reason }, { note }) =>
    note(`${name} ${toolCallId} needs an approval${why(reason)}`),
  approval_decided: ({ approved, by, via, reason, input, toolCallId }, { note }) => {
    const how = via === undefined ? '' : ` (${via})`
    const changed = input === undefined ? '' : `, to run with ${canonicalJson(input)}`
    note(`${toolCallId} was ${approved ? 'approved' : 'denied'} by ${by}${how}${why(reason)}${changed}`)
  },
  tool_started: ({ attempt, child, name, toolCallId }, { note }) => {
    if (attempt > 1) note(`${name} ${toolCallId} is started again`)
    if (child !== undefined) note(`${name} works in run ${child}`)
  },
  tool_progress: silent,
  tool_deferred: ({ runId, toolCallId, receipt }, { note }) =>
    note(
      receipt === childRunIdOf(runId, toolCallId)
        ? `${toolCallId} waits for run ${receipt}, whose end continues it`
        : `${toolCallId} continues outside as ${receipt}, and is settled later`,
    ),
  tool_attempt_failed: ({ name, toolCallId, attempt, outcome, content, at, retryAt }, { note, cutAt }) =>
    note(
      `attempt ${attempt} of ${name} ${toolCallId} ${outcome === 'failed' ? 'failed' : `ended as ${outcome}`}, and is tried again in ${retryAt - at} ms: ${oneLine(contentText(content), cutAt)}`,
    ),
  tool_result: (event, { line, paint, cutAt }) => {
    const { name, toolCallId, outcome, durationMs, content, projected, shown, reused } = event
    const outcomeText = paint(outcome === 'success' ? 'green' : 'red', outcome)
    const time = durationMs === undefined ? '' : ` in ${durationMs} ms`
    const how = reused === undefined ? time : ', as on record: nothing ran'
    line(
      `${paint('cyan', '└ result ')} ${paint('bold', name)} ${paint('dim', toolCallId)} ${outcomeText}${how}`,
    )
    line(`  ${oneLine(contentText(content), cutAt)}`)
    const read = shown ?? projected
    if (read) line(`  the model read: ${oneLine(contentText(read), cutAt)}`)
  },
  tool_results_injected: silent,
  compaction_started: ({ model, replacedMessages }, { note }) =>
    note(`${model.modelId} sums up ${replacedMessages} older messages`),
  context_compacted: ({ replacedMessages }, { note }) =>
    note(`${replacedMessages} older messages were replaced by a summary`),
  agent_handed_off: ({ from, to }, { note }) => note(`${from} handed over to ${to}`),
  guardrail_tripped: ({ guardrail, on, action, detail }, { note }) =>
    note(`the guardrail ${guardrail} tripped on ${on}: ${action}${detail ? ` (${detail})` : ''}`),
  guardrails_checked: silent,
  output_checked: ({ valid, error }, { note }) => {
    if (!valid) note(`the answer does not fit its schema${why(error)}`)
  },
  limit_reached: ({ limit, max, policy }, { note }) =>
    note(`the limit ${limit} of ${max} is reached: ${policy}`),
  limit_raised: ({ by, limit, max, reason }, { note }) =>
    note(`${by} raised the limit ${limit} to ${max}${reason === undefined ? '' : `: ${reason}`}`),
  cancel_requested: ({ by, reason }, { note }) => note(`cancelled${byText(by)}${why(reason)}`),
}

function silent(): void {}

function parentText({ parent }: EventOf<'run_started'>): string {
  return parent === undefined || parent.relation === 'session' ? '' : `, ${relationText(parent)}`
}

function byText(by: string | undefined): string {
  return by ? ` by ${by}` : ''
}

function why(reason: string | undefined): string {
  return reason ? `: ${reason}` : ''
}

/** The content of an event, in a few words after its type. */
export function eventText(event: RuntimeEvent, maxCharacters: number): string {
  return oneLine([event.type, ...textsOf(event)].join(' '), maxCharacters)
}

/** Events that only say how something is going, or what others beside them say too. */
const inBetween: ReadonlySet<EventType> = new Set<EventType>([
  ...([
    'assistant_started',
    'assistant_text_delta',
    'assistant_reasoning_delta',
    'tool_input_delta',
  ] as const),
  ...(['usage_updated', 'tool_progress', 'tool_results_injected', 'guardrails_checked'] as const),
])

/** Returns whether an event matters to a person who reads through a run. */
export function isOfInterest({ type }: Pick<RuntimeEvent, 'type'>): boolean {
  return !inBetween.has(type)
}

/** What tells an event of a type from another one. */
const texts: { readonly [T in EventType]?: (event: EventOf<T>) => readonly string[] } = {
  run_started: ({ agent }) => [agent],
  run_resumed: ({ definition }) => (definition === undefined ? [] : ['with another definition']),
  history_edited: ({ edits }) => [counted(edits.length, 'message')],
  input_received: ({ message }) => [contentText(message.parts)],
  model_call_started: ({ model, attempt, change }) => [model.modelId, ...again(attempt), ...changed(change)],
  assistant_message_finished: ({ parts, partial }) => [...(partial ? ['cut off'] : []), textOf(parts)],
  model_stream_failed: ({ failure }) => [failure.class],
  tool_request_ready: ({ name, input }) => [name, JSON.stringify(input)],
  tool_requests_collected: ({ calls }) =>
    calls.map(({ name, plan, input }) => {
      const guarded = input === undefined ? '' : ` with ${canonicalJson(input)}, as guardrails made it`
      return `${name}: ${plan}${guarded}`
    }),
  approval_requested: ({ name }) => [name],
  approval_decided: ({ approved, by, via, input, reason }) => {
    const who = via === undefined ? by : `${by} via ${via}`
    const why = reason === undefined ? who : `${who}: ${reason}`
    return [
      approved ? 'approved' : 'denied',
      'by',
      why,
      ...(input === undefined ? [] : ['to run with', canonicalJson(input)]),
    ]
  },
  tool_started: ({ name, attempt }) => [name, ...again(attempt)],
  tool_deferred: ({ receipt }) => [receipt],
  tool_attempt_failed: ({ name, attempt, outcome, content }) => [
    name,
    `attempt ${attempt}`,
    outcome,
    contentText(content),
  ],
  tool_result: ({ name, outcome, content, reused }) => [
    name,
    outcome,
    ...(reused === undefined ? [] : ['(from the record)']),
    contentText(content),
  ],
  compaction_started: ({ model, replacedMessages }) => [model.modelId, counted(replacedMessages, 'message')],
  context_compacted: ({ replacedMessages }) => [counted(replacedMessages, 'message')],
  agent_handed_off: ({ to }) => [to],
  guardrail_tripped: ({ guardrail, on, action }) => [guardrail, on, action],
  output_checked: ({ valid }) => [valid ? 'fits' : 'does not fit'],
  limit_reached: ({ limit, max }) => [limit, `${max}`],
  limit_raised: ({ limit, max }) => [limit, `${max}`],
  cancel_requested: ({ reason = '' }) => [reason],
  run_finished: ({ reason }) => [reason],
}

/** Which parts of the request the agent's code made others. */
function changed(change: ShownChange = {}): readonly string[] {
  const { sourced: _tools, shown, ...others } = change
  const parts = [...Object.keys(others), ...(shown ? ['messages'] : [])]
  return parts.length === 0 ? [] : [`with its own ${parts.join(', ')}`]
}

function again(attempt: number): readonly string[] {
  return attempt === 1 ? [] : [`attempt ${attempt}`]
}

function textsOf(event: RuntimeEvent): readonly string[] {
  const ofType = texts[event.type] as ((event: RuntimeEvent) => readonly string[]) | undefined
  return ofType?.(event) ?? []
}

/** Where a run is printed, and how. */
interface RunPrinterOptions {
  /** Takes text as it comes, line breaks included. */
  readonly write: (text: string) => void
  readonly paint: Paint
  /** Where inputs and results are cut, in characters. Default 400. */
  readonly cutAt?: number
}

/**
 * Prints a run for a person, event by event: the reply's text as it streams, and each tool call with its two halves,
 * the request and the result, under the one id that joins them.
 */
export function runPrinter({ write, paint, cutAt = 400 }: RunPrinterOptions): (event: RuntimeEvent) => void {
  const screen = screenOn(write, { paint, cutAt })
  return (event) => printEvent(event, screen)
}

/** Prints many runs for a person, interleaved: a line names the run whose events follow. */
export function ledgerPrinter({
  write,
  paint,
  cutAt = 400,
}: RunPrinterOptions): (event: RuntimeEvent) => void {
  const screen = screenOn(write, { paint, cutAt })
  let shown: RunId | undefined
  return (event) => {
    if (event.runId !== shown) screen.line(paint('dim', `── ${event.runId}`))
    shown = event.runId
    printEvent(event, screen)
  }
}
