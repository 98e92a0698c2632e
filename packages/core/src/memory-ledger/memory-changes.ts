import { Observable, Subject } from 'rxjs'
import type { RunId } from '../vocabulary/values/ids.ts'

/** The hints of a memory ledger. A hint reaches those who follow its run, and costs nothing for other runs. */
export class MemoryChanges {
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
        if (!subject.observed && this.#subjects.get(name) === subject) this.#subjects.delete(name)
      }
    })
  }

  /** The events of a run may have changed, and its inbox where `isInbox` says so. */
  notify(runId: RunId, isInbox: boolean): void {
    for (const followed of [runId, undefined]) {
      this.#subjects.get(nameOf(followed))?.next()
      if (isInbox) this.#subjects.get(nameOf(followed, 'inbox'))?.next()
    }
  }

  close(): void {
    this.#isClosed = true
    for (const subject of this.#subjects.values()) subject.complete()
  }
}

function nameOf(runId: RunId | undefined, part?: 'inbox'): string {
  return `${runId ?? 'any'} ${part ?? 'all'}`
}
