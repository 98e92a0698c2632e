import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { showHidden } from '@tallystick/core/internal'

/** The time between two times, for people: `840 ms`, `2.4 s`, `3 min 5 s`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 60) return `${minutes} min ${Math.round((ms % 60_000) / 1_000)} s`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`
}

/** US dollars, with the figures that matter. */
export function formatCost(usd: number): string {
  if (usd === 0) return '$0'
  return usd < 0.01 ? `$${usd.toPrecision(2)}` : `$${usd.toFixed(2)}`
}

const sameDay = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' })
const otherDay = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })

/** A time, short if it is today. */
export function formatTime(at: number): string {
  const date = new Date(at)
  return (date.toDateString() === new Date().toDateString() ? sameDay : otherDay).format(date)
}

/** The end of an id, which differs between ids of one time. */
export function shortenId(id: string): string {
  return id.length > 14 ? `…${id.slice(-8)}` : id
}

export { showHidden }

const folded = 1_200

/** A text from the record, folded if it is long. `length` says how long it is, if it was cut. */
export function LongText({
  text,
  length = text.length,
}: {
  readonly text: string
  readonly length?: number
}): JSX.Element {
  const [isOpen, setOpen] = useState(false)
  const shown = isOpen ? text : text.slice(0, folded)
  return (
    <>
      <pre>{showHidden(shown)}</pre>
      {text.length > folded && (
        <button class="quiet" type="button" onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Fold' : `Show ${(text.length - folded).toLocaleString()} more characters`}
        </button>
      )}
      {length > text.length && isOpen && (
        <p class="soft">{(length - text.length).toLocaleString()} more characters are in the event.</p>
      )}
    </>
  )
}
