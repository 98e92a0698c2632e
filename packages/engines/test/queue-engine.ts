// oxlint-disable no-restricted-properties, no-restricted-globals -- it is an engine, whose timers are real
import type { Drive, Engine, EngineCapability, Wake } from '@tallystick/engines'

interface Waiting {
  wake: Wake
  dueAt: number
  place: number
}

interface Queue {
  readonly waiting: Map<string, Waiting>
  readonly busy: Map<string, Wake>
  readonly looks: Set<() => void>
  places: number
}

export const openQueue = (): Queue => ({ waiting: new Map(), busy: new Map(), looks: new Set(), places: 0 })

export const capabilities: ReadonlySet<EngineCapability> = new Set([
  'exclusivePerKey',
  'priorities',
  'fairness',
])

/** An engine in the memory of the process, which a test can break in one place. */
export function queueEngine(
  queue: Queue,
  { forgets }: { readonly forgets?: 'merging' | 'earlier' | 'whileDriven' | 'failures' | 'exclusion' } = {},
): Engine {
  const look = (): void => {
    for (const each of [...queue.looks]) each()
  }
  const put = (wake: Wake, earlier?: number): void => {
    const { runId, at = 0 } = wake
    if (forgets === 'whileDriven' && queue.busy.has(runId)) return
    const there = queue.waiting.get(runId)
    const name = forgets === 'merging' ? `${runId} ${++queue.places}` : runId
    const dueAt = there && (forgets === 'earlier' || there.dueAt < at) ? there.dueAt : at
    const place = earlier ?? there?.place ?? ++queue.places
    queue.waiting.set(name, { wake: { ...there?.wake, ...wake }, dueAt, place })
  }
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
      const own = new Set<Promise<void>>()
      let timer: NodeJS.Timeout | undefined
      const deliver = async ({ wake, place }: Waiting): Promise<void> => {
        const name = wake.key ?? wake.runId
        queue.busy.set(name, wake)
        try {
          await Promise.race([
            drive(wake, stop.signal),
            new Promise((_resolve, reject) =>
              stop.signal.addEventListener('abort', () => setImmediate(reject)),
            ),
          ])
        } catch {
          if (forgets !== 'failures') put({ ...wake, at: 0 }, place)
        } finally {
          queue.busy.delete(name)
        }
      }
      const take = (): void => {
        clearTimeout(timer)
        while (!stop.signal.aborted && own.size < concurrency) {
          const perTenant = (wake: Wake): number =>
            [...queue.busy.values()].filter(({ tenant }) => tenant === wake.tenant).length
          const now = Date.now() // read once: a wake that came due between two reads would be neither taken nor timed
          const waiting = [...queue.waiting].sort(
            ([, a], [, b]) =>
              (b.wake.priority ?? 0) - (a.wake.priority ?? 0) ||
              perTenant(a.wake) - perTenant(b.wake) ||
              a.place - b.place,
          )
          const next = waiting.find(
            ([, { wake, dueAt }]) =>
              dueAt <= now && (forgets === 'exclusion' || !queue.busy.has(wake.key ?? wake.runId)),
          )
          if (next === undefined) {
            const soonest = Math.min(...waiting.map(([, { dueAt }]) => dueAt).filter((at) => at > now))
            if (soonest < Infinity) timer = setTimeout(take, soonest - now)
            return
          }
          queue.waiting.delete(next[0])
          const driving: Promise<void> = deliver(next[1]).finally(() => {
            own.delete(driving)
            look()
          })
          own.add(driving)
        }
      }
      queue.looks.add(take)
      take()
      return Promise.resolve({
        async stop(graceMs) {
          queue.looks.delete(take)
          clearTimeout(timer)
          stop.abort()
          if (graceMs > 0) await Promise.all(own)
          else await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
        },
      })
    },
  }
}
