import type { CallRefusal } from '../../vocabulary/events/event.ts'
import type { Outcome, TextPart } from '../../vocabulary/model/content.ts'

/** What the model reads where the runtime, not the tool, ended a call: what happened, and what to make of it. */
const texts: { readonly [O in Outcome]: string } = {
  success: 'Done.',
  invalid_input: 'The input does not fit the schema of this tool. Nothing was run.',
  unknown_tool: 'There is no tool of that name. Nothing was run.',
  denied: 'This call was denied. Nothing was run.',
  failed: 'The tool failed.',
  timed_out: 'The tool was given up because it took too long. It may have had an effect all the same.',
  cancelled: 'The run was cancelled before this call was complete.',
  interrupted:
    'The process stopped while this tool ran, and nobody recorded how it ended. It may have taken effect. Find out before you ask for it again.',
  repeated: 'The same call was made before, with the same result.',
  limit_reached: 'A limit of this run does not allow this call. Nothing was run.',
  skipped: 'The reply that asked for this call was not complete. Nothing was run.',
}

/** The content of a result that the runtime itself gives. */
export function textContent(outcome: Outcome, text: string = texts[outcome]): readonly TextPart[] {
  return [{ type: 'text', text }]
}

/** Law 13: what becomes of a call whose input was removed from the record before it was started. */
export const removedInput: CallRefusal = {
  outcome: 'skipped',
  text: 'The input of this call was removed from the record before the call was started. Nothing was run; ask for it again if it is still needed.',
}

/** What the model reads where such a call was started once, and is not started again. */
export const removedInputInDoubt =
  'The process stopped while this tool ran, and the input of the call was removed from the record since, so it was not started again. It may have taken effect. Find out before you ask for it again.'

/** Why the child run of such a call is told to stop. */
export const removedInputReason = 'The input of the call was removed from the record.'
