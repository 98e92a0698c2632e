import type { Agent, PolicyVerdict, RunState, RuntimeEvent, Tool, ToolInputGuardrail } from '@tallystick/core'
import {
  bindRules,
  type CollectedCall,
  findCause,
  updateDefinition,
  readShownMessages,
  omitUndefined,
  option,
  type PreparedCall,
  type Preparing,
  type RepairedInput,
  type Rules,
  type TurnChange,
  unpreparedClosing,
} from '@tallystick/core/internal'
import {
  type AgentDefinition,
  type CallVerdict,
  toCanonicalJson,
  type EventOf,
  type JsonObject,
  type ToolCallId,
  type ToolDefinition,
} from '@tallystick/core/vocabulary'
import { EMPTY } from 'rxjs'

type Trip = EventOf<'guardrail_tripped'>

/** The position of a replay in the record. */
interface Place {
  readonly recorded: readonly RuntimeEvent[]
  readonly from: number
}

/** The check of a reply's calls that the record goes on with: findings of guardrails, then the plan of each call. */
export class RecordedCheck {
  readonly #place: Place
  readonly #trips: readonly Trip[]
  readonly #calls: ReadonlyMap<string, CollectedCall>

  constructor(place: Place) {
    const { recorded, from } = place
    const trips: Trip[] = []
    let next = recorded[from]
    for (let index = from; next?.type === 'guardrail_tripped'; next = recorded[++index]) trips.push(next)
    const calls = next?.type === 'tool_requests_collected' ? next.calls : []
    this.#place = place
    this.#trips = trips
    this.#calls = new Map(calls.map((call) => [call.toolCallId, call]))
  }

  /** Guardrails that repeat the recorded verdict on each call: a replay runs no guardrail again. */
  get guardrails(): readonly ToolInputGuardrail[] {
    return this.#trips.map((trip) => ({
      name: trip.guardrail,
      on: 'tool_input',
      check: ({ toolCallId }) =>
        trip.toolCallId === toolCallId ? toVerdict(trip, this.#calls.get(toolCallId)?.input) : 'pass',
    }))
  }

  /** Which results on record of another run answered the calls of a fork then. */
  answers(calls: readonly { readonly toolCallId: ToolCallId }[]): readonly (ToolCallId | undefined)[] {
    return calls.map(({ toolCallId }) => this.#calls.get(toolCallId)?.recorded)
  }

  /**
   * The agent's tools and policy in a replay: their code, or what they said of each call then. Guardrails look only at what
   * a tool lets run, so a refused call in which they found something passes its tool's first check.
   */
  checks(
    { tools, approval }: Agent<unknown>,
    { isMissing }: ReplayContext,
  ): { readonly tools: readonly Tool[]; readonly approval?: NonNullable<Agent<unknown>['approval']> } {
    const offered = [...tools, ...this.#sourcedTools()]
    if (!isMissing) return { tools: offered, ...omitUndefined({ approval }) }
    const passed = new Set<string>()
    return {
      tools: offered.map((tool) => ({
        ...tool,
        check: (input, { toolCallId }): CallVerdict => {
          if (this.#isUnrepaired(input, toolCallId)) return unrepaired
          const verdict = this.#verdict(toolCallId)
          const hasTripped = this.#trips.some((trip) => trip.toolCallId === toolCallId)
          if (passed.has(toolCallId) || !hasTripped || verdict.kind !== 'refuse') return verdict
          passed.add(toolCallId)
          return { kind: 'run' }
        },
        repair: ({ toolCallId }) => this.#repair(toolCallId),
      })),
      approval: ({ toolCallId }): PolicyVerdict => {
        const verdict = this.#verdict(toolCallId)
        if (verdict.kind === 'ask') {
          const { reason, ...more } = verdict
          return reason === undefined
            ? 'ask'
            : { ask: reason, ...omitUndefined({ approvers: more.approvers }) }
        }
        if (verdict.kind === 'refuse') return { deny: verdict.text }
        return verdict.reason === undefined ? 'run' : { run: verdict.reason }
      },
    }
  }

  /** The tools of a source that the reply was offered, which say of each call what is on record. */
  #sourcedTools(): readonly Tool[] {
    const calls = [...this.#calls.values()]
    return readSourcedAt(this.#place.recorded, this.#place.from).flatMap((definition) => {
      const known = calls.find(({ name, effect }) => name === definition.name && effect !== undefined)
      if (known?.effect === undefined || known.recovery === undefined) return []
      return [
        {
          ...definition,
          effect: known.effect,
          recovery: known.recovery,
          check: (input, { toolCallId }): CallVerdict =>
            this.#isUnrepaired(input, toolCallId) ? unrepaired : this.#verdict(toolCallId),
          repair: ({ toolCallId }) => this.#repair(toolCallId),
          run: () => EMPTY,
        } satisfies Tool,
      ]
    })
  }

  /** The verdict on a call, from its plan. */
  #verdict(toolCallId: string): CallVerdict {
    const { refusal, plan, reason, approvers } = this.#calls.get(toolCallId) ?? {}
    if (refusal) return { kind: 'refuse', ...refusal } as CallVerdict
    return plan === 'ask'
      ? { kind: 'ask', ...omitUndefined({ reason, approvers }) }
      : { kind: 'run', ...omitUndefined({ reason }) }
  }

  /** The input of a call after its tool repaired it; `undefined` if it did not. */
  #repair(toolCallId: string): RepairedInput | undefined {
    const { input = {}, repairs } = this.#calls.get(toolCallId) ?? {}
    return repairs && { input, repairs }
  }

  /** Returns whether the input is the requested one, before the tool repaired it. */
  #isUnrepaired(input: JsonObject, toolCallId: string): boolean {
    const repaired = this.#repair(toolCallId)
    return repaired !== undefined && toCanonicalJson(input) !== toCanonicalJson(repaired.input)
  }
}

/** The verdict on an input that has to be repaired first. */
const unrepaired: CallVerdict = { kind: 'refuse', outcome: 'invalid_input', text: '' }

function toVerdict(
  { action, detail = '' }: Trip,
  input: JsonObject | undefined,
): Awaited<ReturnType<ToolInputGuardrail['check']>> {
  switch (action) {
    case 'block':
      return { block: detail }
    case 'record':
      return { record: detail }
    case 'replace':
      return { replace: input ?? {}, ...(detail !== '' && { why: detail }) }
  }
}

const { isAsync, isThenable } = option

/** The application's context of a run, which no ledger holds. */
export interface ReplayContext {
  readonly context: unknown
  /** The run had one and the replay has none: answers of code that used it are taken from the record. */
  readonly isMissing: boolean
}

/** The agent's rules in a replay: its code, or what its code said then. */
export function createReplayRules(
  agent: Agent<unknown>,
  { context, isMissing }: ReplayContext,
  place: Place,
  fields: DefinitionFields,
): Rules {
  const { handOff } = agent.rules
  const rules: Rules = {
    ...bindRules(agent, context, preparedThen(place)),
    // The words of a handoff are on record; the instructions of the next agent are not built again.
    ...(handOff && {
      handOff(tool, messages) {
        const taking = handOff(tool, messages)
        if (taking === undefined) return undefined
        const next = agent.handoffs.find((target) => target.tool.name === tool)?.agent
        const then = place.recorded
          .slice(place.from)
          .find((event) => event.type === 'agent_handed_off')?.definition
        const { definition } = taking
        const now = next && then ? updateDefinition({ ...next, definition }, then) : definition
        return { ...taking, definition: fields(now, then) }
      },
    }),
  }
  // Where the tools of a source came from may not be there any more.
  const isSourced = rules.sourcedTools !== undefined || agent.toolsInTurn !== undefined
  const sourced = isSourced && { sourcedTools: () => listSourcedTools(place) }
  if (!isMissing) return { ...rules, ...sourced }
  const { stopWhen, prepareTurn } = rules
  return {
    ...rules,
    ...sourced,
    ...(stopWhen && { stopWhen: () => hasStopped(place) }),
    ...(prepareTurn && { prepareTurn: (state) => readPreparation(place, state) }),
  }
}

/** Returns the recorded answer of `stopWhen`: true if the run ends as `stopped` here. */
function hasStopped(place: Place): boolean {
  const next = findNextStep(place)
  return next?.type === 'run_finished' && next.reason === 'stopped'
}

/** Returns the event that says what the run did next: its end, past what it closes before that. */
function findNextStep({ recorded, from }: Place): RuntimeEvent | undefined {
  const end = recorded
    .slice(from)
    .find((event) => !closing.has(event.type) || findCause(event) !== 'controller')
  return end?.type === 'run_finished' ? end : recorded[from]
}

/** What the controller records in front of the end of a run. */
const closing: ReadonlySet<string> = new Set(['history_edited', 'input_settled', 'background_ended'])

/**
 * Returns the recorded answer of `prepareTurn`: from the next model call, or from the limit that prevented it.
 */
function toTurnChange({ recorded, from }: Place, { history }: RunState): TurnChange | undefined {
  const next = findPrepared(recorded, from)
  if (next === undefined) return undefined
  const { model, toolChoice, change = {} } = next
  const { sourced: _recorded, shown, ...own } = change
  const messages = shown && readShownMessages(history, { shown })
  // The finalizing call offers no tools, whatever the agent answered.
  const isFinalizing = 'finalizing' in next && next.finalizing
  return { ...own, ...omitUndefined({ messages, model, toolChoice: isFinalizing ? undefined : toolChoice }) }
}

/** A `prepareTurn` that answers at once is asked again. What one answered later is taken from the record. */
function preparedThen(place: Place): Preparing {
  return ({ agent, state }, prepare) => {
    // It may ask the world.
    const answer = isAsync(agent.rules.prepareTurn) ? Promise.resolve(undefined) : prepare()
    if (!isThenable(answer)) return answer
    answer.then(undefined, () => {})
    return readPreparation(place, state)
  }
}

/** Returns the recorded answer of `prepareTurn`: `pending` where something else came next, since it was waited for. */
function readPreparation(place: Place, state: RunState): TurnChange | undefined | 'pending' {
  const next = findNextStep(place)
  // An answer that changes nothing is not on record, and only the time of a run is up without one.
  if (next?.type === 'limit_reached' && next.prepared === undefined)
    return next.limit === 'maxDurationMs' ? 'pending' : undefined
  return wasAnswered(next) ? toTurnChange(place, state) : 'pending'
}

/** Returns whether what came next followed from an answer of `prepareTurn`: also the end that says that no call could be paid. */
function wasAnswered(next: RuntimeEvent | undefined): boolean {
  if (next?.type === 'run_finished') return next.detail !== unpreparedClosing
  return next?.type === 'model_call_started' || next?.type === 'limit_reached'
}

/** The tools of a source as the next model call was offered them. */
function listSourcedTools({ recorded, from }: Place): readonly ToolDefinition[] {
  const next = findPrepared(recorded, from)
  if (next?.change?.sourced) return next.change.sourced
  const place = recorded.findIndex((event, index) => index >= from && event.type === 'model_call_started')
  return readSourcedAt(recorded, place < 0 ? recorded.length : place + 1)
}

/**
 * The next call as the agent's code had prepared it: one that a limit prevented, or one that was made. At the end of a run, whose
 * closing call was not made either, the one that met the limit.
 */
function findPrepared(
  recorded: readonly RuntimeEvent[],
  from: number,
): PreparedCall | EventOf<'model_call_started'> | undefined {
  for (const event of recorded.slice(from)) {
    if (event.type === 'limit_reached' && event.prepared) return event.prepared
    if (event.type === 'model_call_started') return event
  }
  const last = recorded.slice(0, from).findLast((event) => event.type === 'limit_reached')
  return last?.prepared
}

/** The tools of a source after so many events: those that the last model call records that changed them. */
function readSourcedAt(recorded: readonly RuntimeEvent[], events: number): readonly ToolDefinition[] {
  for (let index = events - 1; index >= 0; index--) {
    const event = recorded[index]
    if (event?.type === 'model_call_started' && event.change?.sourced) return event.change.sourced
  }
  return []
}

/** Chooses the definition of a replay, from that of today's code and the recorded one. */
export type DefinitionFields = (
  now: AgentDefinition,
  recorded: AgentDefinition | undefined,
) => AgentDefinition

/** Today's definition at recorded prices: a cost is never computed again. */
export const pickCurrentFields: DefinitionFields = (now, recorded) => {
  const { price, fallbacks = [], summarizer } = recorded ?? {}
  return {
    ...now,
    ...omitUndefined({ price }),
    ...(now.fallbacks && {
      fallbacks: now.fallbacks.map((fallback, index) => ({
        ...fallback,
        ...omitUndefined({ price: fallbacks[index]?.price }),
      })),
    }),
    ...(now.summarizer && {
      summarizer: { ...now.summarizer, ...omitUndefined({ price: summarizer?.price }) },
    }),
  }
}

/** The recorded definition, whatever the agent's code says now. */
export const pickRecordedFields: DefinitionFields = (now, recorded) => recorded ?? now
