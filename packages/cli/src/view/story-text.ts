import type { Message, RunState } from '@tallystick/core'
import { type Call, openTurnCalls } from '@tallystick/core/machine'
import {
  type AssistantPart,
  canonicalJson,
  childRunIdOf,
  type Json,
  type ProviderPart,
  type ToolCallId,
} from '@tallystick/core/vocabulary'
import {
  citationLines,
  contentText,
  durationText,
  indented,
  prettyJson,
  table,
  timeText,
} from '../command/text.ts'
import { alikeText, type CallStory, endedAlike, type RunStory, type StoryPart } from '../runs/run-story.ts'
import { type Paint, screenOn } from '../terminal/paint.ts'
import { printEvent } from './events.ts'

const maxInlineCharacters = 80

/** A call's input on one line where that is short, else over lines. */
export function inputText(input: Json): string {
  const line = canonicalJson(input)
  return line.length <= maxInlineCharacters ? line : prettyJson(input)
}

/** How a call ended, for a person: what was decided about it, what ran where that is not what was asked for, its result. */
export function resultText(call: CallStory, paint: Paint, waits: string | undefined): string {
  const { name, toolCallId, outcome, durationMs, reused, resultSeq, content } = call
  const which = `${name} ${paint('dim', toolCallId)}`
  if (outcome === undefined || content === undefined) {
    return `${paint('yellow', '╎ open   ')} ${which} ${waits ?? 'has no result yet'}\n${decisionText(call)}`
  }
  const took = durationMs === undefined ? '' : ` in ${durationText(durationMs)}`
  const how = reused === undefined ? took : `, as on record: nothing ran`
  const head = `${paint('cyan', '└ result ')} ${which} ${outcome}${how}${paint('dim', `, event ${resultSeq}`)}`
  return `${head}\n${decisionText(call)}${indented(contentText(content), 4)}\n`
}

/** Returns an empty text if there was no decision and no change. */
function decisionText({ requested, guarded, guardedSeq, decision, executed }: CallStory): string {
  if (guarded === undefined && decision === undefined) return ''
  const rows: string[][] = [['asked for', canonicalJson(requested)]]
  if (guarded) rows.push(['guarded', `${canonicalJson(guarded)}, event ${guardedSeq}`])
  if (decision) {
    const { approved, by, via, reason, seq } = decision
    const how = via === undefined ? '' : ` (${via})`
    const why = reason === undefined ? '' : `: ${reason}`
    rows.push([approved ? 'approved' : 'denied', `by ${by}${how}, event ${seq}${why}`])
  }
  if (executed) rows.push(['ran with', canonicalJson(executed)])
  return `${indented(table(rows).trimEnd(), 4)}\n`
}

/** A call that has no result yet. */
interface OpenCall {
  readonly toolCallId: ToolCallId
  readonly name: string
  readonly status: Call['status']
  /** What it waits for, in words. */
  readonly waits: string
}

/** The calls of a run that have no result yet. */
export function openCallsOf(state: RunState): readonly OpenCall[] {
  return openTurnCalls(state).flatMap((call) => {
    const { toolCallId, name, status } = call
    return status === 'settled' ? [] : [{ toolCallId, name, status, waits: waitText(state, call) }]
  })
}

function waitText({ runId }: RunState, { toolCallId, status, child, deferred }: Call): string {
  const childId = child === undefined ? undefined : childRunIdOf(runId, toolCallId)
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

/** How a transcript is shown. */
export interface TranscriptView {
  readonly paint: Paint
  /** Calls that have no result yet; a transcript has placeholders for them, which no model has read. */
  readonly open: readonly OpenCall[]
}

/** What a model is shown, for a person: each message under its role, calls and results under the id that joins them. */
export function transcriptText(messages: readonly Message[], view: TranscriptView): string {
  return messages.map((message) => `${messageText(message, view)}\n`).join('')
}

function messageText(message: Message, { paint, open }: TranscriptView): string {
  switch (message.role) {
    case 'user':
      return `${paint('bold', 'user')}\n${indented(contentText(message.parts))}\n`
    case 'assistant': {
      const head = `assistant ${paint('dim', `(${message.stopReason}${message.partial ? ', cut off' : ''})`)}`
      return `${paint('bold', head)}\n${message.parts.map((part) => indented(partText(part, paint))).join('\n')}\n`
    }
    case 'tool': {
      const results = message.results.map(({ name, toolCallId, outcome, content }) => {
        const call = `${name} ${paint('dim', toolCallId)}`
        const waiting = open.find((each) => each.toolCallId === toolCallId)
        if (waiting) return indented(`${paint('yellow', '╎ open   ')} ${call} ${waiting.waits}`)
        return (
          `${indented(`${paint('cyan', '└ result ')} ${call} ${outcome}`)}\n` +
          indented(indented(contentText(content)))
        )
      })
      return `${paint('bold', 'tool')}\n${results.join('\n')}\n`
    }
  }
}

function partText(part: AssistantPart, paint: Paint): string {
  switch (part.type) {
    case 'text':
      return [part.text, ...citationLines(part.citations, paint)].join('\n')
    case 'reasoning':
      return paint('dim', part.text)
    case 'tool_call': {
      const input = part.malformed?.text ?? JSON.stringify(part.input)
      return `${paint('cyan', '┌ request')} ${part.name} ${paint('dim', part.toolCallId)}\n${indented(input)}`
    }
    case 'provider':
      return providerText(part, paint)
  }
}

/** What the vendor did itself: a call of its own tool where the part tells of one. */
function providerText(part: ProviderPart, paint: Paint): string {
  return [executedText(part, paint), ...citationLines(part.sources, paint)].join('\n')
}

function executedText({ opaque, kind, executed }: ProviderPart, paint: Paint): string {
  const whose = paint('dim', `[${opaque.provider}: ${kind}]`)
  if (executed === undefined) return whose
  const { id, name, input, outcome } = executed
  const asked = input && `${paint('cyan', '┌ run by the provider')} ${name} ${paint('dim', id)} ${whose}`
  const resultLine = outcome && `${paint('cyan', '└ result')} ${name} ${paint('dim', id)} ${outcome} ${whose}`
  return [asked, input && indented(JSON.stringify(input)), resultLine].filter(Boolean).join('\n')
}

/** Turns that do the same one after the other, from so many on, are shown as one. */
const alikeMin = 3

/** How a story is shown. */
export interface StoryView {
  readonly paint: Paint
  /** The run where the story ends. */
  readonly state: RunState
  /** What was said before the run began. */
  readonly history: readonly Message[]
  /** Turns that do the same are shown one by one. */
  readonly whole: boolean
}

/** What a run did, for a person: each message with its events, its time and how long it took. */
export function storyText({ parts }: RunStory, view: StoryView): string {
  const texts: string[] = []
  for (let place = 0; place < parts.length;) {
    const alike = view.whole ? [] : alikeFrom(parts, place)
    if (alike.length >= alikeMin) {
      texts.push(alikeTurns(alike, view))
      place += 2 * alike.length
    } else {
      texts.push(storyPartText(parts[place] as StoryPart, view))
      place++
    }
  }
  return texts.flatMap((text) => (text === '' ? [] : [`${text}\n`])).join('')
}

type SingleCall = readonly [reply: StoryPart, calls: StoryPart, call: CallStory]

/** The turns from a place on that each asked for one call and nothing else, and got the same from the same tool. */
function alikeFrom(parts: readonly StoryPart[], from: number): readonly SingleCall[] {
  const found: SingleCall[] = []
  for (let place = from; ; place += 2) {
    const single = singleCall(parts[place], parts[place + 1])
    const [first] = found
    if (single === undefined || (first && !endedAlike(first[2], single[2]))) return found
    found.push(single)
  }
}

function singleCall(reply: StoryPart | undefined, calls: StoryPart | undefined): SingleCall | undefined {
  if (reply?.kind !== 'reply' || calls?.kind !== 'calls') return undefined
  const [call, ...others] = calls.calls
  const [part, ...more] = reply.event.parts
  const isAlone = part?.type === 'tool_call' && more.length === 0 && others.length === 0
  return isAlone && call?.outcome !== undefined && call.decision === undefined
    ? [reply, calls, call]
    : undefined
}

function alikeTurns(turns: readonly SingleCall[], view: StoryView): string {
  const [[first], [, last]] = [turns[0] as SingleCall, turns.at(-1) as SingleCall]
  const head = headText(`turns ${first.turn}-${last.turn}`, { ...last, fromSeq: first.fromSeq }, view)
  const more = view.paint('dim', `--turn ${first.turn} shows the first of them, --whole all of them.`)
  return `${head}\n${indented(alikeText(turns.map(([, , call]) => call)), 4)}\n${indented(more, 4)}\n`
}

function storyPartText(part: StoryPart, view: StoryView): string {
  const { paint } = view
  switch (part.kind) {
    case 'input':
      return `${headText('user', part, view)}\n${indented(contentText(part.event.message.parts), 4)}\n`
    case 'history':
      return `${headText(`${part.messages} earlier messages`, part, view)}\n${transcriptText(view.history, { paint, open: [] })}`
    case 'reply': {
      const { stopReason, partial, parts, written = [] } = part.event
      const took = `took ${durationText(part.tookMs)}, ${stopReason}${partial ? ', cut off' : ''}`
      const wrote = written.map(({ part: each }) =>
        paint('dim', indented(`the model wrote: ${each.text}`, 4)),
      )
      const lines = [...parts.map((each) => replyPartText(each, paint)), ...wrote]
      return `${headText('assistant', part, view, took)}\n${lines.join('\n')}\n`
    }
    case 'failed':
      return failedText(part, view)
    case 'calls': {
      const open = openCallsOf(view.state)
      const results = part.calls.map((call) =>
        indented(
          resultText(
            call,
            paint,
            open.find(({ toolCallId }) => toolCallId === call.toolCallId)?.waits,
          ).trimEnd(),
        ),
      )
      return `${headText('tool', part, view)}\n${results.join('\n')}\n`
    }
    case 'note':
      return noteText(part, view)
  }
}

function headText(
  name: string,
  { turn, fromSeq, toSeq, at }: StoryPart,
  view: StoryView,
  more?: string,
): string {
  const events = fromSeq === toSeq ? `event ${fromSeq}` : `events ${fromSeq}-${toSeq}`
  const facts = [
    ...(turn === 0 ? [] : [`turn ${turn}`]),
    events,
    timeText(at),
    ...(more === undefined ? [] : [more]),
  ]
  return `${view.paint('bold', name)} ${view.paint('dim', `(${facts.join(', ')})`)}`
}

/** Text is indented further than the lines about calls, so that no text can look like a call. */
function replyPartText(part: AssistantPart, paint: Paint): string {
  switch (part.type) {
    case 'text':
      return [
        indented(part.text, 4),
        ...citationLines(part.citations, paint).map((line) => indented(line, 4)),
      ].join('\n')
    case 'reasoning':
      return indented(paint('dim', part.text), 4)
    case 'tool_call': {
      const head = `${paint('cyan', '┌ request')} ${part.name} ${paint('dim', part.toolCallId)}`
      return indented(`${head}\n${indented(part.malformed?.text ?? inputText(part.input), 4)}`)
    }
    case 'provider':
      return indented(providerText(part, paint))
  }
}

function failedText(part: StoryPart & { readonly kind: 'failed' }, view: StoryView): string {
  const { attempt, failure, retryAt, at, tookMs, withdrawn, withdrawnCalls } = part
  const { paint } = view
  const next = retryAt === undefined ? '' : `, tried again after ${durationText(Math.max(0, retryAt - at))}`
  const head = headText(`attempt ${attempt} failed`, part, view, `took ${durationText(tookMs)}${next}`)
  const lines = [indented(paint('red', `${failure.class}: ${failure.message}`), 4)]
  if (withdrawn !== '') lines.push(indented('withdrawn:'), indented(paint('dim', withdrawn), 4))
  for (const { name, toolCallId } of withdrawnCalls) {
    lines.push(indented(`withdrawn: the request of ${name} ${paint('dim', toolCallId)}`))
  }
  return `${head}\n${lines.join('\n')}\n`
}

/** What `run` and `tail` print of an event, with its number. */
function noteText(part: StoryPart & { readonly kind: 'note' }, { paint }: StoryView): string {
  let text = ''
  const screen = screenOn((more) => (text += more), { paint, cutAt: Infinity })
  printEvent(part.event, screen)
  return text === '' ? '' : `${text.trim()} ${paint('dim', `(event ${part.toSeq}, ${timeText(part.at)})`)}\n`
}
