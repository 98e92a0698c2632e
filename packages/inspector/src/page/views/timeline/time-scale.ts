import type { Wait } from '../../worker/timeline.ts'

/** Where times of a run are drawn: in lengths, which begin at 0. A wait may be drawn shorter than it was. */
export interface TimeScale {
  /** The length of the whole run; above 0. */
  readonly length: number
  toLength(at: number): number
  toTime(length: number): number
}

/** A wait is drawn as at most this part of the time in which the run was at work. */
const maxShare = 0.08
/** All waits together are drawn as at most this part of it. */
const maxShareOfAll = 0.5

/**
 * Makes a scale from the first to the last time of a run. Waits are shortened, since days of waiting for a person would
 * leave no room for the seconds of work; `isTrue` leaves them as long as they were.
 */
export function makeTimeScale(
  { from, to, waits }: { readonly from: number; readonly to: number; readonly waits: readonly Wait[] },
  isTrue: boolean,
): TimeScale {
  const gaps = isTrue ? [] : waits.map((wait) => ({ from: wait.from, to: Math.min(to, wait.to ?? to) }))
  const waited = gaps.reduce((sum, gap) => sum + gap.to - gap.from, 0)
  const worked = to - from - waited
  const longest = worked > 0 ? worked * Math.min(maxShare, maxShareOfAll / gaps.length) : Infinity
  // Knots: times, and the lengths at which they are drawn. Between two knots the scale is even.
  const times = [from]
  const lengths = [0]
  const add = (at: number, length: number): void => {
    if (at <= times.at(-1)!) return
    lengths.push(lengths.at(-1)! + length)
    times.push(at)
  }
  for (const gap of gaps) {
    add(gap.from, gap.from - times.at(-1)!)
    add(gap.to, Math.min(longest, gap.to - Math.max(gap.from, times.at(-1)!)))
  }
  add(to, to - times.at(-1)!)
  if (times.length === 1) add(from + 1, 1)
  return {
    length: lengths.at(-1)!,
    toLength: (at) => interpolate(times, lengths, at),
    toTime: (length) => interpolate(lengths, times, length),
  }
}

/** Finds the value at a place between knots that ascend. Before the first and after the last, their own. */
function interpolate(places: readonly number[], values: readonly number[], place: number): number {
  let low = 0
  let high = places.length - 1
  if (place <= places[low]!) return values[low]!
  if (place >= places[high]!) return values[high]!
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if (places[middle]! <= place) low = middle
    else high = middle
  }
  const share = (place - places[low]!) / (places[high]! - places[low]!)
  return values[low]! + share * (values[high]! - values[low]!)
}

const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500]
const longSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400]
const allSteps = [...steps, ...longSteps.map((seconds) => seconds * 1_000)]

/** A tick of the axis: its place, and how long after the beginning of the run it is. */
export interface Tick {
  readonly length: number
  readonly afterMs: number
}

/** Ticks of a window of the scale, at least `minLength` apart. Shortened waits have none inside. */
export function listTicks(
  scale: TimeScale,
  from: number,
  low: number,
  high: number,
  minLength: number,
): readonly Tick[] {
  const stepMs = allSteps.find((ms) => ms >= minLength) ?? Math.ceil(minLength / 86_400_000) * 86_400_000
  const ticks: Tick[] = []
  let last = -Infinity
  let at = from + Math.ceil((scale.toTime(low) - from) / stepMs) * stepMs
  while (ticks.length < 100) {
    const length = scale.toLength(at)
    if (length > high) break
    if (length - last >= minLength * 0.99) {
      ticks.push({ length, afterMs: at - from })
      last = length
    }
    // A shortened wait is passed at once, however many ticks would be in it.
    const next = Math.max(at + stepMs, scale.toTime(length + minLength * 0.99))
    const rounded = from + Math.ceil((next - from) / stepMs) * stepMs
    if (rounded <= at || scale.toLength(rounded) <= length) break
    at = rounded
  }
  return ticks
}
