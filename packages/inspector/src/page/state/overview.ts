import { effect, signal } from '@preact/signals'
import type { Due, Stats, StatsBucket } from '../../api.ts'
import { rows } from './runs.ts'
import { source } from './source.ts'

/** A length of time that the overview can look back, and how it is divided. */
export interface Range {
  readonly id: string
  readonly words: string
  readonly by: 'hour' | 'day'
  readonly count: number
}

export const ranges: readonly Range[] = [
  { id: 'day', words: '24 hours', by: 'hour', count: 24 },
  { id: 'week', words: '7 days', by: 'hour', count: 168 },
  { id: 'month', words: '30 days', by: 'day', count: 30 },
]
export const range = signal<Range>(ranges[0]!)

export const stats = signal<readonly StatsBucket[] | undefined>(undefined)
export const statsTrouble = signal<string | undefined>(undefined)
export const due = signal<Due | undefined>(undefined)
export const dueTrouble = signal<string | undefined>(undefined)
/** When they were read. */
export const readAt = signal(0)

/** They are read again this long after runs changed. */
const refreshMs = 5_000

export function getBucketMs({ by }: Range): number {
  return by === 'hour' ? 3_600_000 : 86_400_000
}

/** What a server is asked for a length of time, which ends with the present part of it. */
export function getStatsQuery(of: Range): {
  readonly startedSince: number
  readonly startedUntil: number
  readonly by: string
} {
  const bucketMs = getBucketMs(of)
  const startedUntil = (Math.floor(Date.now() / bucketMs) + 1) * bucketMs
  return { startedSince: startedUntil - of.count * bucketMs, startedUntil, by: of.by }
}

/** Keeps the overview as runs change. Without a server there is none. */
export function keepOverview(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const stopRange = effect(() => {
    if (source.value.kind === 'server') void read(range.value)
  })
  const stopRuns = effect(() => {
    void rows.value
    if (source.peek().kind !== 'server') return
    timer ??= setTimeout(() => {
      timer = undefined
      void read(range.peek())
    }, refreshMs)
  })
  return () => {
    stopRange()
    stopRuns()
    clearTimeout(timer)
  }
}

async function read(of: Range): Promise<void> {
  const from = source.peek()
  const query = getStatsQuery(of)
  const [readStats, readDue] = await Promise.allSettled([
    from.read<Stats>('stats', query),
    from.read<Due>('due', { limit: 50 }),
  ])
  if (of !== range.peek() || from !== source.peek()) return
  readAt.value = Date.now()
  if (readStats.status === 'fulfilled')
    stats.value = fillGaps(readStats.value.buckets, query.startedSince, of)
  statsTrouble.value = readStats.status === 'rejected' ? (readStats.reason as Error).message : undefined
  if (readDue.status === 'fulfilled') due.value = readDue.value
  dueTrouble.value = readDue.status === 'rejected' ? (readDue.reason as Error).message : undefined
}

/** Times without a run are not told: a chart shows them as empty. */
function fillGaps(buckets: readonly StatsBucket[], since: number, of: Range): readonly StatsBucket[] {
  const known = new Map(buckets.map((bucket) => [bucket.at, bucket]))
  const empty = { runs: 0, done: 0, failed: 0, suspended: 0, reasons: {}, costUsd: 0, tokens: 0 }
  return Array.from({ length: of.count }, (_, index) => {
    const at = since + index * getBucketMs(of)
    return known.get(at) ?? { at, ...empty }
  })
}
