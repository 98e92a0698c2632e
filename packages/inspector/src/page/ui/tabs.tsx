import type { ComponentChildren, JSX } from 'preact'
import { Boundary } from './boundary.tsx'
import { go, route } from '../state/route.ts'

/** A view of one pane. */
export interface Tab {
  readonly id: string
  readonly label: string
  readonly view: () => JSX.Element
  /** The view scrolls by itself, to the borders of the pane. */
  readonly isFlush?: true
}

/** A pane that shows one of several views; the address says which. */
export function TabPane({
  name,
  label,
  tabs,
  end,
}: {
  readonly name: 'middle' | 'right'
  readonly label: string
  readonly tabs: readonly Tab[]
  readonly end?: ComponentChildren
}): JSX.Element {
  const open = tabs.find(({ id }) => id === route.value[name]) ?? tabs[0]!
  const select = (tab: Tab): void => go({ [name]: tab.id })
  const move = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (step === undefined) return
    event.preventDefault()
    event.stopPropagation()
    const next = tabs[(tabs.indexOf(open) + step + tabs.length) % tabs.length]!
    select(next)
    document.getElementById(`${name}-${next.id}`)?.focus()
  }
  const View = open.view
  return (
    <section class="pane" aria-label={label}>
      <div class="head">
        <div class="tabs" role="tablist" aria-label={label} onKeyDown={move}>
          {tabs.map((tab) => (
            <button
              key={tab.id}
              id={`${name}-${tab.id}`}
              type="button"
              role="tab"
              aria-selected={tab === open}
              aria-controls={`${name}-panel`}
              tabIndex={tab === open ? 0 : -1}
              onClick={() => select(tab)}
            >
              {tab.label}
            </button>
          ))}
        </div>
        {end}
      </div>
      <div
        class={open.isFlush ? 'body flush' : 'body'}
        id={`${name}-panel`}
        role="tabpanel"
        aria-labelledby={`${name}-${open.id}`}
        tabIndex={0}
      >
        <Boundary key={open.id} name={open.label}>
          <View />
        </Boundary>
      </div>
    </section>
  )
}
