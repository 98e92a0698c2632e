import type { EventOf, RuntimeEvent } from '@tallystick/core'
import { contentText, oneLine } from './content-text.ts'
import type { Paint } from './paint.ts'
import { runEnding } from './run-ending.ts'

/** Where a run is printed, and how. */
export interface RunPrinterOptions {
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
  const { line, note, stream, endStream } = screenOn(write, paint)
  return (event) => {
    switch (event.type) {
      case 'run_started':
        return line(
          paint('dim', `run ${event.runId} of ${event.agent}, model ${event.definition.model.modelId}`),
        )
      case 'run_resumed':
        return note(resumed(event))
      case 'input_received':
        return line(paint('bold', `> ${contentText(event.message.parts)}`))
      case 'assistant_text_delta':
        return stream(event.text)
      case 'assistant_reasoning_delta':
        return stream(paint('dim', event.text))
      case 'model_stream_failed':
        return note(failed(event))
      case 'tool_request_ready':
        line(`${paint('cyan', '┌ request')} ${paint('bold', event.name)} ${paint('dim', event.toolCallId)}`)
        return line(
          `${paint('cyan', '│')} ${oneLine(event.malformed?.text ?? JSON.stringify(event.input), cutAt)}`,
        )
      case 'approval_requested':
        return note(
          `${event.name} ${event.toolCallId} needs an approval${event.reason ? `: ${event.reason}` : ''}`,
        )
      case 'approval_decided':
        return note(decided(event))
      case 'tool_started':
        return startNote(event, note)
      case 'tool_result':
        return line(result(event, paint, cutAt))
      case 'context_compacted':
        return note(`${event.replacedMessages} older messages were replaced by a summary`)
      case 'agent_handed_off':
        return note(`${event.from} handed over to ${event.to}`)
      case 'guardrail_tripped':
        return note(tripped(event))
      case 'output_checked':
        return event.valid ? undefined : note(`the answer does not fit its schema: ${event.error}`)
      case 'history_carried':
        return note(`${event.messages.length} messages of before are carried over`)
      case 'history_edited':
        return note(edited(event))
      case 'compaction_started':
        return note(`${event.model.modelId} sums up ${event.replacedMessages} older messages`)
      case 'limit_reached':
        return note(`the limit ${event.limit} of ${event.max} is reached: ${event.policy}`)
      case 'limit_raised':
        return note(`${event.by} raised the limit ${event.limit} to ${event.max}`)
      case 'cancel_requested':
        return note(`cancelled${event.by ? ` by ${event.by}` : ''}${event.reason ? `: ${event.reason}` : ''}`)
      case 'assistant_message_finished':
        return event.partial ? note('the reply was cut off here') : endStream()
      case 'run_finished':
        return line(`\n${paint('bold', 'done:')} ${runEnding(event)}`)
      case 'input_settled':
        return event.delivered
          ? undefined
          : note(`an input was not taken${event.why ? `: ${event.why}` : ''}`)
      case 'tool_deferred':
        return note(`${event.toolCallId} goes on outside as ${event.receipt}, and is settled later`)
      case 'model_call_started':
      case 'assistant_started':
      case 'tool_input_delta':
      case 'usage_updated':
      case 'tool_requests_collected':
      case 'tool_progress':
      case 'tool_results_injected':
      case 'guardrails_checked':
        return undefined
    }
  }
}

/** Keeps streamed text and whole lines apart. */
function screenOn(write: (text: string) => void, paint: Paint): Screen {
  let lineOpen = false
  let streaming = false
  const endStream = (): void => {
    if (lineOpen) write('\n')
    lineOpen = false
    streaming = false
  }
  const line = (text: string): void => {
    endStream()
    write(`${text}\n`)
  }
  const stream = (text: string): void => {
    if (text === '') return
    write(streaming ? text : `\n${text}`)
    lineOpen = !text.endsWith('\n')
    streaming = true
  }
  return { line, stream, endStream, note: (text) => line(paint('yellow', `! ${text}`)) }
}

interface Screen {
  readonly line: (text: string) => void
  readonly note: (text: string) => void
  readonly stream: (text: string) => void
  readonly endStream: () => void
}

function resumed({ why, epoch, inDoubt }: EventOf<'run_resumed'>): string {
  const doubt = inDoubt.length > 0 ? `, in doubt: ${inDoubt.join(', ')}` : ''
  return `taken up again (${why}) by writer ${epoch}${doubt}`
}

function failed({ attempt, failure, retryAt }: EventOf<'model_stream_failed'>): string {
  const next = retryAt === undefined ? '' : '; it is tried again, and what it said so far is withdrawn'
  return `attempt ${attempt} of the model call failed (${failure.class}): ${failure.message}${next}`
}

function startNote(
  { attempt, child, name, toolCallId }: EventOf<'tool_started'>,
  note: (text: string) => void,
): void {
  if (attempt > 1) note(`${name} ${toolCallId} is started again`)
  if (child !== undefined) note(`${name} works in run ${child}`)
}

function tripped({ guardrail, on, action, detail }: EventOf<'guardrail_tripped'>): string {
  return `the guardrail ${guardrail} tripped on ${on}: ${action}${detail ? ` (${detail})` : ''}`
}

function edited({ edits, by, reason }: EventOf<'history_edited'>): string {
  const who = by ? ` by ${by}` : ''
  return `${edits.length} messages of before were changed or removed${who}${reason ? `: ${reason}` : ''}`
}

function decided({ approved, by, reason, input, toolCallId }: EventOf<'approval_decided'>): string {
  const what = approved ? `approved${input === undefined ? '' : ' with a changed input'}` : 'denied'
  return `${toolCallId} was ${what} by ${by}${reason ? `: ${reason}` : ''}`
}

function result(event: EventOf<'tool_result'>, paint: Paint, cutAt: number): string {
  const { name, toolCallId, outcome, durationMs, content } = event
  const outcomeText = paint(outcome === 'success' ? 'green' : 'red', outcome)
  const time = durationMs === undefined ? '' : ` in ${durationMs} ms`
  return (
    `${paint('cyan', '└ result ')} ${paint('bold', name)} ${paint('dim', toolCallId)} ${outcomeText}${time}\n` +
    `  ${oneLine(contentText(content), cutAt)}`
  )
}
