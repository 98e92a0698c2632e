import type { Message, RunState } from '@tallystick/core'
import type { AssistantPart } from '@tallystick/core/vocabulary'
import type { CallStory } from '../../runs/call-story.ts'
import type { RunStory, StoryPart } from '../../runs/run-story.ts'
import { inputText, resultText } from './call-text.ts'
import { citationLines } from '../text/citation-text.ts'
import { contentText } from '../text/content-text.ts'
import { durationText } from '../text/duration-text.ts'
import { printEvent } from './event-lines.ts'
import { indented } from '../text/indented.ts'
import { openCallsOf } from './open-call.ts'
import type { Paint } from '../../terminal/paint.ts'
import { screenOn } from '../../terminal/screen.ts'
import { alikeText, endedAlike } from '../../runs/similar-calls.ts'
import { timeText } from '../text/time-text.ts'
import { providerText, transcriptText } from './transcript-text.ts'

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
