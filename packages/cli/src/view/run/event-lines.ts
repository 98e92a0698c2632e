import type { RuntimeEvent } from '@tallystick/core'
import type { EventOf, EventType } from '@tallystick/core/vocabulary'
import { canonicalJson, childRunIdOf } from '@tallystick/core/vocabulary'
import { contentText, oneLine } from '../text/content-text.ts'
import { relationText } from './origin-text.ts'
import { runEnding } from '../text/run-ending.ts'
import type { Screen } from '../../terminal/screen.ts'

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
