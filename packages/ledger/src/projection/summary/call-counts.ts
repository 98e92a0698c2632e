import type { RuntimeEvent } from '@tallystick/core'
import type { Outcome } from '@tallystick/core/vocabulary'

/** How often the calls of one tool ended in one way. */
export interface CallCount {
  readonly name: string
  readonly outcome: Outcome
  readonly count: number
}

/** Models name tools as they like: beyond so many lines, calls are counted under the name `…`. */
const maxLines = 100

/** The counts with one more result; the same ones for any other event. */
export function countedCalls(counts: readonly CallCount[], event: RuntimeEvent): readonly CallCount[] {
  if (event.type !== 'tool_result') return counts
  const { outcome } = event
  const isKnown = counts.some(({ name }) => name === event.name)
  const name = isKnown || counts.length < maxLines ? event.name : '…'
  const place = counts.findIndex((line) => line.name === name && line.outcome === outcome)
  const line = counts[place]
  if (line === undefined) return [...counts, { name, outcome, count: 1 }]
  return counts.with(place, { ...line, count: line.count + 1 })
}
