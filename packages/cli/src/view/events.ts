import { formatContent } from '@tallystick/ledger'
import { type RunId, type RunState, type RuntimeEvent, joinText } from '@tallystick/core'
import {
  type Approvers,
  toCanonicalJson,
  deriveChildRunId,
  type EventOf,
  type EventType,
  type ParentRef,
  type Schedule,
  type StandingOptions,
} from '@tallystick/core/vocabulary'
import type { View } from '../command/context.ts'
import { formatCount, formatDuration, toOneLine, formatEnding } from '../command/text.ts'
import { type Screen, createScreen } from '../terminal/paint.ts'

export type Origin = Pick<RunState, 'sessionId' | 'sessionPlace' | 'parent'>

/** The session, the parent, or the source of a run. */
export function formatOrigin({ sessionId, sessionPlace = 1, parent }: Origin): string {
  const session = sessionId === undefined ? [] : [`run ${sessionPlace} of session ${sessionId}`]
  // The place in the session already says which run came before.
  const origin = parent === undefined || parent.relation === 'session' ? [] : [formatRelation(parent)]
  return [...session, ...origin].join(', ')
}

export function formatRelation({ runId, seq, relation }: ParentRef): string {
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

export function printEvent(event: RuntimeEvent, screen: Screen): void {
  const print = printed[event.type] as ((event: RuntimeEvent, screen: Screen) => void) | null
  print?.(event, screen)
}

/** Prints an event of each type; null for types that are not shown. */
const printed: { readonly [T in EventType]: ((event: EventOf<T>, screen: Screen) => void) | null } = {
  run_started: (event, { line, paint }) => {
    const origin = formatOrigin(event)
    const model = event.definition.model.modelId
    const more = origin === '' ? '' : `, ${origin}`
    line(paint('dim', `run ${event.runId} of ${event.agent}, model ${model}${more}`))
  },
  run_resumed: ({ why, epoch, inDoubt }, { note }) => {
    const doubt = inDoubt.length > 0 ? `, in doubt: ${inDoubt.join(', ')}` : ''
    note(`resumed (${why}) by writer ${epoch}${doubt}`)
  },
  run_finished: (event, { block, line, paint }) => {
    block('')
    line(`${paint('bold', 'done:')} ${formatEnding(event)}`)
  },
  history_carried: ({ messages, missing = 0 }, { note }) =>
    note(`${formatCount(missing + messages.length, 'earlier message')} carried over`),
  session_edited: (event, { note }) => note(formatSessionEdit(event)),
  history_edited: ({ edits, by, reason }, { note }) => {
    // The model's version of a user's message is shown nowhere else.
    const instead = edits.flatMap(({ message }) =>
      message?.role === 'user' ? [` (now: ${toOneLine(formatContent(message.parts), 200)})`] : [],
    )
    const count = formatCount(edits.length, 'earlier message')
    note(`${count} changed or removed${instead.join('')}${formatBy(by)}${formatWhy(reason)}`)
  },
  input_received: ({ message }, { block, paint }) =>
    block(paint('bold', `> ${formatContent(message.parts)}`)),
  input_settled: (event, { note }) => {
    if (!event.delivered) note(`an input was not taken${formatWhy(event.why)}`)
  },
  model_call_started: null,
  assistant_started: null,
  assistant_text_delta: ({ text, replaces }, { note, stream }) => {
    if (replaces) note('the provider replaced its text so far with this:')
    stream(text)
  },
  assistant_reasoning_delta: ({ text }, { stream, paint }) => stream(paint('dim', text)),
  tool_input_delta: null,
  tool_request_ready: ({ name, toolCallId, input, malformed }, { line, paint, cutAt }) => {
    line(`${paint('cyan', '┌ request')} ${paint('bold', name)} ${paint('dim', toolCallId)}`)
    line(`${paint('cyan', '│')} ${toOneLine(malformed?.text ?? JSON.stringify(input), cutAt)}`)
  },
  usage_updated: null,
  assistant_message_finished: ({ partial, written = [] }, { note, endStream, cutAt }) => {
    if (partial) note('the reply was cut off here')
    else endStream()
    for (const { part } of written) note(`the model wrote: ${toOneLine(part.text, cutAt)}`)
  },
  model_stream_failed: ({ attempt, failure, retryAt }, { note }) => {
    const next = retryAt === undefined ? '' : '; it is tried again, and its text so far is withdrawn'
    note(`attempt ${attempt} of the model call failed (${failure.class}): ${failure.message}${next}`)
  },
  tool_requests_collected: ({ calls }, { note }) => {
    for (const { toolCallId, input, repairs } of calls) {
      if (input === undefined) continue
      const how = repairs ? `was repaired (${repairs.join('; ')})` : 'was changed by guardrails'
      note(`the input of ${toolCallId} ${how}: ${toCanonicalJson(input)}`)
    }
  },
  approval_requested: ({ name, toolCallId, reason, approvers }, { note }) =>
    note(`${name} ${toolCallId} needs an approval${formatApprovers(approvers)}${formatWhy(reason)}`),
  approval_added: ({ by, roles, via, reason, toolCallId }, { note }) =>
    note(
      `${toolCallId} was approved by ${formatPerson({ by, roles, via })}, and waits for more people${formatWhy(reason)}`,
    ),
  approval_decided: ({ approved, by, roles, via, reason, input, standing, toolCallId, at }, { note }) => {
    const who = formatPerson({ by, roles, via })
    const changed = input === undefined ? '' : `, to run with ${toCanonicalJson(input)}`
    const kept = standing === undefined ? '' : `, and ${formatStanding(standing, at)}`
    note(
      `${toolCallId} was ${approved ? 'approved' : 'denied'} by ${who}${formatWhy(reason)}${changed}${kept}`,
    )
  },
  approval_applied: ({ toolCallId, by, standing }, { note }) =>
    note(`${toolCallId} runs on the standing approval ${standing} by ${by}`),
  approval_withdrawn: ({ standing, by, reason }, { note }) =>
    note(`the standing approval ${standing} was withdrawn by ${by}${formatWhy(reason)}`),
  tool_started: ({ attempt, child, name, toolCallId }, { note }) => {
    if (attempt > 1) note(`${name} ${toolCallId} is started again`)
    if (child !== undefined) note(`${name} works in run ${child}`)
  },
  tool_progress: null,
  tool_deferred: ({ runId, toolCallId, receipt }, { note }) =>
    note(
      receipt === deriveChildRunId(runId, toolCallId)
        ? `${toolCallId} waits for run ${receipt}, whose end continues it`
        : `${toolCallId} continues outside as ${receipt}, and is settled later`,
    ),
  tool_attempt_failed: ({ name, toolCallId, attempt, outcome, content, at, retryAt }, { note, cutAt }) =>
    note(
      `attempt ${attempt} of ${name} ${toolCallId} ${outcome === 'failed' ? 'failed' : `ended as ${outcome}`}, and is tried again in ${retryAt - at} ms: ${toOneLine(formatContent(content), cutAt)}`,
    ),
  tool_result: (event, { line, paint, cutAt }) => {
    const { name, toolCallId, outcome, durationMs, content, projected, shown, reused } = event
    const outcomeText = paint(outcome === 'success' ? 'green' : 'red', outcome)
    const time = durationMs === undefined ? '' : ` in ${durationMs} ms`
    const how = reused === undefined ? time : ', as on record: nothing ran'
    line(
      `${paint('cyan', '└ result ')} ${paint('bold', name)} ${paint('dim', toolCallId)} ${outcomeText}${how}`,
    )
    line(`  ${toOneLine(formatContent(content), cutAt)}`)
    const read = shown ?? projected
    if (read) line(`  the model read: ${toOneLine(formatContent(read), cutAt)}`)
  },
  background_ended: ({ name, toolCallId, outcome, content, message }, { note, cutAt }) => {
    const unread = message === undefined ? ', and no model reads it' : ''
    note(
      `${name} ${toolCallId} ended in the background as ${outcome}${unread}: ${toOneLine(formatContent(content), cutAt)}`,
    )
  },
  tool_results_injected: null,
  compaction_started: ({ model, replacedMessages }, { note }) =>
    note(`${model.modelId} sums up ${replacedMessages} older messages`),
  context_compacted: ({ replacedMessages }, { note }) =>
    note(`${replacedMessages} older messages were replaced by a summary`),
  agent_handed_off: ({ from, to }, { note }) => note(`${from} handed over to ${to}`),
  guardrail_tripped: ({ guardrail, on, action, detail }, { note }) =>
    note(`the guardrail ${guardrail} tripped on ${on}: ${action}${detail ? ` (${detail})` : ''}`),
  guardrails_checked: null,
  output_checked: ({ valid, error }, { note }) => {
    if (!valid) note(`the answer does not fit its schema${formatWhy(error)}`)
  },
  limit_reached: ({ limit, max, policy }, { note }) =>
    note(`the limit ${limit} of ${max} is reached: ${limitEffects[policy]}`),
  limit_raised: ({ by, limit, max, reason }, { note }) =>
    note(`${by} raised the limit ${limit} to ${max}${reason === undefined ? '' : `: ${reason}`}`),
  schedule_set: (event, { note }) => {
    const { paused, nextAt, by, reason } = event
    const next = nextAt === undefined ? '' : `, next at ${new Date(nextAt).toISOString()}`
    note(
      `schedule ${formatSchedule(event)} ${paused ? 'paused' : 'set'}${formatBy(by)}${formatWhy(reason)}${next}`,
    )
  },
  schedule_fired: ({ scheduledAt, startedRun, missed = 0 }, { note }) => {
    const left = missed === 0 ? '' : `, ${formatCount(missed, 'earlier time')} missed`
    const what = startedRun === undefined ? 'was missed, and starts nothing' : `starts run ${startedRun}`
    note(`${new Date(scheduledAt).toISOString()} ${what}${left}`)
  },
  cancel_requested: ({ by, reason }, { note }) => note(`cancelled${formatBy(by)}${formatWhy(reason)}`),
  feedback_given: ({ by, score, note: said }, { note }) =>
    note(`${by} gave ${score === undefined ? 'feedback' : `the score ${score}`}${formatWhy(said)}`),
}

const limitEffects: Record<EventOf<'limit_reached'>['policy'], string> = {
  finalize: 'one last model call may write the answer',
  stop: 'the run ends',
  ask: 'the run waits until it is raised',
}

function formatBy(by: string | undefined): string {
  return by ? ` by ${by}` : ''
}

function formatWhy(reason: string | undefined): string {
  return reason ? `: ${reason}` : ''
}

function formatPerson({
  by,
  roles = [],
  via,
}: {
  readonly by: string
  readonly roles?: readonly string[] | undefined
  readonly via?: string | undefined
}): string {
  const details = [...roles, ...(via === undefined ? [] : [via])]
  return details.length === 0 ? by : `${by} (${details.join(', ')})`
}

/** What a call demands of its approvers, as ` of 2 people with the role finance`. */
function formatApprovers(approvers: readonly Approvers[] | undefined): string {
  const demands = (approvers ?? []).map(({ count = 1, roles = [] }) => {
    const people = count === 1 ? 'one person' : `${count} people`
    return roles.length === 0 ? people : `${people} with the role ${roles.join(' or ')}`
  })
  return demands.length === 0 ? '' : ` of ${demands.join(', and of ')}`
}

/** What a standing approval covers, and until when. */
export function formatStanding({ for: scope, expiresInMs }: StandingOptions, at: number): string {
  const calls = scope === 'session' ? 'later calls of the tool' : 'later calls with this input'
  return `for ${calls} until ${new Date(at + expiresInMs).toISOString()}`
}

/** The content of an event, in a few words after its type. */
export function formatEvent(event: RuntimeEvent, maxCharacters: number): string {
  const words = texts[event.type] as ((event: RuntimeEvent) => readonly string[]) | null
  return toOneLine([event.type, ...(words?.(event) ?? [])].join(' '), maxCharacters)
}

/** Returns true for an event that matters to a person who reads through a run. */
export function isOfInterest({ type }: Pick<RuntimeEvent, 'type'>): boolean {
  return texts[type] !== null
}

/** The words after the type of each event; null for events that only show progress, or repeat what others say. */
const texts: { readonly [T in EventType]: ((event: EventOf<T>) => readonly string[]) | null } = {
  run_started: ({ agent }) => [agent],
  run_resumed: ({ definition, lacks = [] }) => [
    ...(definition === undefined ? [] : ['with another definition']),
    ...lacks.map(({ option, name }) => `without ${option} ${name}`),
  ],
  session_edited: (event) => [formatSessionEdit(event)],
  history_edited: ({ edits }) => [formatCount(edits.length, 'message')],
  history_carried: () => [],
  input_received: ({ message }) => [formatContent(message.parts)],
  input_settled: () => [],
  assistant_started: null,
  assistant_text_delta: null,
  assistant_reasoning_delta: null,
  tool_input_delta: null,
  usage_updated: null,
  model_call_started: ({ model, attempt, change = {} }) => {
    // The parts of the request that the agent's code changed.
    const { sourced: _tools, shown, ...others } = change
    const own = [...Object.keys(others), ...(shown ? ['messages'] : [])]
    const changed = own.length === 0 ? [] : [`with its own ${own.join(', ')}`]
    return [model.modelId, ...formatAttempt(attempt), ...changed]
  },
  assistant_message_finished: ({ parts, partial }) => [...(partial ? ['cut off'] : []), joinText(parts)],
  model_stream_failed: ({ failure }) => [failure.class],
  tool_request_ready: ({ name, input }) => [name, JSON.stringify(input)],
  tool_requests_collected: ({ calls }) =>
    calls.map(({ name, plan, input }) => {
      const guarded = input === undefined ? '' : ` with ${toCanonicalJson(input)}, as guardrails made it`
      return `${name}: ${plan}${guarded}`
    }),
  approval_requested: ({ name, approvers }) => [`${name}${formatApprovers(approvers)}`],
  approval_added: ({ by, roles, via, reason }) => [
    `approved by ${formatPerson({ by, roles, via })}, waits for more${formatWhy(reason)}`,
  ],
  approval_decided: ({ approved, by, roles, via, input, reason, standing, at }) => {
    const who = formatPerson({ by, roles, via })
    const ran = input === undefined ? [] : ['to run with', toCanonicalJson(input)]
    const kept = standing === undefined ? [] : [formatStanding(standing, at)]
    return [approved ? 'approved' : 'denied', 'by', `${who}${formatWhy(reason)}`, ...ran, ...kept]
  },
  approval_applied: ({ by, standing }) => ['by', by, 'in', standing],
  approval_withdrawn: ({ by, standing, reason }) => [standing, 'by', `${by}${formatWhy(reason)}`],
  tool_started: ({ name, attempt }) => [name, ...formatAttempt(attempt)],
  tool_progress: null,
  background_ended: ({ name, outcome, content }) => [name, outcome, formatContent(content)],
  tool_results_injected: null,
  guardrails_checked: null,
  tool_deferred: ({ receipt }) => [receipt],
  tool_attempt_failed: ({ name, attempt, outcome, content }) => [
    name,
    `attempt ${attempt}`,
    outcome,
    formatContent(content),
  ],
  tool_result: ({ name, outcome, content, reused }) => [
    name,
    outcome,
    ...(reused === undefined ? [] : ['(from the record)']),
    formatContent(content),
  ],
  compaction_started: ({ model, replacedMessages }) => [
    model.modelId,
    formatCount(replacedMessages, 'message'),
  ],
  context_compacted: ({ replacedMessages }) => [formatCount(replacedMessages, 'message')],
  agent_handed_off: ({ to }) => [to],
  guardrail_tripped: ({ guardrail, on, action }) => [guardrail, on, action],
  output_checked: ({ valid }) => [valid ? 'fits' : 'does not fit'],
  limit_reached: ({ limit, max }) => [limit, `${max}`],
  limit_raised: ({ limit, max }) => [limit, `${max}`],
  schedule_set: (event) => [formatSchedule(event), ...(event.paused ? ['paused'] : [])],
  schedule_fired: ({ scheduledAt, startedRun }) => [
    new Date(scheduledAt).toISOString(),
    ...(startedRun === undefined ? ['missed'] : [startedRun]),
  ],
  cancel_requested: ({ reason = '' }) => [reason],
  feedback_given: ({ by, score, note = '' }) => [by, `${score ?? ''}`, note].filter(Boolean),
  run_finished: ({ reason }) => [reason],
}

function formatSessionEdit({
  edit,
  messages = [],
  count = 0,
  standing,
  by,
  reason,
}: EventOf<'session_edited'>): string {
  const what = {
    append: `${formatCount(messages.length, 'message')} added to the session`,
    pop: `${formatCount(count, 'message')} taken from the end of the session`,
    clear: `the session begins anew, without its ${formatCount(count, 'message')}`,
    branch: 'a branch of another session',
    withdraw: `the standing approval ${standing} was withdrawn`,
  }
  return `${what[edit]}${formatBy(by)}${formatWhy(reason)}`
}

/** When a schedule starts runs, in a few words. */
export function formatSchedule({ name, cron, timeZone, onceAt, everyMs }: Omit<Schedule, 'missed'>): string {
  const times =
    cron !== undefined
      ? `${cron} ${timeZone}`
      : onceAt !== undefined
        ? `at ${new Date(onceAt).toISOString()}`
        : `every ${formatDuration(everyMs ?? 0)}`
  return name === undefined ? times : `${name} (${times})`
}

function formatAttempt(attempt: number): readonly string[] {
  return attempt === 1 ? [] : [`attempt ${attempt}`]
}

/** The most characters of an input or a result. */
const cutAt = 400

/**
 * Prints a run for a person, event by event: the reply's text as it streams, and each tool call with its two halves,
 * the request and the result, under the one id that joins them.
 */
export function createRunPrinter({ write, paint }: View): (event: RuntimeEvent) => void {
  const screen = createScreen(write, { paint, cutAt })
  return (event) => printEvent(event, screen)
}

/** Prints many runs for a person, interleaved: a line names the run whose events follow. */
export function createLedgerPrinter({ write, paint }: View): (event: RuntimeEvent) => void {
  const screen = createScreen(write, { paint, cutAt })
  let shown: RunId | undefined
  return (event) => {
    if (event.runId !== shown) screen.line(paint('dim', `── ${event.runId}`))
    shown = event.runId
    printEvent(event, screen)
  }
}
