import { useVirtualizer } from '@tanstack/react-virtual'
import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { goTo, lastSeq, lines, seq } from '../state/open-run.ts'
import { showHidden } from '../ui/text.tsx'

/** All events of the run, one line each. */
export function EventList(): JSX.Element {
  const scroller = useRef<HTMLDivElement>(null)
  const count = lastSeq.value
  const now = seq.value
  const list = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => 24,
    overscan: 20,
  })
  useEffect(() => list.scrollToIndex(now - 1, { align: 'auto' }), [now])
  return (
    <div class="list events" ref={scroller} style={{ height: '100%' }}>
      <ul style={{ height: `${list.getTotalSize()}px`, position: 'relative' }}>
        {list.getVirtualItems().map(({ index, start }) => {
          const line = lines[index]
          if (line === undefined) return null
          return (
            <li key={line.seq} style={{ position: 'absolute', insetInline: 0, top: `${start}px` }}>
              <button
                type="button"
                class="line"
                aria-current={line.seq === now}
                onClick={() => goTo(line.seq)}
              >
                <span class="num soft">{line.seq}</span>
                <span class="soft">t{line.turn}</span>
                <span>{line.type}</span>
                <span class="soft">{line.isRemoved ? 'content removed' : showHidden(line.label)}</span>
              </button>
            </li>
          )
        })}
      </ul>
    </div>
  )
}
