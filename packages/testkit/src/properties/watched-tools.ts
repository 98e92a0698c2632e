import { Observable, type Subscription } from 'rxjs'
import type { Tool } from '@tallystick/core'
import { defaultHost, formatFault, toolSignalSchema } from '@tallystick/core/internal'
import type { ToolRun, ToolSignal } from '@tallystick/core/vocabulary'
import { formatLegibly } from '@tallystick/core/internal'

/** What a tool promises of each call, in words. */
export const toolPromises = {
  ends: 'a call of a tool ends',
  once: 'a call of a tool reports exactly one ending, as its last report',
  stops: 'a call of a tool ends when it is asked to stop',
  readable: 'a tool that fails says why, in words that can be read',
  sound: 'a tool reports what JSON can carry',
} as const

/** A promise that a call of a tool broke. */
export interface Breach {
  readonly tool: string
  readonly toolCallId: string
  readonly promise: string
  readonly what: string
  /** What the call reported until then, one line each. */
  readonly reports: readonly string[]
}

interface Attempt {
  readonly tool: Tool
  readonly call: ToolRun
  readonly reports: string[]
  readonly done: Promise<void>
  readonly finish: () => void
  hasEnded: boolean
  stopReason: string | undefined
}

/**
 * Watches tools from outside, as they report: what a runtime forgives a tool, this notes. Tools work in real time, so a test whose
 * clock is a manual one gets `outside` from here.
 */
export class ToolWatch {
  readonly breaches: Breach[] = []
  readonly #patienceMs: number
  readonly #working = new Set<Attempt>()
  readonly #subscriptions = new Set<Subscription>()
  readonly #onStart: (tool: Tool) => void

  /** `patienceMs`: how long a tool may do nothing, in real milliseconds, before it counts as hung. */
  constructor(patienceMs: number, onStart: (tool: Tool) => void = () => {}) {
    this.#patienceMs = patienceMs
    this.#onStart = onStart
  }

  watch<Watched extends Tool>(tool: Watched): Watched {
    const methods = (['check', 'repair', 'reconcile'] as const).flatMap((name) => {
      const method = tool[name] as ((...given: unknown[]) => unknown) | undefined
      return method ? [[name, (...given: unknown[]) => method.apply(tool, given)]] : []
    })
    // The work of an agent that is a tool is done by the runtime.
    const run = tool.child === undefined ? (call: ToolRun) => this.#run(tool, call) : tool.run.bind(tool)
    return { ...tool, ...(Object.fromEntries(methods) as object), run }
  }

  /** Resolves when a call that is at work has ended, or has taken too long; `undefined` if none is. */
  outside(): Promise<unknown> | undefined {
    if (this.#working.size === 0) return undefined
    const working = [...this.#working]
    return new Promise<void>((resolve) => {
      const stopTimer = defaultHost.clock.schedule(this.#patienceMs, () => {
        for (const attempt of working) if (this.#working.has(attempt)) this.#giveUp(attempt)
        resolve()
      })
      void Promise.race(working.map(({ done }) => done)).then(() => {
        stopTimer()
        resolve()
      })
    })
  }

  /** Waits for the calls that are at work, and lets go of all of them. */
  async close(): Promise<void> {
    for (let underWay = this.outside(); underWay; underWay = this.outside()) await underWay
    for (const subscription of this.#subscriptions) subscription.unsubscribe()
  }

  #giveUp(attempt: Attempt): void {
    const { tool, stopReason } = attempt
    const time = `${this.#patienceMs} ms`
    if (attempt.hasEnded)
      this.#note(attempt, 'once', `${tool.name} has reported its ending, and did not complete within ${time}`)
    else if (stopReason === undefined)
      this.#note(attempt, 'ends', `${tool.name} hangs: within ${time} it has neither ended nor done anything`)
    else
      this.#note(
        attempt,
        'stops',
        `${tool.name} was asked to stop (${stopReason}), and has not ended within ${time}`,
      )
    attempt.finish()
  }

  #run(tool: Tool, call: ToolRun): Observable<ToolSignal> {
    return new Observable((subscriber) => {
      const { promise: done, resolve } = Promise.withResolvers<void>()
      const attempt: Attempt = {
        ...{ tool, call, done, reports: [], hasEnded: false, stopReason: undefined },
        finish: () => {
          this.#working.delete(attempt)
          resolve()
        },
      }
      this.#working.add(attempt)
      const asked = call.cancelled$.subscribe((reason) => {
        attempt.stopReason = reason
        attempt.reports.push(`asked to stop: ${reason}`)
      })
      let reports: Subscription | undefined
      try {
        reports = tool.run(call).subscribe({
          next: (signal) => {
            this.#take(attempt, signal)
            subscriber.next(signal)
          },
          error: (error: unknown) => {
            attempt.reports.push('error')
            const how = findUnreadable(error)
            if (how !== undefined) this.#note(attempt, 'readable', `${tool.name} ${how}`)
            else
              this.#note(attempt, 'once', `${tool.name} ended in an error instead of a report of its ending`)
            attempt.finish()
            subscriber.error(error)
          },
          complete: () => {
            attempt.reports.push('complete')
            if (!attempt.hasEnded) this.#note(attempt, 'once', `${tool.name} completed without an ending`)
            attempt.finish()
            subscriber.complete()
          },
        })
        this.#subscriptions.add(reports)
      } catch (error) {
        attempt.reports.push('thrown')
        const how = findUnreadable(error)
        const thrown = how ?? 'threw instead of returning an Observable that reports its failure'
        this.#note(attempt, how === undefined ? 'once' : 'readable', `${tool.name} ${thrown}`)
        attempt.finish()
        subscriber.error(error)
      }
      this.#onStart(tool)
      return () => {
        asked.unsubscribe()
        // What comes after an ending has to be seen; a call that is given up is over.
        if (attempt.hasEnded) return
        reports?.unsubscribe()
        attempt.finish()
      }
    })
  }

  #take(attempt: Attempt, signal: ToolSignal): void {
    const { tool } = attempt
    const fault = toolSignalSchema(signal)
    const isProgress = signal?.type === 'tool_progressed'
    attempt.reports.push(formatReport(signal))
    if (fault) this.#note(attempt, 'sound', `a report of ${tool.name} cannot be kept: ${formatFault(fault)}`)
    else if (attempt.hasEnded) {
      const what = isProgress ? 'reports progress after its ending' : 'reports a second ending of one call'
      this.#note(attempt, 'once', `${tool.name} ${what}`)
    }
    if (isProgress) return
    attempt.hasEnded = true
    if (fault === undefined && 'thrown' in signal) {
      const how = findUnreadable(signal.thrown)
      if (how !== undefined) this.#note(attempt, 'readable', `${tool.name} ${how}`)
    }
  }

  #note({ tool, call, reports }: Attempt, promise: keyof typeof toolPromises, what: string): void {
    this.breaches.push({
      tool: tool.name,
      toolCallId: call.toolCallId,
      promise: toolPromises[promise],
      what,
      reports: [
        `start of ${tool.name} ${formatLegibly(call.input, 80)}, attempt ${call.attempt}`,
        ...reports,
      ],
    })
  }
}

function formatReport(signal: ToolSignal): string {
  try {
    if (signal.type === 'tool_progressed') return `progress ${formatLegibly(signal.data, 80)}`
    if (signal.type === 'tool_deferred') return `deferred as ${formatLegibly(signal.externalId, 80)}`
    return `ending ${signal.outcome}: ${formatLegibly(signal.content, 80)}`
  } catch {
    return 'a report that throws when it is read'
  }
}

/** Says of a thrown value why neither a model nor a person could read it; `undefined` if it is an Error as usual. */
function findUnreadable(thrown: unknown): string | undefined {
  try {
    if (!(thrown instanceof Error)) return `threw what is not an Error: ${formatLegibly(thrown, 80)}`
    const texts: readonly unknown[] = [thrown.name, thrown.message, thrown.stack ?? '']
    return texts.every((text) => typeof text === 'string')
      ? undefined
      : 'threw an Error whose texts are not texts'
  } catch {
    return 'threw a value that throws when it is read, such as a proxy'
  }
}
