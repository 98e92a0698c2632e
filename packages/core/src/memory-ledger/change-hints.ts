import { Observable, type Subscriber } from 'rxjs'
import type { RunId } from '../vocabulary/values/ids.ts'

/**
 * Hints of a ledger to those who follow its runs. A hint about a run costs the same however many other runs are followed.
 */
export class ChangeHints {
  /** By the run that they follow; `undefined` for those that follow any. */
  readonly #ofAll = new Map<RunId | undefined, Set<Subscriber<void>>>()
  /** The same for those that follow inboxes only. */
  readonly #ofInboxes = new Map<RunId | undefined, Set<Subscriber<void>>>()
  #isClosed = false

  /** Hints about a run, or about any run where none is named; with `inbox`, only those about inboxes. */
  of(runId: RunId | undefined, part?: 'inbox'): Observable<void> {
    const byRun = part === 'inbox' ? this.#ofInboxes : this.#ofAll
    return new Observable((subscriber) => {
      if (this.#isClosed) return subscriber.complete()
      const followers = byRun.get(runId) ?? new Set()
      byRun.set(runId, followers.add(subscriber))
      return () => {
        followers.delete(subscriber)
        if (followers.size === 0) byRun.delete(runId)
      }
    })
  }

  /** The events of a run may have changed, and its inbox if `isInbox` says so. */
  notify(runId: RunId, isInbox: boolean): void {
    this.#hint(runId, isInbox)
    this.#hint(undefined, isInbox)
  }

  /** Any run may have changed. Hints at each run that is followed. */
  notifyAll(): void {
    for (const follower of this.#all()) follower.next()
  }

  /** A run that no caller follows by its id may have changed. */
  notifyFollowersOfAny(): void {
    this.#hint(undefined, true)
  }

  #hint(runId: RunId | undefined, isInbox: boolean): void {
    for (const follower of followersIn(this.#ofAll, runId)) follower.next()
    if (!isInbox) return
    for (const follower of followersIn(this.#ofInboxes, runId)) follower.next()
  }

  close(): void {
    this.#isClosed = true
    for (const follower of this.#all()) follower.complete()
  }

  #all(): readonly Subscriber<void>[] {
    return [...this.#ofAll.values(), ...this.#ofInboxes.values()].flatMap((followers) => [...followers])
  }
}

const none: readonly Subscriber<void>[] = []

/** Those who follow a run at this moment: they may come and go while they are given a hint. */
function followersIn(
  byRun: ReadonlyMap<RunId | undefined, ReadonlySet<Subscriber<void>>>,
  runId: RunId | undefined,
): readonly Subscriber<void>[] {
  const followers = byRun.get(runId)
  return followers === undefined ? none : [...followers]
}
