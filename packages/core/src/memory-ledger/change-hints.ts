import { Observable, Subject } from 'rxjs'
import type { RunId } from '../vocabulary/values/ids.ts'

/**
 * Hints of a ledger to those who follow its runs. A hint about a run costs the same however many other runs are followed.
 */
export class ChangeHints {
  readonly #subjects = new Map<string, Subject<void>>()
  #isClosed = false

  /** Hints about a run, or about any run where none is named; with `inbox`, only those about inboxes. */
  of(runId: RunId | undefined, part?: 'inbox'): Observable<void> {
    const name = nameOf(runId, part)
    return new Observable((subscriber) => {
      if (this.#isClosed) return subscriber.complete()
      const subject = this.#subjects.get(name) ?? new Subject<void>()
      this.#subjects.set(name, subject)
      const subscription = subject.subscribe(subscriber)
      return () => {
        subscription.unsubscribe()
        if (!subject.observed) this.#subjects.delete(name)
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
    for (const subject of [...this.#subjects.values()]) subject.next()
  }

  /** A run that no caller follows by its id may have changed. */
  notifyFollowersOfAny(): void {
    this.#hint(undefined, true)
  }

  #hint(runId: RunId | undefined, isInbox: boolean): void {
    this.#subjects.get(nameOf(runId))?.next()
    if (isInbox) this.#subjects.get(nameOf(runId, 'inbox'))?.next()
  }

  close(): void {
    this.#isClosed = true
    for (const subject of [...this.#subjects.values()]) subject.complete()
  }
}

function nameOf(runId: RunId | undefined, part?: 'inbox'): string {
  return `${runId ?? 'any'} ${part ?? 'all'}`
}
