/** A drive under way. */
interface RunningDrive {
  readonly stop: () => void
  readonly giveUp: (reason: Error) => void
}

/**
 * The drives of one worker, until it stops. Each has a signal and an end of its own: what all drives of a worker share would keep
 * something of each of them as long as the worker lives.
 */
export class Driving {
  readonly #running = new Set<RunningDrive>()
  #isStopping = false
  #isOver = false

  get isStopping(): boolean {
    return this.#isStopping
  }

  /** Drives with a signal that is aborted with the one given, or when the worker stops. Rejects once the time to stop is over. */
  async run<Result>(
    given: AbortSignal | undefined,
    drive: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const own = new AbortController()
    const grace = Promise.withResolvers<never>()
    const running: RunningDrive = {
      stop: () => own.abort(new Error('The worker stops.')),
      giveUp: grace.reject,
    }
    if (this.#isStopping) running.stop()
    if (this.#isOver) throw createOverError()
    this.#running.add(running)
    try {
      const signal = given ? AbortSignal.any([given, own.signal]) : own.signal
      return await Promise.race([drive(signal), grace.promise])
    } finally {
      this.#running.delete(running)
    }
  }

  /** Aborts the signal of each drive, and of those to come. */
  stop(): void {
    this.#isStopping = true
    for (const { stop } of this.#running) stop()
  }

  /** Rejects the drives that have not ended, and those to come. */
  giveUp(): void {
    this.#isOver = true
    for (const { giveUp } of this.#running) giveUp(createOverError())
  }
}

function createOverError(): Error {
  return new Error('The time to stop is over.')
}
