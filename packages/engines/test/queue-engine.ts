// oxlint-disable no-restricted-properties, no-restricted-globals -- it is an engine, whose timers are real
import type { Clock } from '@tallystick/core'
import type { Drive, Engine, EngineCapability, Wake } from '@tallystick/engines'

interface Waiting {
  readonly wake: Wake
  readonly dueAt: number
  readonly place: number
  readonly failures: number
}

/** A wake that is driven, and when its worker was last heard of. */
interface Busy {
  readonly waiting: Waiting
  heardAt: number
}

/** What the server of an engine holds, which outlives its workers. */
export interface Queue {
  readonly waiting: Map<string, Waiting>
  readonly busy: Map<string, Busy>
  readonly looks: Set<() => void>
  places: number
}

export const openQueue = (): Queue => ({ waiting: new Map(), busy: new Map(), looks: new Set(), places: 0 })

export const capabilities: ReadonlySet<EngineCapability> = new Set([
  'exclusivePerKey',
  'priorities',
  'fairness',
])

const realClock: Clock = {
  now: () => Date.now(),
  schedule: (delayMs, callback) => {
    const timer = setTimeout(callback, delayMs)
    return () => clearTimeout(timer)
  },
}

/** A worker says so often that it lives; the wakes of one that has not for `lapseMs` are delivered again. */
const [beatMs, lapseMs] = [5_000, 15_000]

/** An engine in the memory of the process, which a test can break in one place. */
export function queueEngine(
  queue: Queue,
  {
    forgets,
    clock = realClock,
  }: {
    readonly forgets?: 'merging' | 'earlier' | 'whileDriven' | 'failures' | 'exclusion'
    readonly clock?: Clock
  } = {},
): Engine {
  const look = (): void => {
    for (const each of [...queue.looks]) each()
  }
  const put = (wake: Wake, { place, failures = 0 }: Partial<Waiting> = {}): void => {
    const { runId, at = 0 } = wake
    if (forgets === 'whileDriven' && queue.busy.has(runId)) return
    const there = queue.waiting.get(runId)
    const name = forgets === 'merging' ? `${runId} ${++queue.places}` : runId
    queue.waiting.set(name, {
      wake: { ...there?.wake, ...wake },
      dueAt: there && (forgets === 'earlier' || there.dueAt < at) ? there.dueAt : at,
      place: place ?? there?.place ?? ++queue.places,
      failures,
    })
  }
  const nameOf = ({ key, runId }: Wake): string => key ?? runId
  return {
    name: 'queue',
    capabilities,
    wake: (wake) => {
      put(wake)
      look()
      return Promise.resolve()
    },
    work(drive: Drive, { concurrency }) {
      const stop = new AbortController()
      const givenUp = Promise.withResolvers<never>()
      givenUp.promise.catch(() => {})
      const own = new Set<Promise<void>>()
      let stopTimer = (): void => {}
      const takeIn = (delayMs: number): void => {
        stopTimer()
        if (!stop.signal.aborted) stopTimer = clock.schedule(delayMs, take)
      }
      const deliver = async (waiting: Waiting): Promise<void> => {
        const { wake, failures } = waiting
        const busy: Busy = { waiting, heardAt: clock.now() }
        queue.busy.set(nameOf(wake), busy)
        const isMine = (): boolean => queue.busy.get(nameOf(wake)) === busy
        let stopBeat = (): void => {}
        const beat = (): void => {
          busy.heardAt = clock.now()
          stopBeat = clock.schedule(beatMs, beat)
        }
        beat()
        try {
          await Promise.race([drive(wake, stop.signal), givenUp.promise])
        } catch {
          const at = clock.now() + Math.min(10 * 2 ** failures, 5_000)
          if (forgets !== 'failures' && isMine())
            put({ ...wake, at }, { ...waiting, failures: failures + (stop.signal.aborted ? 0 : 1) })
        } finally {
          stopBeat()
          if (isMine()) queue.busy.delete(nameOf(wake))
        }
      }
      const take = (): void => {
        // Read once: a wake that came due between two reads would be neither taken nor timed.
        const now = clock.now()
        for (const [name, { heardAt, waiting }] of [...queue.busy]) {
          if (heardAt + lapseMs > now) continue
          queue.busy.delete(name)
          put({ ...waiting.wake, at: 0 }, waiting)
        }
        while (!stop.signal.aborted && own.size < concurrency) {
          const perTenant = (wake: Wake): number =>
            [...queue.busy.values()].filter((each) => each.waiting.wake.tenant === wake.tenant).length
          const waiting = [...queue.waiting].sort(
            ([, a], [, b]) =>
              (b.wake.priority ?? 0) - (a.wake.priority ?? 0) ||
              perTenant(a.wake) - perTenant(b.wake) ||
              a.place - b.place,
          )
          const next = waiting.find(
            ([, { wake, dueAt }]) =>
              dueAt <= now && (forgets === 'exclusion' || !queue.busy.has(nameOf(wake))),
          )
          if (next === undefined) break
          queue.waiting.delete(next[0])
          const driving: Promise<void> = deliver(next[1]).finally(() => {
            own.delete(driving)
            look()
          })
          own.add(driving)
        }
        const times = [...queue.waiting.values()].map(({ dueAt }) => dueAt).filter((at) => at > now)
        takeIn(Math.min(lapseMs, ...times.map((at) => at - now)))
      }
      const lookSoon = (): void => takeIn(0)
      queue.looks.add(lookSoon)
      lookSoon()
      return Promise.resolve({
        async stop(graceMs) {
          queue.looks.delete(lookSoon)
          stop.abort()
          stopTimer()
          const { promise: grace, resolve } = Promise.withResolvers<void>()
          const stopGrace = clock.schedule(graceMs, resolve)
          await Promise.race([Promise.allSettled(own), grace])
          stopGrace()
          givenUp.reject(new Error('The worker has stopped.'))
          await new Promise((settled) => void clock.schedule(0, () => settled(undefined)))
        },
      })
    },
  }
}
