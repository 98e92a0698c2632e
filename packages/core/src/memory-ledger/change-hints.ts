import { Observable, type Subscriber } from 'rxjs'
import type { RunId } from '../vocabulary/values/ids.ts'

/**
 * Hints of a ledger to those who follow its runs. A hint about a run costs the same however many other runs are followed.
 */
export class ChangeHints {
  /** By what they follow. */
  readonly #followers = new Map<string, Set<Subscriber<void>>>()
  #isClosed = false

  /** Hints about a run, or about any run where none is named; with `inbox`, only those about inboxes. */
  of(runId: RunId | undefined, part?: 'inbox'): Observable<void> {
    const name = nameOf(runId, part)
    return new Observable((subscriber) => {
      if (this.#isClosed) return subscriber.complete()
      const followers = this.#followers.get(name) ?? new Set()
      this.#followers.set(name, followers.add(subscriber))
      return () => {
        followers.delete(subscriber)
        if (followers.size === 0) this.#followers.delete(name)
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
    for (const follower of this.#following(nameOf(runId))) follower.next()
    if (!isInbox) return
    for (const follower of this.#following(nameOf(runId, 'inbox'))) follower.next()
  }

  /** Those who follow it at this moment: they may come and go while they are given a hint. */
  #following(name: string): readonly Subscriber<void>[] {
    return [...(this.#followers.get(name) ?? [])]
  }

  close(): void {
    this.#isClosed = true
    for (const follower of this.#all()) follower.complete()
  }

  #all(): readonly Subscriber<void>[] {
    return [...this.#followers.keys()].flatMap((name) => this.#following(name))
  }
}

function nameOf(runId: RunId | undefined, part?: 'inbox'): string {
  return `${runId ?? 'any'} ${part ?? 'all'}`
}
