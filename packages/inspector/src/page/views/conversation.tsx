import type { JSX } from 'preact'
import { goTo, moment } from '../state/open-run.ts'
import { go } from '../state/route.ts'
import { toneOfOutcome } from '../ui/status.tsx'
import { LongText } from '../ui/text.tsx'
import type { ConversationItem } from '../worker/moment.ts'

const speakers: Readonly<Record<ConversationItem['kind'], string>> = {
  user: 'User',
  assistant: 'Model',
  reasoning: 'Reasoning',
  call: 'Call',
  result: 'Result',
  other: 'Model',
}

/** The conversation as it was at the event that is looked at. */
export function Conversation(): JSX.Element {
  const now = moment.value
  return (
    <section class="pane" aria-label="Conversation">
      <div class="head">
        <h2>Conversation</h2>
      </div>
      <div class="body" tabIndex={0}>
        {now !== undefined && now.earlier > 0 && (
          <p class="soft">{now.earlier} earlier parts are left out.</p>
        )}
        {now?.conversation.length === 0 && <p class="soft">Nothing has been said yet.</p>}
        {now?.conversation.map((item) => (
          <Said key={item.key} item={item} isNow={item.seq === now.seq || item.isDraft === true} />
        ))}
      </div>
    </section>
  )
}

function Said({ item, isNow }: { readonly item: ConversationItem; readonly isNow: boolean }): JSX.Element {
  const { kind, text, seq, name, outcome, status, toolCallId } = item
  return (
    <article class={`said ${kind}${isNow ? ' now' : ''}`}>
      <header class="by">
        <span>{name === undefined ? speakers[kind] : <b>{name}</b>}</span>
        {status !== undefined && outcome === undefined && (
          <span class="badge wait">{status.replaceAll('_', ' ')}</span>
        )}
        {outcome !== undefined && (
          <span class={`badge ${toneOfOutcome(outcome)}`}>{outcome.replaceAll('_', ' ')}</span>
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
