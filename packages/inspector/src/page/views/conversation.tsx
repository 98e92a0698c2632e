import type { JSX } from 'preact'
import { memo } from 'preact/compat'
import { useState } from 'preact/hooks'
import { goTo, moment } from '../state/open-run.ts'
import { go, runId } from '../state/route.ts'
import { fence } from '../ui/fence.ts'
import { Same } from '../ui/same.tsx'
import { toneOfOutcome } from '../ui/status.tsx'
import { LongText, showHidden } from '../ui/text.tsx'
import type { ConversationItem } from '../worker/moment.ts'

const speakers: Readonly<Record<ConversationItem['kind'], string>> = {
  user: 'User',
  assistant: 'Model',
  reasoning: 'Reasoning',
  call: 'Call',
  result: 'Result',
  other: 'Model',
  feedback: 'Feedback',
}

/** Parts that are shown at first: a page full, so that a slider can move over long runs. */
const fewItems = 40

/** The conversation as it was at the event that is looked at. */
export function Conversation(): JSX.Element {
  const now = moment.value
  const [shown, setShown] = useState(fewItems)
  const items = now?.conversation.slice(-shown)
  const left = (now?.conversation.length ?? 0) - (items?.length ?? 0)
  return (
    <section class="pane" aria-label="Conversation">
      <div class="head">
        <h2>Conversation</h2>
      </div>
      <div class="body" tabIndex={0}>
        {left > 0 && (
          <button type="button" class="quiet" onClick={() => setShown(Infinity)}>
            Show {left} earlier {left === 1 ? 'part' : 'parts'}
          </button>
        )}
        {now !== undefined && left === 0 && now.earlier > 0 && (
          <p class="soft">
            {now.earlier.toLocaleString()} earlier parts are left out: go to an event before.
          </p>
        )}
        {now?.conversation.length === 0 && <p class="soft">Nothing has been said yet.</p>}
        {items?.map((item) => (
          <Said key={item.key} item={item} isNow={item.seq === now?.seq || item.isDraft === true} />
        ))}
        {now !== undefined && (
          <Same
            command={['show', 'LEDGER', runId.value ?? '', '--at', String(now.seq)]}
            path={`runs/${runId.value}/events`}
            json={() => now.conversation}
            markdown={() => now.conversation.map(toMarkdown).join('\n\n')}
          />
        )}
      </div>
    </section>
  )
}

function toMarkdown({ kind, name, outcome, text }: ConversationItem): string {
  const by = [name ?? speakers[kind], ...(outcome === undefined ? [] : [outcome])].join(', ')
  return `**${by}**\n\n${fence(text.text)}`
}

interface SaidProps {
  readonly item: ConversationItem
  readonly isNow: boolean
}

/** A part is drawn again only where it differs: each moment brings the same parts as other objects. */
const Said = memo(Part, (before, after) => before.isNow === after.isNow && isSame(before.item, after.item))

function isSame(one: ConversationItem, other: ConversationItem): boolean {
  const { text, ...rest } = one
  return (
    text.text === other.text.text &&
    text.length === other.text.length &&
    Object.keys(rest).length === Object.keys(other).length - 1 &&
    (Object.keys(rest) as (keyof typeof rest)[]).every((key) => rest[key] === other[key])
  )
}

function Part({ item, isNow }: SaidProps): JSX.Element {
  const { kind, text, seq, name, outcome, status, toolCallId } = item
  return (
    <article class={`said ${kind}${isNow ? ' now' : ''}`}>
      <header class="by">
        <span>{name === undefined ? speakers[kind] : <b>{showHidden(name)}</b>}</span>
        {status !== undefined && outcome === undefined && (
          <span class="badge wait">{status.replaceAll('_', ' ')}</span>
        )}
        {outcome !== undefined && (
          <span class={`badge ${kind === 'feedback' ? '' : toneOfOutcome(outcome)}`}>
            {outcome.replaceAll('_', ' ')}
          </span>
        )}
        <span class="end">
          {toolCallId !== undefined && (
            <button type="button" class="quiet" onClick={() => go({ call: toolCallId, middle: 'call' })}>
              look at the call
            </button>
          )}
          {seq !== undefined && (
            <button type="button" class="quiet" title="Go to this event" onClick={() => goTo(seq)}>
              {seq}
            </button>
          )}
        </span>
      </header>
      <LongText text={text.text} length={text.length} />
    </article>
  )
}
