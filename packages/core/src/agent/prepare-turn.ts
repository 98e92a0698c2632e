import { type AgentDefinition, type RunLabels, withInstructions } from '../events/agent-definition.ts'
import { type Message, message as messageSchema } from '../events/content.ts'
import type { ParentRef } from '../events/event-parts.ts'
import { mergeSettings } from '../events/model-request.ts'
import { someSettings } from '../events/model-settings-check.ts'
import { computeHistoryDigest, readMessages, requireShown } from '../machine/history.ts'
import type { Rules, TurnChange, TurnRequest } from '../machine/rules.ts'
import type { RunState } from '../machine/state.ts'
import { computeDigest } from '../values/digest.ts'
import { ConfigurationError, TallystickError } from '../values/errors.ts'
import type { Cancel, Clock } from '../values/host.ts'
import type { RunId } from '../values/ids.ts'
import { omitUndefined } from '../values/json.ts'
import {
  requireAnswer,
  anyText,
  isAsync,
  isThenable,
  listOf,
  maybe,
  type Schema,
  requireOptions,
  valueThat,
} from '../values/option.ts'
import { formatError, formatErrorSentence } from '../values/text.ts'
import type { Agent, PrepareTurn, TurnToPrepare } from './agent.ts'
import type { RuntimeRules } from './registry.ts'

/** Two preparations of a turn, one after the other: the second sees the request that the first makes. */
export function joinPreparations(
  first: PrepareTurn | undefined,
  second: PrepareTurn | undefined,
): PrepareTurn | undefined {
  if (first === undefined || second === undefined) return first ?? second
  const both: PrepareTurn = (turn, context) => {
    const then = (change: TurnChange | undefined): ReturnType<PrepareTurn> => {
      const more = second({ ...turn, request: applyChange(turn.request, change) }, context)
      return isThenable(more) ? more.then((each) => joinChanges(change, each)) : joinChanges(change, more)
    }
    const change = first(turn, context)
    return isThenable(change) ? change.then(then) : then(change)
  }
  // That it waits is seen of it without a call, as of each of the two.
  return isAsync(first) || isAsync(second) ? async (turn, context) => await both(turn, context) : both
}

/** The preparation of a turn that only filters its messages. */
export function filterInput(filter: NonNullable<RuntimeRules['inputFilter']>): PrepareTurn {
  const toChange = (messages: readonly Message[], { request }: TurnToPrepare): TurnChange | undefined => {
    if (messages === request.messages) return undefined
    // Without an answer the model would be sent what the filter is there to leave out.
    requireOptions('inputFilter', listOfMessages(request.messages), messages, 'messages')
    requireShown(messages, 'inputFilter')
    return { messages }
  }
  const fail = (cause: unknown): never => {
    throw new ConfigurationError(`inputFilter failed: ${formatErrorSentence(cause)} No model was called.`, {
      cause,
    })
  }
  const prepare: PrepareTurn = (turn, context) => {
    let messages: ReturnType<typeof filter>
    try {
      messages = filter(turn.request.messages, context)
    } catch (error) {
      return fail(error)
    }
    return isThenable(messages)
      ? messages.then((each) => toChange(each, turn), fail)
      : toChange(messages, turn)
  }
  return isAsync(filter) ? async (turn, context) => await prepare(turn, context) : prepare
}

function applyChange(request: TurnRequest, change: TurnChange | undefined): TurnRequest {
  if (change == null) return request
  const { tools, modelSettings, ...others } = change
  const names = tools?.map((tool) => (typeof tool === 'string' ? tool : tool.name))
  return {
    ...request,
    ...omitUndefined(others),
    ...omitUndefined({ modelSettings: mergeSettings(request.modelSettings, modelSettings) }),
    tools: names ? request.tools.filter(({ name }) => names.includes(name)) : request.tools,
  }
}

function joinChanges(first: TurnChange | undefined, second: TurnChange | undefined): TurnChange | undefined {
  if (first == null || second == null) return second ?? first
  const modelSettings = mergeSettings(first.modelSettings, second.modelSettings)
  return { ...first, ...omitUndefined({ ...second }), ...omitUndefined({ modelSettings }) }
}

/** Refuses messages and settings of a prepared turn that no model could be sent. Messages of the history are known. */
function requireSendable(agent: string, { history }: RunState, change: TurnChange): void {
  const subject = `prepareTurn of the agent ${agent}`
  const { messages, modelSettings } = Object(change) as TurnChange
  const known = messages === undefined ? [] : readMessages(history)
  requireOptions(subject, maybe(listOfMessages(known)), messages, 'messages')
  requireOptions(subject, maybe(someSettings), modelSettings, 'modelSettings')
}

function listOfMessages(checked: readonly Message[]): Schema {
  const known = new Set<unknown>(checked)
  return listOf((value) => (known.has(value) ? undefined : aMessage(value)))
}

const aMessage = valueThat(
  'a message as the request has them: { role, parts } or, of a tool, { role, results }',
  (value) => messageSchema(value) === undefined,
)

/** How long an agent may prepare a turn where it does not say. */
const PREPARE_MS = 60_000

/** A turn whose preparation is waited for, or is there. */
interface AskedOnce {
  readonly key: string
  answer?: { readonly change: TurnChange | undefined } | { readonly error: ConfigurationError }
}

/**
 * Asks agents to prepare turns, and waits for those that answer later. If the user adds input before the answer, the turn is
 * prepared again: the earlier answer belongs to another request.
 */
export class TurnPreparation {
  readonly #clock: Clock
  readonly #wake: () => void
  #asked: AskedOnce | undefined
  #stopTimer: Cancel | undefined

  constructor(clock: Clock, wake: () => void) {
    this.#clock = clock
    this.#wake = wake
  }

  readonly prepare: Preparing = (turn, prepare) => {
    const key = toKey(turn)
    if (this.#asked?.key !== key) {
      this.stop()
      let answer: ReturnType<PrepareTurn>
      try {
        answer = prepare()
      } catch (error) {
        throw toTurnError(turn, error)
      }
      if (!isThenable(answer)) return answer
      this.#await(key, turn, answer)
    }
    const { answer } = this.#asked ?? {}
    if (answer === undefined) return 'pending'
    if ('error' in answer) throw answer.error
    return answer.change
  }

  /** Ignores an answer that comes from here on. */
  stop(): void {
    this.#stopTimer?.()
    this.#asked = undefined
  }

  #await(key: string, turn: AskedTurn, answer: PromiseLike<TurnChange | undefined>): void {
    const asked: AskedOnce = { key }
    this.#asked = asked
    const settle = (settled: NonNullable<AskedOnce['answer']>): void => {
      if (this.#asked !== asked || asked.answer) return
      asked.answer = settled
      this.#stopTimer?.()
      this.#wake()
    }
    const { prepareMs = PREPARE_MS } = turn.agent.timeouts
    this.#stopTimer = this.#clock.schedule(prepareMs, () =>
      settle({ error: createTurnError(turn, `did not answer within ${prepareMs} ms`) }),
    )
    answer.then(
      (change) => settle({ change }),
      (error: unknown) => settle({ error: toTurnError(turn, error) }),
    )
  }
}

/** The runtime's own checks say already what to change. */
function toTurnError(turn: AskedTurn, error: unknown): ConfigurationError {
  if (error instanceof ConfigurationError) return error
  return createTurnError(turn, `failed: ${formatError(error)}`, error)
}

function createTurnError({ agent }: AskedTurn, what: string, cause?: unknown): ConfigurationError {
  return new ConfigurationError(`prepareTurn of the agent ${agent.name} ${what}. No model was called.`, {
    cause,
  })
}

/** Identifies a request before its turn is prepared. */
function toKey({ agent, state, request }: AskedTurn): string {
  const { turn, history, definition } = state
  const { messages: _counted, ...rest } = request
  const place = {
    agent: agent.name,
    turn,
    definition: definition.digest,
    history: computeHistoryDigest(history),
  }
  return computeDigest({ ...place, request: rest })
}

/**
 * The part of a run that its application passes in: the signed-in user, a database handle. It is never recorded. `Context` is the
 * type that the agent needs; if it is not `unknown`, the context is required.
 */
export type ContextOption<Context> = undefined extends Context
  ? { readonly context?: Context | undefined }
  : { readonly context: Context }

/** Returns the definition of an agent in a run with this context, with the run's instructions. */
export function toDefinitionIn(agent: Agent<unknown>, context: unknown): AgentDefinition {
  const { name, instructions, definition } = agent
  if (typeof instructions === 'string') return definition
  const text = requireAnswer(`instructions of the agent ${name}`, () => instructions(context), anyText)
  return withInstructions(definition, text)
}

/** Returns the definition of an agent's code now, with the instructions that the run has recorded. */
export function updateDefinition(agent: Agent<unknown>, recorded: AgentDefinition): AgentDefinition {
  const { instructions, definition } = agent
  return typeof instructions === 'string' ? definition : withInstructions(definition, recorded.instructions)
}

export interface AskedTurn {
  readonly agent: Agent<unknown>
  readonly state: RunState
  readonly request: TurnRequest
}

/** Calls an agent's `prepareTurn`; what it answers later is `pending` until then. */
export type Preparing = (
  turn: AskedTurn,
  prepare: () => ReturnType<PrepareTurn>,
) => TurnChange | undefined | 'pending'

export function bindRules(agent: Agent<unknown>, context: unknown, preparing: Preparing): Rules {
  const { rules, handoffs } = agent
  const { stopWhen, handOff, prepareTurn: own, ...others } = rules
  const prepareTurn = joinPreparations(prepareInstructions(agent), own)
  // Those of most agents are the same in every run.
  if (stopWhen === undefined && prepareTurn === undefined && handoffs.length === 0) return rules as Rules
  return {
    ...others,
    ...omitUndefined({
      stopWhen: stopWhen && ((state: RunState) => stopWhen(state, context)),
      prepareTurn:
        prepareTurn &&
        ((state: RunState, request: TurnRequest) => {
          const answer = preparing({ agent, state, request }, () =>
            prepareTurn({ ...state, request }, context),
          )
          if (answer !== 'pending') requireSendable(agent.name, state, answer ?? {})
          return answer
        }),
      handOff: handOff && ((...call: Parameters<typeof handOff>) => handedOver(handOff, call)),
    }),
  }

  function handedOver(
    handOff: NonNullable<Rules['handOff']>,
    [tool, messages]: Parameters<NonNullable<Rules['handOff']>>,
  ): ReturnType<NonNullable<Rules['handOff']>> {
    const taking = handOff(tool, messages)
    const next = handoffs.find((target) => target.tool.name === tool)?.agent
    if (taking === undefined || next === undefined) return taking
    return { ...taking, definition: toDefinitionIn({ ...next, definition: taking.definition }, context) }
  }
}

/** Instructions that name the state are made for each turn. */
function prepareInstructions({ name, instructions }: Agent<unknown>): PrepareTurn | undefined {
  if (typeof instructions === 'string' || instructions.length < 2) return undefined
  return ({ request, ...state }, context) => {
    const subject = `instructions of the agent ${name} for turn ${state.turn + 1}`
    const text = requireAnswer(subject, () => instructions(context, state), anyText)
    return text === request.instructions ? undefined : { instructions: text }
  }
}

/** Refuses to continue without a context if the run was started with one: its code would find `undefined`. */
export function requireContext({ runId, withContext }: RunState, context: unknown): void {
  if (!withContext || context !== undefined) return
  throw new ConfigurationError(
    `Run ${runId} was started with a context of its application, which no ledger holds, and none was given to continue with. Give it again, as the option context of resume, fork or settle, or make it in contextOf of createRuntime.`,
  )
}

/**
 * Stands for the context of a run that is made again each time a process begins to drive it, from what is on record of the
 * run: so that whoever decides about it, or resumes it, lends it nothing of theirs. Pass it as `context`.
 */
export class ContextOfRecord {
  readonly #make: (run: RecordedRun) => unknown

  constructor(make: (run: RecordedRun) => unknown) {
    this.#make = make
  }

  /** Makes the context. Rejects with a `TallystickError` of the code `context_unavailable` if it cannot be had. */
  async contextFor(run: RecordedRun): Promise<unknown> {
    try {
      return await this.#make(run)
    } catch (cause) {
      throw new TallystickError(
        'context_unavailable',
        `The context of run ${run.runId} could not be made, so the run stays as it is on record. What was sent to it is kept in its inbox, and counts when a process continues the run.`,
        { cause },
      )
    }
  }
}

/** Picks the recorded facts of a run that its context may be made of. */
export function toRecordedRun({
  runId,
  agent,
  sessionId,
  subject,
  owner,
  labels,
  parent,
}: { readonly [Field in keyof RecordedRun]: RecordedRun[Field] | undefined } & Pick<
  RecordedRun,
  'runId' | 'agent'
>): RecordedRun {
  return { runId, agent, ...omitUndefined({ sessionId, subject, owner, labels, parent }) }
}

/** The recorded facts of a run, from which `contextOf` makes its context. */
export interface RecordedRun {
  readonly runId: RunId
  /** The active agent. */
  readonly agent: string
  readonly sessionId?: string
  /** The person or customer that the run is about. */
  readonly subject?: string
  /** Who started it. */
  readonly owner?: string
  readonly labels?: RunLabels
  readonly parent?: ParentRef
}
