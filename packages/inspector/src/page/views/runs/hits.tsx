import { useVirtualizer } from '@tanstack/react-virtual'
import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Hit } from '../../../api.ts'
import { go, route } from '../../state/route.ts'
import { findMore, hits, hitsAfter, isSearching, searchTrouble } from '../../state/search.ts'
import { formatTime, shortenId, showHidden } from '../../ui/text.tsx'
import { Trouble } from '../../ui/trouble.tsx'

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
        <List found={found} />
      )}
    </>
  )
}

function describeFound(count: number): string {
  if (isSearching.value && count === 0) return 'Searching …'
  const more = hitsAfter.value === undefined ? '' : ' or more'
  return `${count.toLocaleString('en')}${more} ${count === 1 ? 'event' : 'events'} found`
}

function List({ found }: { readonly found: readonly Hit[] }): JSX.Element {
  const scroller = useRef<HTMLDivElement>(null)
  const list = useVirtualizer({
    count: found.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => hitHeight,
    overscan: 8,
  })
  const items = list.getVirtualItems()
  const isAtEnd = (items.at(-1)?.index ?? 0) >= found.length - 1
  useEffect(() => {
    if (isAtEnd) void findMore()
  }, [isAtEnd, found.length, hitsAfter.value])
  return (
    <div class="list" ref={scroller} aria-busy={isSearching.value}>
      <ul style={{ height: `${list.getTotalSize()}px`, position: 'relative' }}>
        {items.map(({ index, start }) => {
          const hit = found[index]
          return (
            hit && (
              <li
                key={`${hit.runId}.${hit.seq}`}
                style={{ position: 'absolute', insetInline: 0, top: `${start}px` }}
              >
                <Entry hit={hit} />
              </li>
            )
          )
        })}
      </ul>
    </div>
  )
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
