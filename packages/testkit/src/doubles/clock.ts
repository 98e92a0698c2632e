import type { Clock } from '@tallystick/core'
import { valueHaving, option, type Schema, requireOptions } from '@tallystick/core/internal'
import type { Cancel } from '@tallystick/core/vocabulary'

const { isThenable, numberFrom, valueThat } = option

/** A clock that stands still until a test advances it. */
export interface ManualClock extends Clock {
  /** Advances the time, and calls back what falls due, in order. */
  advance(ms: number): void
  /** Lets time pass up to the next callback; answers whether there was one. */
  advanceToNext(): boolean
  /** Callbacks that are still to come, those for upkeep left out. */
  readonly pending: number
  /** How often the time was read or a callback was scheduled. */
  readonly uses: number
}

interface Timer {
  readonly at: number
  readonly callback: () => void
  readonly isUpkeep: boolean
}

/** Makes a clock that shows `startMs`, in milliseconds since 1970 UTC. */
export function manualClock(startMs: number = Date.UTC(2026, 0, 1)): ManualClock {
  requireOptions('manualClock', numberFrom(0), startMs, 'startMs')
  return createClock(startMs, 0)
}

/** A manual clock that advances by a millisecond at every reading, as a host's clock may. */
export function tickingClock(startMs: number = Date.UTC(2026, 0, 1)): ManualClock {
  return createClock(startMs, 1)
}

function createClock(startMs: number, tickMs: number): ManualClock {
  let now = startMs
  let uses = 0
  let ticks = 0
  const timers = new Set<Timer>()
  const ofWork = (): readonly Timer[] => [...timers].filter(({ isUpkeep }) => !isUpkeep)
  const next = (among: Iterable<Timer> = timers): Timer | undefined =>
    [...among].reduce<Timer | undefined>(
      (first, timer) => (first === undefined || timer.at < first.at ? timer : first),
      undefined,
    )
  const advanceTo = (end: number): void => {
    for (let timer = next(); timer && timer.at <= end; timer = next()) {
      timers.delete(timer)
      now = Math.max(now, timer.at)
      timer.callback()
    }
    now = Math.max(now, end)
  }
  return {
    now() {
      uses++
      ticks += tickMs
      return now + ticks
    },
    ...(tickMs === 0 && { even: () => now }),
    schedule(delayMs: number, callback: () => void, purpose?: 'upkeep'): Cancel {
      uses++
      const timer = { at: now + Math.max(0, delayMs), callback, isUpkeep: purpose === 'upkeep' }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
    advance(ms) {
      requireOptions('advance of manualClock', numberFrom(0), ms, 'ms')
      advanceTo(now + ms)
    },
    advanceToNext() {
      const timer = next(ofWork())
      if (timer) advanceTo(timer.at)
      return timer !== undefined
    },
    get pending() {
      return ofWork().length
    },
    get uses() {
      return uses
    },
  }
}

/** A clock that a test can move. */
export const steeredClock: Schema = valueHaving(
  'a clock made with manualClock()',
  ...['now', 'schedule', 'advance', 'advanceToNext'],
)

const aPromise = valueThat('a promise', isThenable)

/** After so many turns of the promise queue without a reading of the clock, the code counts as waiting. */
const QUIET_TURNS = 20_000

/** The same where no timer is left: reading a run of many events takes many turns, and no look at the clock. */
const STUCK_TURNS = 1_000_000

/** More jumps of time than any test needs. Beyond it, timers fire again and again without effect. */
const MAX_JUMPS = 10_000

/** More looks at a clock that stands still than any test needs: beyond, something goes round without ever waiting. */
const MAX_LOOKS = 200_000

/**
 * Waits for a promise under a manual clock: whenever nothing else can happen, time jumps to the next timer. It needs
 * code that waits only for promises and this clock, and that reads the clock regularly, as the runtime does for every
 * batch of events. It rejects for a promise that nothing can settle, and for code that loops without waiting. `outside`
 * returns a promise of the work under way outside of this process, such as the answer of a database; while there is
 * one, time stands still.
 */
export async function waitUntilSettled<T>(
  clock: ManualClock,
  promise: Promise<T>,
  outside: () => Promise<unknown> | undefined = () => undefined,
): Promise<T> {
  requireOptions('waitUntilSettled', steeredClock, clock, 'the clock')
  requireOptions('waitUntilSettled', aPromise, promise, 'the promise')
  const watched = { settled: false }
  const done = (): void => {
    watched.settled = true
  }
  promise.then(done, done)
  for (let jumps = 0; jumps <= MAX_JUMPS;) {
    await quiet(clock, watched)
    if (watched.settled) return await promise
    const underWay = outside()
    if (underWay) await underWay
    else if (clock.advanceToNext() || (await isMoving(clock, watched))) jumps++
    else throw createNothingMovesError()
  }
  throw new Error(`Time has jumped ${MAX_JUMPS} times, but the promise has not settled.`)
}

function createNothingMovesError(): Error {
  return new Error(
    'No work is left: the promise waits for something that no timer of the clock will bring, so the test would hang. ' +
      'Where a tool, a model or a ledger waits for the world outside (a file, a process, a network), return what is under way there from `outside`, ' +
      'an option of simulate and the last argument of waitUntilSettled: time stands still until it has ended. Else something never settles.',
  )
}

/** Resolves when the promise is settled, or when no code has read the clock for many turns. */
async function quiet(clock: ManualClock, watched: { readonly settled: boolean }): Promise<void> {
  const begun = clock.uses
  let uses = begun
  for (let turns = 0; turns < QUIET_TURNS && !watched.settled; turns++) {
    await Promise.resolve()
    if (clock.uses === uses) continue
    uses = clock.uses
    if (uses - begun > MAX_LOOKS) {
      throw new Error(`Something has read the clock ${MAX_LOOKS} times without waiting for it.`)
    }
    turns = 0
  }
}

/** Returns whether the promise is settled, or the clock is looked at, within many more turns. */
async function isMoving(clock: ManualClock, watched: { readonly settled: boolean }): Promise<boolean> {
  const { uses } = clock
  for (let turns = 0; turns < STUCK_TURNS; turns++) {
    if (watched.settled || clock.uses !== uses) return true
    await Promise.resolve()
  }
  return false
}
