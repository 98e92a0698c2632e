import { formatContent } from '@tallystick/ledger'
import type { Message, RunState } from '@tallystick/core'
import { type Call, openTurnCalls } from '@tallystick/core/machine'
import {
  type AssistantPart,
  toCanonicalJson,
  deriveChildRunId,
  type Json,
  type ProviderPart,
  type ToolCallId,
} from '@tallystick/core/vocabulary'
import {
  formatCitations,
  formatDuration,
  indent,
  formatJson,
  formatTable,
  formatTime,
} from '../command/text.ts'
import {
  formatAlike,
  type CallStory,
  haveEndedAlike,
  type RunStory,
  type StoryPart,
} from '../runs/run-story.ts'
import { type Paint, createScreen } from '../terminal/paint.ts'
import { printEvent } from './events.ts'

const maxInlineCharacters = 80

/** Short inputs take one line. */
export function formatInput(input: Json): string {
  const line = toCanonicalJson(input)
  return line.length <= maxInlineCharacters ? line : formatJson(input)
}

/** The end of a call: the decision about it, the input that ran if it was changed, and its result. */
export function formatResult(call: CallStory, paint: Paint, waits: string | undefined): string {
  const { name, toolCallId, outcome, durationMs, reused, resultSeq, content } = call
  const which = `${name} ${paint('dim', toolCallId)}`
  if (outcome === undefined || content === undefined) {
    return `${paint('yellow', '╎ open   ')} ${which} ${waits ?? 'has no result yet'}\n${formatDecision(call)}`
  }
  const took = durationMs === undefined ? '' : ` in ${formatDuration(durationMs)}`
  const how = reused === undefined ? took : `, as on record: nothing ran`
  const head = `${paint('cyan', '└ result ')} ${which} ${outcome}${how}${paint('dim', `, event ${resultSeq}`)}`
  return `${head}\n${formatDecision(call)}${indent(formatContent(content), 4)}\n`
}

function formatDecision({ requested, guarded, guardedSeq, decision, executed }: CallStory): string {
  if (guarded === undefined && decision === undefined) return ''
  const rows: string[][] = [['asked for', toCanonicalJson(requested)]]
  if (guarded) rows.push(['guarded', `${toCanonicalJson(guarded)}, event ${guardedSeq}`])
  if (decision) {
    const { approved, by, via, reason, seq } = decision
    const how = via === undefined ? '' : ` (${via})`
    const why = reason === undefined ? '' : `: ${reason}`
    rows.push([approved ? 'approved' : 'denied', `by ${by}${how}, event ${seq}${why}`])
  }
  if (executed) rows.push(['ran with', toCanonicalJson(executed)])
  return `${indent(formatTable(rows).trimEnd(), 4)}\n`
}

/** A call that has no result yet. */
interface OpenCall {
  readonly toolCallId: ToolCallId
  readonly name: string
  readonly status: Call['status']
  readonly waits: string
}

export function listOpenCalls(state: RunState): readonly OpenCall[] {
  return openTurnCalls(state).flatMap((call) => {
    const { toolCallId, name, status } = call
    return status === 'settled' ? [] : [{ toolCallId, name, status, waits: formatWait(state, call) }]
  })
}

function formatWait({ runId }: RunState, { toolCallId, status, child, deferred }: Call): string {
  const childId = child === undefined ? undefined : deriveChildRunId(runId, toolCallId)
  switch (status) {
    case 'awaiting_approval':
      return 'waits for an approval'
    case 'started':
      return childId === undefined ? 'was started' : `is the work of run ${childId}`
    case 'in_doubt':
      return 'was started, and no result was recorded'
    case 'to_retry':
      return 'failed, and is tried again'
    case 'deferred':
      return childId === undefined
        ? `continues outside as ${deferred?.externalId}`
        : `waits for run ${childId}`
    case 'requested':
    case 'to_settle':
    case 'to_ask':
    case 'ready':
    case 'settled':
      return 'was not started'
  }
}

export interface TranscriptView {
  readonly paint: Paint
  /** Calls without a result: the transcript has placeholders for them, which no model has read. */
  readonly open: readonly OpenCall[]
}

/** The messages that a model is shown, each under its role, with the ids that join calls and results. */
export function formatTranscript(messages: readonly Message[], view: TranscriptView): string {
  return messages.map((message) => `${formatMessage(message, view)}\n`).join('')
}

function formatMessage(message: Message, { paint, open }: TranscriptView): string {
  switch (message.role) {
    case 'user':
      return `${paint('bold', 'user')}\n${indent(formatContent(message.parts))}\n`
    case 'assistant': {
      const head = `assistant ${paint('dim', `(${message.stopReason}${message.partial ? ', cut off' : ''})`)}`
      return `${paint('bold', head)}\n${message.parts.map((part) => formatPart(part, paint, 2)).join('\n')}\n`
    }
    case 'tool': {
      const results = message.results.map(({ name, toolCallId, outcome, content }) => {
        const call = `${name} ${paint('dim', toolCallId)}`
        const waiting = open.find((each) => each.toolCallId === toolCallId)
        if (waiting) return indent(`${paint('yellow', '╎ open   ')} ${call} ${waiting.waits}`)
        return (
          `${indent(`${paint('cyan', '└ result ')} ${call} ${outcome}`)}\n` +
          indent(indent(formatContent(content)))
        )
      })
      return `${paint('bold', 'tool')}\n${results.join('\n')}\n`
    }
  }
}

/** Text is indented by `columns`; lines about calls always by two. */
function formatPart(part: AssistantPart, paint: Paint, columns: number): string {
  switch (part.type) {
    case 'text':
      return indent([part.text, ...formatCitations(part.citations, paint)].join('\n'), columns)
    case 'reasoning':
      return indent(paint('dim', part.text), columns)
    case 'tool_call': {
      const head = `${paint('cyan', '┌ request')} ${part.name} ${paint('dim', part.toolCallId)}`
      const input = part.malformed?.text ?? formatInput(part.input)
      return indent(`${head}\n${indent(input, columns)}`)
    }
    case 'provider':
      return indent([formatExecuted(part, paint), ...formatCitations(part.sources, paint)].join('\n'))
  }
}

/** Work of the vendor itself: a call of its own tool, if the part describes one. */
function formatExecuted({ opaque, kind, executed }: ProviderPart, paint: Paint): string {
  const whose = paint('dim', `[${opaque.provider}: ${kind}]`)
  if (executed === undefined) return whose
  const { id, name, input, outcome } = executed
  const asked = input && `${paint('cyan', '┌ run by the provider')} ${name} ${paint('dim', id)} ${whose}`
  const resultLine = outcome && `${paint('cyan', '└ result')} ${name} ${paint('dim', id)} ${outcome} ${whose}`
  return [asked, input && indent(JSON.stringify(input)), resultLine].filter(Boolean).join('\n')
}

/** From this many on, similar turns in a row are shown as one. */
const alikeMin = 3

export interface StoryView {
  readonly paint: Paint
  /** The run at the end of the story. */
  readonly state: RunState
  /** The messages before the run. */
  readonly history: readonly Message[]
  /** Shows similar turns one by one. */
  readonly whole: boolean
}

/** Each message of a run with its events, its time and how long it took. */
export function formatStory({ parts }: RunStory, view: StoryView): string {
  const texts: string[] = []
  for (let place = 0; place < parts.length;) {
    const alike = view.whole ? [] : findAlike(parts, place)
    if (alike.length >= alikeMin) {
      texts.push(formatAlikeTurns(alike, view))
      place += 2 * alike.length
    } else {
      texts.push(formatStoryPart(parts[place] as StoryPart, view))
      place++
    }
  }
  return texts.flatMap((text) => (text === '' ? [] : [`${text}\n`])).join('')
}

type SingleCall = readonly [reply: StoryPart, calls: StoryPart, call: CallStory]

/** Finds the turns from a place on that each asked only for one call of the same tool, and got the same result. */
function findAlike(parts: readonly StoryPart[], from: number): readonly SingleCall[] {
  const found: SingleCall[] = []
  for (let place = from; ; place += 2) {
    const single = findSingleCall(parts[place], parts[place + 1])
    const [first] = found
    if (single === undefined || (first && !haveEndedAlike(first[2], single[2]))) return found
    found.push(single)
  }
}

function findSingleCall(reply: StoryPart | undefined, calls: StoryPart | undefined): SingleCall | undefined {
  if (reply?.kind !== 'reply' || calls?.kind !== 'calls') return undefined
  const [call, ...others] = calls.calls
  const [part, ...more] = reply.event.parts
  const isAlone = part?.type === 'tool_call' && more.length === 0 && others.length === 0
  return isAlone && call?.outcome !== undefined && call.decision === undefined
    ? [reply, calls, call]
    : undefined
}

function formatAlikeTurns(turns: readonly SingleCall[], view: StoryView): string {
  const [[first], [, last]] = [turns[0] as SingleCall, turns.at(-1) as SingleCall]
  const head = formatHead(`turns ${first.turn}-${last.turn}`, { ...last, fromSeq: first.fromSeq }, view)
  const more = view.paint('dim', `--turn ${first.turn} shows the first of them, --whole all of them.`)
  return `${head}\n${indent(formatAlike(turns.map(([, , call]) => call)), 4)}\n${indent(more, 4)}\n`
}

function formatStoryPart(part: StoryPart, view: StoryView): string {
  const { paint } = view
  switch (part.kind) {
    case 'input':
      return `${formatHead('user', part, view)}\n${indent(formatContent(part.event.message.parts), 4)}\n`
    case 'history':
      return `${formatHead(`${part.messages} earlier messages`, part, view)}\n${formatTranscript(view.history, { paint, open: [] })}`
    case 'reply': {
      const { stopReason, partial, parts, written = [] } = part.event
      const took = `took ${formatDuration(part.tookMs)}, ${stopReason}${partial ? ', cut off' : ''}`
      const wrote = written.map(({ part: each }) => paint('dim', indent(`the model wrote: ${each.text}`, 4)))
      // Text is indented further than lines about calls, so that no text can look like a call.
      const lines = [...parts.map((each) => formatPart(each, paint, 4)), ...wrote]
      return `${formatHead('assistant', part, view, took)}\n${lines.join('\n')}\n`
    }
    case 'failed':
      return formatFailed(part, view)
    case 'calls': {
      const open = listOpenCalls(view.state)
      const results = part.calls.map((call) => {
        const waits = open.find(({ toolCallId }) => toolCallId === call.toolCallId)?.waits
        return indent(formatResult(call, paint, waits).trimEnd())
      })
      return `${formatHead('tool', part, view)}\n${results.join('\n')}\n`
    }
    case 'note': {
      // The text of `run` and `tail` for an event, with its number.
      let text = ''
      printEvent(
        part.event,
        createScreen((more) => (text += more), { paint, cutAt: Infinity }),
      )
      const place = paint('dim', `(event ${part.toSeq}, ${formatTime(part.at)})`)
      return text === '' ? '' : `${text.trim()} ${place}\n`
    }
  }
}

function formatHead(
  name: string,
  { turn, fromSeq, toSeq, at }: StoryPart,
  view: StoryView,
  more?: string,
): string {
  const events = fromSeq === toSeq ? `event ${fromSeq}` : `events ${fromSeq}-${toSeq}`
  const facts = [
    ...(turn === 0 ? [] : [`turn ${turn}`]),
    events,
    formatTime(at),
    ...(more === undefined ? [] : [more]),
  ]
  return `${view.paint('bold', name)} ${view.paint('dim', `(${facts.join(', ')})`)}`
}

function formatFailed(part: StoryPart & { readonly kind: 'failed' }, view: StoryView): string {
  const { attempt, failure, retryAt, at, tookMs, withdrawn, withdrawnCalls } = part
  const { paint } = view
  const next = retryAt === undefined ? '' : `, tried again after ${formatDuration(Math.max(0, retryAt - at))}`
  const head = formatHead(`attempt ${attempt} failed`, part, view, `took ${formatDuration(tookMs)}${next}`)
  const lines = [indent(paint('red', `${failure.class}: ${failure.message}`), 4)]
  if (withdrawn !== '') lines.push(indent('withdrawn:'), indent(paint('dim', withdrawn), 4))
  for (const { name, toolCallId } of withdrawnCalls) {
    lines.push(indent(`withdrawn: the request of ${name} ${paint('dim', toolCallId)}`))
  }
  return `${head}\n${lines.join('\n')}\n`
}
