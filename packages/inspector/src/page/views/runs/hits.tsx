import type { JSX } from 'preact'
import type { Hit } from '../../../api.ts'
import { go, route } from '../../state/route.ts'
import { findMore, hits, hitsAfter, isSearching, searchTrouble } from '../../state/search.ts'
import { formatTime, shortenId, showHidden } from '../../ui/text.tsx'
import { Trouble } from '../../ui/trouble.tsx'
import { VirtualList } from '../../ui/virtual-list.tsx'

const hitHeight = 72

/** The events that a search found; each opens its run there. */
export function Hits(): JSX.Element {
  const found = hits.value ?? []
  const isNothing = found.length === 0 && !isSearching.value && searchTrouble.value === undefined
  return (
    <>
      <p class="found soft" role="status">
        {describeFound(found.length)}
      </p>
      <Trouble words={searchTrouble.value} />
      {isNothing && hitsAfter.value === undefined ? (
        <div class="empty">
          <p>
            Nothing on record has these words. A search looks at messages, at inputs and results of calls, and
            at feedback.
          </p>
        </div>
      ) : (
        <VirtualList
          items={found}
          rowHeight={hitHeight}
          isBusy={isSearching.value}
          keyOf={({ runId, seq }) => `${runId}.${seq}`}
          more={hitsAfter.value}
          onEnd={findMore}
        >
          {(hit) => <Entry hit={hit} />}
        </VirtualList>
      )}
    </>
  )
}

function describeFound(count: number): string {
  if (isSearching.value && count === 0) return 'Searching …'
  const more = hitsAfter.value === undefined ? '' : ' or more'
  return `${count.toLocaleString('en')}${more} ${count === 1 ? 'event' : 'events'} found`
}

function Entry({ hit: { runId, seq, at, type, toolCallId, excerpt } }: { readonly hit: Hit }): JSX.Element {
  const isOpen = route.value.run === runId && route.value.at === seq
  return (
    <button
      type="button"
      class="hit"
      aria-current={isOpen}
      onClick={() => go({ run: runId, at: seq, call: toolCallId, with: undefined })}
    >
      <span class="where soft">
        <span>{type.replaceAll('_', ' ')}</span>
        <code>
          {shortenId(runId)} · {seq}
        </code>
        <span class="end">{formatTime(at)}</span>
      </span>
      <span class="excerpt">
        <Marked text={showHidden(excerpt)} words={route.value.q ?? ''} />
      </span>
    </button>
  )
}

/** A text with the words that were searched for marked. */
function Marked({ text, words }: { readonly text: string; readonly words: string }): JSX.Element {
  const place = words === '' ? -1 : text.toLowerCase().indexOf(words.toLowerCase())
  if (place < 0) return <>{text}</>
  const end = place + words.length
  return (
    <>
      {text.slice(0, place)}
      <mark>{text.slice(place, end)}</mark>
      {text.slice(end)}
    </>
  )
}
