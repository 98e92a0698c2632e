import { useVirtualizer, type VirtualItem, type Virtualizer } from '@tanstack/react-virtual'
import type { JSX, RefObject } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

interface Rows {
  readonly scroller: RefObject<HTMLDivElement | null>
  readonly list: Virtualizer<HTMLDivElement, Element>
  /** The rows in view, and some around them. */
  readonly items: readonly VirtualItem[]
}

/** Which of many rows of one height are drawn: those in view. */
export function useRows(count: number, rowHeight: number): Rows {
  const scroller = useRef<HTMLDivElement>(null)
  const list = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 8,
  })
  return { scroller, list, items: list.getVirtualItems() }
}

/** A list of many items, each of one height. */
export function VirtualList<Item>({
  items,
  count = items.length,
  rowHeight,
  name = '',
  isBusy = false,
  now,
  keyOf,
  more,
  onEnd,
  children,
}: {
  readonly items: readonly (Item | undefined)[]
  /** How many items there are, where not all have come. */
  readonly count?: number
  readonly rowHeight: number
  readonly name?: string
  readonly isBusy?: boolean
  /** The item that is kept in view. */
  readonly now?: number
  readonly keyOf: (item: Item) => string | number
  /** Where the list goes on, if it does. */
  readonly more?: string | undefined
  /** Called when the end of the items is in view, for each place where the list goes on. */
  readonly onEnd?: () => unknown
  readonly children: (item: Item) => JSX.Element
}): JSX.Element {
  const { scroller, list, items: shown } = useRows(count, rowHeight)
  const isAtEnd = (shown.at(-1)?.index ?? 0) >= count - 1
  useEffect(() => {
    if (isAtEnd && more !== undefined) onEnd?.()
  }, [isAtEnd, count, more])
  useEffect(() => {
    if (now !== undefined) list.scrollToIndex(now, { align: 'auto' })
  }, [now])
  return (
    <div class={`list ${name}`} ref={scroller} aria-busy={isBusy}>
      <ul style={{ height: `${list.getTotalSize()}px`, position: 'relative' }}>
        {shown.map(({ index, start }) => {
          const item = items[index]
          return (
            item !== undefined && (
              <li key={keyOf(item)} style={{ position: 'absolute', insetInline: 0, top: `${start}px` }}>
                {children(item)}
              </li>
            )
          )
        })}
      </ul>
    </div>
  )
}
