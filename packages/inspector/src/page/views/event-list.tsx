import { useVirtualizer } from '@tanstack/react-virtual'
import type { JSX } from 'preact'
import { memo } from 'preact/compat'
import { useEffect, useRef } from 'preact/hooks'
import { goTo, lastSeq, lines, restingSeq } from '../state/open-run.ts'
import { runId } from '../state/route.ts'
import { Same } from '../ui/same.tsx'
import { showHidden } from '../ui/text.tsx'
import type { EventLine } from '../worker/moment.ts'

/** All events of the run, one line each. */
export function EventList(): JSX.Element {
  const scroller = useRef<HTMLDivElement>(null)
  const count = lastSeq.value
  const now = restingSeq.value
  const list = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => 24,
    overscan: 8,
  })
  useEffect(() => list.scrollToIndex(now - 1, { align: 'auto' }), [now])
  return (
    <div class="filled">
      <div class="list events" ref={scroller}>
        <ul style={{ height: `${list.getTotalSize()}px`, position: 'relative' }}>
          {list.getVirtualItems().map(({ index, start }) => {
            const line = lines[index]
            if (line === undefined) return null
            return (
              <li key={line.seq} style={{ position: 'absolute', insetInline: 0, top: `${start}px` }}>
                <Entry line={line} isNow={line.seq === now} />
              </li>
            )
          })}
        </ul>
      </div>
      <Same
        command={['show', 'LEDGER', runId.value ?? '', '--events']}
        path={`runs/${runId.value}/events`}
        json={() => lines}
        markdown={() => lines.map(({ seq: at, type, label }) => `${at}. ${type} ${label}`).join('\n')}
      />
    </div>
  )
}

interface EntryProps {
  readonly line: EventLine
  readonly isNow: boolean
}

/** An event. Its line never changes, so it is drawn again only when it is, or was, the one that is looked at. */
const Entry = memo(EntryButton)

function EntryButton({ line: { seq: of, turn, type, label, isRemoved }, isNow }: EntryProps): JSX.Element {
  return (
    <button type="button" class="line" aria-current={isNow} onClick={() => goTo(of)}>
      <span class="num soft">{of}</span>
      <span class="soft">t{turn}</span>
      <span>{type}</span>
      <span class="soft">{isRemoved ? 'content removed' : showHidden(label)}</span>
    </button>
  )
}
