import { Observable } from 'rxjs'
import type { Ledger, Model, RunId, RuntimeEvent } from '@tallystick/core'
import { defaultHost, formatErrorSentence, formatLegibly } from '@tallystick/core/internal'
import type { ModelSignal } from '@tallystick/core/vocabulary'
import type { ModelHarness, Stage } from '../model-contract/case.ts'
import { createFailure, formatEvent, type Page, toLedgerPage } from '../report/failure.ts'
import type { Subject } from '../report/laws.ts'

/** What a case saw of the ledger under test: what it acknowledged, to be held against what it holds. */
export class LedgerRecord {
  readonly #acknowledged = new Map<RunId, RuntimeEvent[]>()
  #ledger: Ledger | undefined
  #last: RunId | undefined

  note(ledger: Ledger): Ledger {
    this.#ledger = ledger
    return new Proxy(ledger, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        if (name !== 'append') return (...given: unknown[]) => (value as Call).apply(target, given)
        return async (...given: Parameters<Ledger['append']>) => {
          const head = await target.append(...given)
          const [runId, , events] = given
          this.#acknowledged.set(runId, [...(this.#acknowledged.get(runId) ?? []), ...events])
          this.#last = runId
          return head
        }
      },
    })
  }

  /** The first run of which the ledger holds something else than it acknowledged, else the last that was appended to. */
  async toPage(): Promise<Page | undefined> {
    for (const [runId, events] of this.#acknowledged) {
      const held = await this.#read(runId)
      const place = events.findIndex((event, index) => !isSame(held?.[index], event))
      if (place < 0 && (held?.length ?? 0) <= events.length) continue
      if (place < 0) return toLedgerPage(held ?? [], held?.[events.length], 'nobody appended this', whole)
      const found = held?.[place]
      const what =
        found === undefined ? 'the ledger holds nothing here' : `the ledger holds: ${formatEvent(found)}`
      return {
        ...toLedgerPage(events, events[place], what, whole),
        title: `What was appended to run ${runId}, and acknowledged`,
      }
    }
    const events = this.#last && (await this.#read(this.#last))
    return events && events.length > 0 ? toLedgerPage(events, events.at(-1), '', whole) : undefined
  }

  async #read(runId: RunId): Promise<readonly RuntimeEvent[] | undefined> {
    const held: RuntimeEvent[] = []
    try {
      for await (const event of this.#ledger?.read(runId) ?? []) held.push(event)
      return held
    } catch {
      // The ledger cannot say what it holds.
      return undefined
    }
  }
}

const whole = { hidesPieces: false } as const

type Call = (...given: unknown[]) => unknown

function isSame(one: RuntimeEvent | undefined, other: RuntimeEvent): boolean {
  return one !== undefined && formatLegibly(one, Infinity) === formatLegibly(other, Infinity)
}

/** What a model reported in the last call of a case. */
export class ModelRecord {
  readonly #stages: Stage[] = []
  #lines: string[] = []
  #marked: number | undefined

  note(harness: ModelHarness): ModelHarness {
    return Object.assign(Object.create(harness) as ModelHarness, {
      stage: async (...given: Parameters<ModelHarness['stage']>) => {
        const stage = await harness.stage(...given)
        this.#stages.push(stage)
        const { model } = stage
        const watched: Model = Object.assign(Object.create(model) as Model, {
          stream: (...call: Parameters<Model['stream']>) => this.#watch(model.stream(...call)),
        })
        return Object.assign(Object.create(stage) as Stage, { model: watched })
      },
    })
  }

  toPage(): Page | undefined {
    if (this.#lines.length === 0) return undefined
    return { title: 'The reports of the last call', lines: this.#lines, marked: this.#marked }
  }

  /** Closes what a case that hangs has left open. */
  async close(): Promise<void> {
    for (const stage of this.#stages) await stage.close()
  }

  #watch(reports$: Observable<ModelSignal>): Observable<ModelSignal> {
    const lines: string[] = []
    const requests = new Set<string>()
    let isFinished = false
    const note = (line: string, isWrong = false): void => {
      lines.push(line)
      if (isWrong) this.#marked ??= lines.length - 1
    }
    return new Observable((subscriber) => {
      this.#lines = lines
      this.#marked = undefined
      let isOver = false
      const reports = reports$.subscribe({
        next: (signal) => {
          const line = formatSignal(signal)
          const isAgain = signal?.type === 'model_tool_request' && requests.has(line)
          if (signal?.type === 'model_tool_request') requests.add(line)
          if (signal?.type === 'model_finished') isFinished = true
          note(line, isAgain)
          subscriber.next(signal)
        },
        error: (error: unknown) => {
          isOver = true
          note(`fails: ${formatErrorSentence(error)}`)
          subscriber.error(error)
        },
        complete: () => {
          isOver = true
          note('completes', !isFinished)
          subscriber.complete()
        },
      })
      return () => {
        if (!isOver) note('is given up')
        reports.unsubscribe()
      }
    })
  }
}

function formatSignal(signal: ModelSignal): string {
  const { type, ...body } = Object(signal) as ModelSignal
  return `${type} ${formatLegibly(body, 120)}`
}

/** Runs a case, and says of its failure which promise is broken, where to read about it, and what was on record. */
export async function explain(
  { promise, subject }: { readonly promise: string; readonly subject: Subject },
  run: () => Promise<void>,
  toPage: () => Page | undefined | Promise<Page | undefined>,
): Promise<void> {
  try {
    await run()
  } catch (error) {
    const what = formatErrorSentence(error)
    throw createFailure({ law: promise, subject, what, page: await toPage() }, { cause: error })
  }
}

/** Rejects if it takes longer than that, in real milliseconds. */
export async function requireInTime<T>(promise: Promise<T>, ms: number, what: string): Promise<T> {
  const late = Promise.withResolvers<never>()
  const stopTimer = defaultHost.clock.schedule(ms, () => late.reject(new Error(`${what} within ${ms} ms.`)))
  try {
    return await Promise.race([promise, late.promise])
  } finally {
    stopTimer()
  }
}
