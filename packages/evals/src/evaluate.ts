import {
  type Agent,
  ConfigurationError,
  createRuntime,
  type Ledger,
  type RunId,
  type RunResult,
  type Runtime,
  type RuntimeEvent,
  type RuntimeOptions,
} from '@tallystick/core'
import {
  definedAgent,
  defaultHost,
  formatError,
  omitUndefined,
  option,
  requireOptions,
  requireRunOptions,
  someLedger,
  someSignal,
} from '@tallystick/core/internal'
import { computeDigest, type GivenLimits, type Json, toCanonicalJson } from '@tallystick/core/vocabulary'
import { type EvalCase, readCases, someCase } from './case.ts'
import { type EvaluationReport, Tally } from './report.ts'
import { readScore, type Scorer, type ScoredRun } from './scorers.ts'
import { type Arming, serveAgent, toCallKey } from './served-agent.ts'

/** Options of `evaluate`. */
export interface EvaluateOptions {
  /** The cases, or the path of a file of them. They are read as they are needed. */
  readonly cases: string | Iterable<EvalCase> | AsyncIterable<EvalCase>
  /** The agents that are compared, by names for the report. The first one is what the others are compared with. */
  readonly agents: { readonly [name: string]: Agent<never, never> | Agent<unknown> }
  /** By names for the report. */
  readonly scorers: { readonly [name: string]: Scorer }
  /** Records each run, with its scores as feedback. */
  readonly ledger: Ledger
  /**
   * Names the evaluation: its runs have the tag `evaluation:NAME`. One that is started again under its name, in the same ledger,
   * makes only the runs that are missing. Default: a new name.
   */
  readonly name?: string | undefined
  /** How often each agent runs each case. Default: 1. */
  readonly repeats?: number | undefined
  /** How many runs are under way at a time. Default: 4. */
  readonly concurrency?: number | undefined
  /** Tools that run for real, or what stands in for them where no result is on record. */
  readonly tools?: Arming | undefined
  /** Options of the runtimes, such as prices. */
  readonly runtime?: Omit<RuntimeOptions, 'ledger' | 'agents' | 'approval'> | undefined
  /** Limits of each run. */
  readonly limits?: GivenLimits | undefined
  /** The context of each run. */
  readonly context?: unknown
  /** How long a scorer may take, in milliseconds. Default: 60,000. */
  readonly scorerTimeoutMs?: number | undefined
  /** Stops the evaluation: runs under way stay on record, and are continued when it is started again. */
  readonly signal?: AbortSignal | undefined
  /** Called with each run that is done, case by case in their order. */
  readonly onRun?: ((run: EvaluatedRun) => void | Promise<void>) | undefined
}

/** An evaluation as the command line runs it: in its own ledger, with `close` called at the end. */
export interface Evaluation extends Omit<EvaluateOptions, 'ledger' | 'signal' | 'onRun'> {
  readonly close?: (() => void | Promise<void>) | undefined
}

/** An evaluation, or a function that sets up what it needs and returns it. */
export type EvaluationSource = Evaluation | (() => Evaluation | Promise<Evaluation>)

/** Returns what it is given: the default export of a module for `tallystick evaluate`. */
export function defineEvaluation(source: EvaluationSource): EvaluationSource {
  requireOptions('defineEvaluation', someSource, source, 'the evaluation')
  return source
}

/** What a scorer said of a run: a score, or why it gave none. */
export type GivenScore = { readonly score: number; readonly note?: string } | { readonly error: string }

/** One run of a case by an agent. */
export interface EvaluatedRun {
  readonly case: string
  readonly agent: string
  /** From 1. */
  readonly repeat: number
  /** Absent if the run could not begin. */
  readonly runId?: RunId
  /** Why it came to no answer: then each score is 0. */
  readonly failure?: string
  readonly scores: { readonly [scorer: string]: GivenScore }
  readonly costUsd?: number
  /** What judging it cost, in US dollars. */
  readonly scoringUsd?: number
  readonly durationMs?: number
  /** Input and output. */
  readonly tokens?: number
  /** It made other calls than the recorded run, or in another order. Absent where the case has no calls on record. */
  readonly isDiverged?: boolean
}

const { anyFunction, anyObject, fields, filledText, maybe, numberFrom, recordOf, valueThat } = option
const someCases = valueThat(
  'the path of a file, or a list of cases',
  (value) =>
    (typeof value === 'string' && value !== '') ||
    (typeof value === 'object' &&
      value !== null &&
      (Symbol.iterator in value || Symbol.asyncIterator in value)),
)
const armingOfTool = valueThat(
  "'armed' or a function",
  (value) => value === 'armed' || typeof value === 'function',
)
const someSource = valueThat(
  'an object with cases, agents and scorers, or a function that returns one',
  (value) =>
    typeof value === 'function' || (typeof value === 'object' && value !== null && 'scorers' in value),
)
const aCount = numberFrom(1, { whole: true })
const evaluateOptions = fields<EvaluateOptions>(
  {
    cases: someCases,
    agents: recordOf(definedAgent),
    scorers: recordOf(anyFunction),
    ledger: someLedger,
    name: maybe(filledText),
    repeats: maybe(aCount),
    concurrency: maybe(aCount),
    tools: maybe(recordOf(armingOfTool)),
    runtime: maybe(anyObject),
    limits: maybe(anyObject),
    context: maybe(() => undefined),
    scorerTimeoutMs: maybe(numberFrom(1)),
    signal: maybe(someSignal),
    onRun: maybe(anyFunction),
  },
  { dataset: 'cases', data: 'cases', evaluators: 'scorers', runs: 'repeats', n: 'repeats' },
)

/** The cases that are looked ahead of the first one that is not done, for each run that may be under way. */
const casesAhead = 4

/**
 * Runs each case with each agent, scores the runs, and returns the scores, what was spent and how often the calls were others than the
 * recorded ones, with confidence. A call with a recorded result gets that; no other tool runs unless it is armed. A run that fails is
 * counted with the score 0 and its reason. Holds as many cases in memory as are under way.
 *
 * Rejects with a `ConfigurationError` for wrong options, a case that is none, and two cases of one id, and with the errors of the
 * ledger.
 */
export async function evaluate(options: EvaluateOptions): Promise<EvaluationReport> {
  requireOptions('evaluate', evaluateOptions, options)
  for (const [what, names] of [
    ['agents', Object.keys(options.agents)],
    ['scorers', Object.keys(options.scorers)],
  ] as const) {
    if (names.length === 0) {
      throw new ConfigurationError(
        `evaluate: it was given no ${what}, so there is nothing to say of a case. Give one at least.`,
      )
    }
    if (names.some((each) => each.trim() === '')) {
      throw new ConfigurationError(
        `evaluate: one of ${what} has an empty name, under which nothing can be recorded. Give each a name.`,
      )
    }
  }
  const { cases, agents, scorers, name = crypto.randomUUID(), repeats = 1, concurrency = 4, onRun } = options
  const evaluation = new UnderWay(options, name)
  const tally = new Tally({ name, agents: Object.keys(agents), scorers: Object.keys(scorers), repeats })
  const source = iterate(typeof cases === 'string' ? readCases(cases) : cases)
  const known = new Set<string>()
  const pending: Promise<readonly EvaluatedRun[] | undefined>[] = []
  let isRead = false
  try {
    for (;;) {
      while (!isRead && !evaluation.isStopped && pending.length < concurrency * casesAhead) {
        const { done = false, value } = await source.next()
        if ((isRead = done)) break
        const each = value as EvalCase
        requireOptions('evaluate', someCase, each, `case ${known.size + 1}`)
        if (known.has(each.id))
          throw new ConfigurationError(
            `evaluate: two cases have the id ${JSON.stringify(each.id)}. Give each an id of its own.`,
          )
        known.add(each.id)
        const runs = evaluation.evaluateCase(each)
        runs.catch(() => {})
        pending.push(runs)
      }
      const next = pending.shift()
      if (next === undefined) break
      const runs = await next
      if (runs === undefined) continue
      tally.addCase(runs)
      for (const run of runs) await onRun?.(run)
    }
  } finally {
    await evaluation.stop()
    await Promise.allSettled(pending)
    await source.return?.(undefined)
  }
  return tally.report({ isComplete: isRead && !evaluation.hasLeft })
}

async function* iterate(cases: Iterable<EvalCase> | AsyncIterable<EvalCase>): AsyncGenerator<EvalCase> {
  yield* cases
}

/** The runs of an evaluation that are under way. */
class UnderWay {
  readonly #options: EvaluateOptions
  readonly #name: string
  readonly #gate: Gate
  readonly #runtimes = new Set<Runtime>()
  /** Gives the feedback. */
  readonly #recorder: Runtime
  readonly #stopping = Promise.withResolvers<never>()
  isStopped = false
  /** A case was not done. */
  hasLeft = false

  constructor(options: EvaluateOptions, name: string) {
    this.#options = options
    this.#name = name
    this.#gate = new Gate(options.concurrency ?? 4)
    const { signal, ledger, runtime, limits, context } = options
    // Wrong options are refused here, before they would fail every run.
    this.#recorder = createRuntime({ ...runtime, ledger })
    requireRunOptions(omitUndefined({ limits, context }))
    this.#stopping.promise.catch(() => {})
    if (signal?.aborted) this.isStopped = true
    signal?.addEventListener('abort', this.#onAbort)
  }

  readonly #onAbort = (): void => void this.stop()

  /** Starts nothing more, and waits for what is under way to rest. */
  async stop(): Promise<void> {
    this.isStopped = true
    this.#stopping.reject(new Error('The evaluation was stopped.'))
    this.#options.signal?.removeEventListener('abort', this.#onAbort)
    await Promise.all([...this.#runtimes].map((runtime) => runtime.drain(0)))
  }

  /** The runs of a case by each agent, in their order; `undefined` if the evaluation was stopped before all were done. */
  async evaluateCase(each: EvalCase): Promise<readonly EvaluatedRun[] | undefined> {
    const { agents, repeats = 1 } = this.#options
    const order = Object.entries(agents).flatMap(([name, agent]) =>
      Array.from({ length: repeats }, (_, index) => [name, agent as Agent<unknown>, index + 1] as const),
    )
    const settled = await Promise.allSettled(
      order.map(([name, agent, repeat]) =>
        this.#gate.pass(() => this.#evaluateRun(each, name, agent, repeat)),
      ),
    )
    const failed = settled.find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') throw failed.reason
    const runs = settled.flatMap((run) => (run.status === 'fulfilled' && run.value ? [run.value] : []))
    if (runs.length === order.length) return runs
    this.hasLeft = true
    return undefined
  }

  async #evaluateRun(
    each: EvalCase,
    name: string,
    agent: Agent<unknown>,
    repeat: number,
  ): Promise<EvaluatedRun | undefined> {
    if (this.isStopped) return undefined
    const about = { case: each.id, agent: name, repeat }
    const ended = await this.#play(each, name, agent, repeat)
    if (ended === undefined) return undefined
    if (ended.result === undefined)
      return { ...about, failure: ended.failure, scores: this.#failed(ended.failure) }
    const { result } = ended
    const events: RuntimeEvent[] = []
    for await (const event of this.#options.ledger.read(result.runId)) events.push(event)
    const failure = describeEnd(result, events)
    const calls = listCalls(events)
    const { scores, scoringUsd } = failure
      ? { scores: this.#failed(failure), scoringUsd: undefined }
      : await this.#score({
          ...{ case: each, agent: name, result, text: result.text, calls, events },
          output: result.output === undefined ? result.text : (result.output as Json),
          evaluation: {
            name: this.#name,
            run: async (own, input, options) =>
              await this.#withRuntime(own, async (runtime) => await runtime.run(own, input, options).result),
          },
        })
    // What was scored in the meantime may lack the verdict of a judge that was interrupted.
    if (this.isStopped && Object.values(scores).some((given) => 'error' in given)) return undefined
    const { usage, costUsd, runId } = result
    await this.#record(runId, scores)
    const recorded = each.calls?.filter(({ child }) => child !== true)
    return {
      ...about,
      runId,
      ...omitUndefined({ failure, costUsd, scoringUsd }),
      scores,
      durationMs: measureDuration(events),
      tokens: (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0),
      ...(recorded && {
        isDiverged: toCanonicalJson(calls.map(toCallKey)) !== toCanonicalJson(recorded.map(toCallKey)),
      }),
    }
  }

  /** Makes the run, or finds it on record; `undefined` if it was stopped. */
  async #play(
    each: EvalCase,
    name: string,
    agent: Agent<unknown>,
    repeat: number,
  ): Promise<
    { readonly result: RunResult } | { readonly result?: undefined; readonly failure: string } | undefined
  > {
    const { tools = {}, limits, context } = this.#options
    try {
      const served = serveAgent(agent, each, tools)
      const { id, input, history = [], calls = [] } = each
      const parts = typeof input === 'string' ? [{ type: 'text' as const, text: input }] : input
      const { digest } = agent.definition
      const key = [this.#name, name, id, input, history, calls, digest, repeat]
      return await this.#withRuntime(served, async (runtime) => {
        const run = runtime.run(served, [...history, { role: 'user', parts }], {
          idempotencyKey: `evaluation ${computeDigest(toCanonicalJson(key as never))}`,
          tags: [`evaluation:${this.#name}`, `agent:${name}`, `case:${id}`],
          ...omitUndefined({ limits, context }),
        })
        const result = await run.result
        if (result.status === 'interrupted') return undefined
        if (result.status !== 'suspended') return { result }
        await run.cancel({ by: canceller, reason: describeWait(result) })
        return { result: await run.result }
      })
    } catch (error) {
      // The ledger is at fault, not the run.
      if (isOfLedger(error)) throw error
      if (this.isStopped) return undefined
      return { failure: formatError(error) }
    }
  }

  /** Lends a runtime that is drained if the evaluation is stopped. */
  async #withRuntime<T>(agent: Agent<unknown>, use: (runtime: Runtime) => Promise<T>): Promise<T> {
    const { ledger, runtime: given } = this.#options
    const runtime = createRuntime({ ...given, ledger, agents: [agent] })
    if (this.isStopped) return await this.#stopping.promise
    this.#runtimes.add(runtime)
    try {
      return await use(runtime)
    } finally {
      this.#runtimes.delete(runtime)
    }
  }

  #failed(failure: string): EvaluatedRun['scores'] {
    return Object.fromEntries(
      Object.keys(this.#options.scorers).map((name) => [name, { score: 0, note: failure }]),
    )
  }

  async #score(
    run: ScoredRun,
  ): Promise<{ readonly scores: EvaluatedRun['scores']; readonly scoringUsd: number | undefined }> {
    let scoringUsd: number | undefined
    const scores = await Promise.all(
      Object.entries(this.#options.scorers).map(async ([name, scorer]): Promise<[string, GivenScore]> => {
        try {
          const { costUsd, ...score } = readScore(await this.#withinTime(async () => await scorer(run)))
          if (costUsd !== undefined) scoringUsd = (scoringUsd ?? 0) + costUsd
          return [name, score]
        } catch (error) {
          if (isOfLedger(error)) throw error
          return [name, { error: formatError(error) }]
        }
      }),
    )
    return { scores: Object.fromEntries(scores), scoringUsd }
  }

  async #withinTime<T>(work: () => Promise<T>): Promise<T> {
    const { scorerTimeoutMs = 60_000, runtime } = this.#options
    const clock = runtime?.host?.clock ?? defaultHost.clock
    const late = Promise.withResolvers<never>()
    const stopTimer = clock.schedule(scorerTimeoutMs, () =>
      late.reject(new Error(`It took longer than ${scorerTimeoutMs} ms.`)),
    )
    return await Promise.race([work(), late.promise, this.#stopping.promise]).finally(stopTimer)
  }

  /** The scores of a run are feedback on it: once each, however often it is scored alike. */
  async #record(runId: RunId, scores: EvaluatedRun['scores']): Promise<void> {
    for (const [by, given] of Object.entries(scores)) {
      if ('error' in given) continue
      const { score, note } = given
      const key = `score ${by} ${computeDigest(toCanonicalJson([score, note ?? null]))}`
      await this.#recorder.feedback(
        runId,
        { by, score, ...omitUndefined({ note: note || undefined }) },
        { key },
      )
    }
  }
}

/** Lets so many pieces of work run at a time, first come, first served. */
class Gate {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(places: number) {
    this.#free = places
  }

  async pass<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
  }
}

const ofLedger: ReadonlySet<string> = new Set(['ledger_unavailable', 'ledger_damaged', 'ledger_conflict'])

function isOfLedger(error: unknown): boolean {
  return error instanceof Error && 'code' in error && ofLedger.has(String(error.code))
}

/** The calls of the replies that were kept. */
function listCalls(events: readonly RuntimeEvent[]): ScoredRun['calls'] {
  return events.flatMap((event) =>
    event.type === 'assistant_message_finished' && !event.partial
      ? event.parts.flatMap((part) =>
          part.type === 'tool_call' ? [{ tool: part.name, input: part.input }] : [],
        )
      : [],
  )
}

function measureDuration(events: readonly RuntimeEvent[]): number {
  const end = events.find(({ type }) => type === 'run_finished')
  return (end?.at ?? events.at(-1)?.at ?? 0) - (events[0]?.at ?? 0)
}

const answered: ReadonlySet<string> = new Set(['answered', 'stopped', 'handed_back'])

/** Who cancels a run that waits: nobody answers in an evaluation. */
const canceller = 'evaluation'

/** Why a run came to no answer; `undefined` if it came to one. */
function describeEnd(
  { reason, detail, failure }: RunResult,
  events: readonly RuntimeEvent[],
): string | undefined {
  if (reason !== undefined && answered.has(reason)) return undefined
  const cancel = events.find((event) => event.type === 'cancel_requested')
  if (cancel?.by === canceller) return cancel.reason
  const why = failure ? `${failure.class}: ${failure.message}` : detail
  return `ended as ${reason}${why === undefined ? '' : ` (${why})`}`
}

function describeWait({ pendingApprovals, deferredCalls, limit }: RunResult): string {
  const [call] = pendingApprovals
  if (call) return `waits for an approval of ${call.name}`
  if (limit !== undefined) return `waits at the limit ${limit}`
  return `waits for ${deferredCalls[0]?.name ?? 'a command'}`
}
