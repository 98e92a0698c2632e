/** A promise that knows whether anybody waits for it: `await`, `then` and `Promise.all` come by here. */
class Answer<T> extends Promise<T> {
  isRead = false

  /** What is made of it is an ordinary promise. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise
  }

  // oxlint-disable-next-line unicorn/no-thenable -- a promise has it; this one notes that it is called
  override then<A = T, B = never>(...handlers: Parameters<Promise<T>['then']>): Promise<A | B> {
    this.isRead = true
    return super.then(...handlers) as Promise<A | B>
  }
}

/**
 * The answer to a caller who may not wait for it, as to a steer whose effect the events show. If it rejects and nobody reads
 * it, the failure is reported: it is neither lost, nor ends the process as an unhandled rejection.
 */
export function answerTo<T>(asked: Promise<T>, onUnread: (error: unknown) => void): Promise<T> {
  const answer = new Answer<T>((resolve) => resolve(asked))
  // A promise is read where it is handed on, so before it can reject.
  void Promise.prototype.then.call(answer, undefined, (error: unknown) => {
    if (!answer.isRead) onUnread(error)
  })
  return answer
}

/** How a failure is reported that came as the answer to a command, and that nobody read. */
export function unreadAnswer(verb: string, runId: string): string {
  return `${verb} failed for run ${runId}, and nobody waited for its answer`
}
