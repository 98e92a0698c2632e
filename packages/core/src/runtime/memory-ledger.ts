import { filter, map, Subject } from 'rxjs'
import { LedgerUnavailableError, RunNotFoundError } from '../errors.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { RunId } from '../vocabulary/ids.ts'
import type { SessionPlace } from './append-rules.ts'
import { MemoryRun } from './memory-run.ts'

/**
 * A ledger that lives in this process and ends with it: for tests, and for runs that nobody resumes. It keeps every
 * promise of the port but durability: a `barrier` is no more than a `lazy` append, and `close` forgets everything.
 */
export function memoryLedger(): Ledger {
  const changed$ = new Subject<RunId>()
  let store: Map<RunId, MemoryRun> | undefined = new Map()

  /** The runs of each session, in order. */
  const sessions = new Map<string, Set<MemoryRun>>()

  function join(run: MemoryRun): void {
    const { sessionId } = run.record
    if (sessionId === undefined) return
    sessions.set(sessionId, (sessions.get(sessionId) ?? new Set()).add(run))
  }
  function openStore(): Map<RunId, MemoryRun> {
    if (store) return store
    throw new LedgerUnavailableError(
      'This in-memory ledger is closed, and what it held is gone. Make a new one with memoryLedger().',
    )
  }
  function requireRun(runId: RunId): MemoryRun {
    const run = openStore().get(runId)
    if (run === undefined) throw new RunNotFoundError(runId)
    return run
  }

  return {
    async append(runId, expected, events, options) {
      const run = openStore().get(runId) ?? new MemoryRun(runId)
      const taken = ({ sessionId, sessionPlace }: SessionPlace): boolean =>
        [...(sessions.get(sessionId) ?? [])].some((other) => other.record.sessionPlace === sessionPlace)
      const head = run.append(expected, events, options, taken)
      if (head.seq > 0) openStore().set(runId, run)
      join(run)
      changed$.next(runId)
      return head
    },
    async acquire(runId) {
      const head = requireRun(runId).acquire()
      changed$.next(runId)
      return head
    },
    async head(runId) {
      return openStore().get(runId)?.head
    },
    async *read(runId, range) {
      yield* openStore().get(runId)?.read(range?.fromSeq, range?.toSeq) ?? []
    },
    async *runs({ sessionId } = {}) {
      const all = [...openStore().values()]
      const found = sessionId === undefined ? all : [...(sessions.get(sessionId) ?? [])]
      for (const { record } of found.toReversed()) yield record
    },
    async put(runId, entry) {
      const isNew = requireRun(runId).put(entry)
      if (isNew) changed$.next(runId)
      return isNew
    },
    async inbox(runId) {
      return openStore().get(runId)?.inbox() ?? []
    },
    changes(runId) {
      return changed$.pipe(
        filter((changed) => changed === runId),
        map(() => undefined),
      )
    },
    async close() {
      store = undefined
      sessions.clear()
      changed$.complete()
    },
  }
}
