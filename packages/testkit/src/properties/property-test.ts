import type { Arbitrary, RunDetails } from 'fast-check'
import {
  type Agent,
  ConfigurationError,
  type Prices,
  type RunResult,
  type RuntimeEvent,
} from '@tallystick/core'
import {
  definedAgent,
  formatErrorSentence,
  omitUndefined,
  option,
  requireOptions,
  defaultHost,
} from '@tallystick/core/internal'
import type { FinishReason, JsonObject } from '@tallystick/core/vocabulary'
import type { ScriptedReply } from '../doubles/model.ts'
import { createFailure, type Finding, toLedgerPage } from '../report/failure.ts'
import { seededRandom } from '../seeded-random.ts'
import { decideAs } from './decide-as.ts'
import {
  type EffectCount,
  formatReply,
  formatTrouble,
  type Play,
  playAgent,
  type PlayedAgent,
} from './play-agent.ts'
import type * as randomPlays from './random-play.ts'
import type { RandomPlay } from './random-play.ts'
import { listTools } from './tested-agent.ts'
import { listCalls, type StartedCall } from '../matchers/started-calls.ts'

const { anyFunction, anyText, fields, maybe, numberFrom, recordOf, valueThat } = option

/** What a model asks of a tool: inputs as examples, or as an arbitrary of fast-check; and what counts the tool's effects. */
export interface ToolInputs {
  /** Default: inputs that its schema allows. */
  readonly inputs?: readonly JsonObject[] | Arbitrary<JsonObject> | undefined
  /** Counts the effects of the tool so far, in the world outside: rows, mails, charges. */
  readonly effects?: EffectCount | undefined
}

/** A run that a law of your own judges. */
export interface JudgedRun {
  readonly result: RunResult
  readonly events: readonly RuntimeEvent[]
  /** The calls of the run and of its child runs that were started, each with its result as one text. */
  readonly calls: readonly StartedCall[]
}

/** Says of a run whether it keeps the law: false, or a text that says what is wrong, if it does not. A throw is a breach, too. */
export type OwnLaw = (
  run: JudgedRun,
) => boolean | string | undefined | void | Promise<boolean | string | undefined | void>

/** How an agent is tested. */
export interface PropertyOptions {
  /** By the name of a tool. Tools that are not named are called with inputs that their schema allows. */
  readonly tools?: Readonly<Record<string, ToolInputs>> | undefined
  /** Laws of your own, each by its words: `{ 'nobody gets more than 100 euros': ({ calls }) => … }`. */
  readonly laws?: Readonly<Record<string, OwnLaw>> | undefined
  /** What the user says. */
  readonly input?: string | undefined
  /** What the application passes to the run. */
  readonly context?: unknown
  readonly prices?: Prices | undefined
  /**
   * Returns what the agent's own code waits for outside of it, other than in its tools: a policy that asks a server, say. Meanwhile
   * time stands still; see `simulate`.
   */
  readonly outside?: (() => Promise<unknown> | undefined) | undefined
  /** How many runs are played. Default: 100. */
  readonly runs?: number | undefined
  /** The seed and the path that a failure names, to play it again. */
  readonly seed?: number | undefined
  readonly path?: string | undefined
  /** How long a tool may take before it counts as hung, in real milliseconds. Default: 1000. */
  readonly patienceMs?: number | undefined
  /** How long a smaller example is looked for, in real milliseconds. Default: 2000, within the time that runners give a test. */
  readonly shrinkMs?: number | undefined
  /** After so many model calls a run counts as one that never stops. Default: several times its `maxTurns`, or 100. */
  readonly maxModelCalls?: number | undefined
}

const propertyOptions = fields<PropertyOptions>(
  {
    tools: maybe(
      recordOf(
        fields<ToolInputs>(
          {
            inputs: maybe(
              valueThat('a list of inputs with one at least, or an arbitrary of fast-check', (value) =>
                Array.isArray(value) ? value.length > 0 : typeof Object(value).generate === 'function',
              ),
            ),
            effects: maybe(anyFunction),
          },
          { input: 'inputs', oracle: 'effects' },
        ),
      ),
    ),
    laws: maybe(recordOf(anyFunction)),
    input: maybe(anyText),
    context: maybe(() => undefined),
    prices: maybe(() => undefined),
    outside: maybe(anyFunction),
    runs: maybe(numberFrom(1, { whole: true })),
    seed: maybe(valueThat('a whole number', Number.isSafeInteger)),
    path: maybe(anyText),
    patienceMs: maybe(numberFrom(1)),
    shrinkMs: maybe(numberFrom(0)),
    maxModelCalls: maybe(numberFrom(1, { whole: true })),
  },
  { numRuns: 'runs', oracles: 'tools', timeoutMs: 'patienceMs', properties: 'laws' },
)

/** What was played, when nothing was found. */
export interface PropertyReport {
  readonly seed: number
  readonly runs: number
  /** Processes that died. */
  readonly crashes: number
  /** How many runs ended for each reason. */
  readonly endings: Readonly<Record<string, number>>
  /** How many calls of each tool were started. */
  readonly calls: Readonly<Record<string, number>>
}

/**
 * Plays an agent with its real tools under generated models, people and trouble: models that call its tools, write nonsense, are
 * cut and fail; people who approve, deny, change, steer and cancel; processes that die, and machines that lose their power. Checks
 * the laws, the promises of the tools, their effects, and laws of your own. Needs fast-check: `npm install --save-dev fast-check`.
 *
 * `agent` may be a function, which makes a fresh agent for each run. Rejects with the law that is broken, the seed, the smallest
 * example and the ledger up to the event at fault.
 *
 * ```ts
 * await propertyTest(agent, { tools: { refund: { effects: () => refunds.length } } })
 * ```
 */
export async function propertyTest<Output, Context>(
  agent: Agent<Output, Context> | (() => Agent<Output, Context>),
  options: PropertyOptions = {},
): Promise<PropertyReport> {
  if (typeof agent !== 'function') requireOptions('propertyTest', definedAgent, agent, 'the agent')
  requireOptions('propertyTest', propertyOptions, options)
  const makeAgent = (): Agent<unknown> => (typeof agent === 'function' ? agent() : agent) as Agent<unknown>
  const first = makeAgent()
  requireOptions('propertyTest', definedAgent, first, 'what the function of the agent returned')
  const { tools = {}, runs: numRuns = 100, seed, path, shrinkMs = 2_000 } = options
  requireTools(first, Object.keys(tools))
  const { check, randomPlay } = await loadFastCheck()
  const seen = { crashes: 0, endings: new Map<string, number>(), calls: new Map<string, number>() }
  let failedAt: number | undefined
  const isLate = (): boolean => failedAt !== undefined && defaultHost.clock.now() - failedAt > shrinkMs
  const details: RunDetails<[RandomPlay]> = await check(
    randomPlay(listTools(first), tools),
    async (random) => {
      // It counts as kept, so that shrinking comes to its end.
      if (isLate()) return
      const played = await playRandom(makeAgent(), random, options)
      const finding = played.findings[0] ?? (await judgeOwn(played, options))
      if (finding === undefined) return count(seen, played)
      failedAt ??= defaultHost.clock.now()
      throw new Found(finding)
    },
    { numRuns, ...omitUndefined({ seed, path }) },
  )
  if (!details.failed) {
    const { endings, calls } = seen
    const report = { seed: details.seed, runs: details.numRuns, crashes: seen.crashes }
    return { ...report, endings: Object.fromEntries(endings), calls: Object.fromEntries(calls) }
  }
  const { errorInstance: error, counterexample } = details
  // A finding is the law that is broken; anything else that was thrown kept the run from being played.
  const finding: Finding =
    error instanceof Found
      ? error.finding
      : { law: 'a run of an agent can be played', subject: 'agent', what: formatErrorSentence(error) }
  throw createFailure(finding, {
    again: `seed: ${details.seed}, path: '${details.counterexamplePath ?? ''}' (options of propertyTest)`,
    example: counterexample === null ? undefined : formatPlay(counterexample[0]),
    ...(!(error instanceof Found) && { cause: error }),
  })
}

/** Carries a finding through fast-check. */
class Found extends Error {
  readonly finding: Finding
  constructor(finding: Finding) {
    super(finding.what)
    this.finding = finding
  }
}

async function loadFastCheck(): Promise<typeof randomPlays> {
  try {
    return await import('./random-play.ts')
  } catch (error) {
    throw new ConfigurationError(
      'propertyTest needs the package fast-check, which is not installed or could not be loaded. Add it: npm install --save-dev fast-check.',
      { cause: error },
    )
  }
}

/** An effect of a tool that the agent does not have would never be counted. */
function requireTools(agent: Agent<unknown>, named: readonly string[]): void {
  const names = listTools(agent).map(({ name }) => name)
  const unknown = named.find((name) => !names.includes(name))
  if (unknown === undefined || agent.toolsInTurn) return
  throw new ConfigurationError(
    `propertyTest: tools names ${unknown}, and the agent ${agent.name} has no such tool. Its tools: ${names.join(', ') || 'none'}.`,
  )
}

function playRandom(
  agent: Agent<unknown>,
  random: RandomPlay,
  options: PropertyOptions,
): Promise<PlayedAgent> {
  const { tools = {}, context, prices, patienceMs = 1_000, maxModelCalls = boundCalls(agent) } = options
  const { script, isEndless, people, crashes, drainAtSeq, randomness } = random
  const effects = Object.entries(tools).flatMap(([name, tool]) =>
    tool.effects ? [[name, tool.effects] as const] : [],
  )
  const price = { inputUsd: 3, outputUsd: 15, source: 'test' }
  const models = [agent.model, ...agent.fallbacks]
  return playAgent({
    agent,
    patienceMs,
    maxModelCalls,
    effects: new Map(effects),
    trouble: {
      ...toTrouble(random),
      decide: decideAs(people.decisions, ({ input }) => input),
      random: seededRandom(randomness),
      prices: prices ?? Object.fromEntries(models.map(({ modelId }) => [modelId, price])),
      ...omitUndefined({ input: options.input, outside: options.outside, context, drainAtSeq }),
      crashes,
    },
    reply: ({ toolChoice }, place) => chooseReply(script, isEndless, place, toolChoice.type === 'none'),
  })
}

/** More model calls than a run of the agent makes that its limits end, retries and child runs included. */
function boundCalls({ limits: { maxTurns = Infinity } }: Agent<unknown>): number {
  return maxTurns > 500 ? 100 : Math.max(100, 5 * maxTurns)
}

function toTrouble({ people, crashes, drainAtSeq }: RandomPlay): Play['trouble'] {
  const { cancelAtSeq, inputs } = people
  return { crashes, inputs, ...omitUndefined({ cancelAtSeq, drainAtSeq }) }
}

/** The reply of that place. A model without end begins its script anew, with another input where it makes a call. */
function chooseReply(
  script: readonly ScriptedReply[],
  isEndless: boolean,
  place: number,
  mayNotCall: boolean,
): ScriptedReply {
  const asked = isEndless && script.length > 0 ? script[place % script.length] : script[place]
  const { toolCalls, ...rest } = asked ?? { text: 'The end.', usage: { inputTokens: 300, outputTokens: 50 } }
  return mayNotCall || toolCalls === undefined ? rest : { ...rest, toolCalls }
}

async function judgeOwn(played: PlayedAgent, { laws = {} }: PropertyOptions): Promise<Finding | undefined> {
  const { simulated, runs } = played
  if (simulated === undefined) return undefined
  const { result, events } = simulated
  const judged: JudgedRun = { result, events, calls: runs.flatMap(listCalls) }
  for (const [law, keeps] of Object.entries(laws)) {
    const what = await findBreach(keeps, judged)
    if (what === undefined) continue
    return { law, subject: 'agent', what, page: toLedgerPage(events, events.at(-1), what) }
  }
  return undefined
}

async function findBreach(keeps: OwnLaw, run: JudgedRun): Promise<string | undefined> {
  try {
    const answer = await keeps(run)
    if (answer === false) return 'the law says that this run breaks it'
    return typeof answer === 'string' ? answer : undefined
  } catch (error) {
    return formatErrorSentence(error)
  }
}

function count(
  seen: { crashes: number; readonly endings: Map<string, number>; readonly calls: Map<string, number> },
  { simulated, runs }: PlayedAgent,
): void {
  seen.crashes += (simulated?.processes ?? 1) - 1
  const { reason } = { reason: undefined, ...simulated?.result } as { readonly reason?: FinishReason }
  add(seen.endings, reason ?? 'suspended')
  for (const { name } of runs.flatMap(listCalls)) add(seen.calls, name)
}

function add(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

function formatPlay(random: RandomPlay): readonly string[] {
  const { script, isEndless, people } = random
  const decisions = people.decisions.map((decision, index) => `${index + 1}: ${decision}`)
  return [
    ...script.map(formatReply),
    isEndless && script.length > 0 ? 'and begins anew, without end' : 'the model says that it is done',
    ...(decisions.length > 0 ? [`approvals are decided as ${decisions.join(', ')}`] : []),
    ...formatTrouble(toTrouble(random)),
  ]
}
