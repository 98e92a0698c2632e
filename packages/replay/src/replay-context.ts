import type { Agent, PolicyVerdict, RunState, RuntimeEvent, Tool, ToolInputGuardrail } from '@tallystick/core'
import {
  bindRules,
  definitionNow,
  messagesShown,
  omitUndefined,
  option,
  type Preparing,
  type RepairedInput,
  type Rules,
  type TurnChange,
  unpreparedClosing,
} from '@tallystick/core/internal'
import {
  type AgentDefinition,
  type CallVerdict,
  canonicalJson,
  type EventOf,
  type JsonObject,
  type ToolCallId,
  type ToolDefinition,
} from '@tallystick/core/vocabulary'
import { EMPTY } from 'rxjs'

type Trip = EventOf<'guardrail_tripped'>

/** Returns guardrails that repeat the recorded verdict on each call: a replay runs no guardrail again. */
export function recordedCallGuardrails(
  recorded: readonly RuntimeEvent[],
  from: number,
): readonly ToolInputGuardrail[] {
  const { trips, collected } = checkedAt(recorded, from)
  const inputs = new Map(collected?.calls.map(({ toolCallId, input }) => [toolCallId, input]))
  return trips.map((trip): ToolInputGuardrail => ({
    name: trip.guardrail,
    on: 'tool_input',
    check: ({ toolCallId }) => {
      if (trip.toolCallId !== toolCallId) return 'pass'
      return toVerdict(trip, inputs.get(toolCallId))
    },
  }))
}

/** Which results on record of another run answered the calls of a fork then. */
export function recordedAnswers(
  recorded: readonly RuntimeEvent[],
  from: number,
): (calls: readonly { readonly toolCallId: ToolCallId }[]) => readonly (ToolCallId | undefined)[] {
  const { collected } = checkedAt(recorded, from)
  const answers = new Map(collected?.calls.map((call) => [call.toolCallId, call.recorded]))
  return (calls) => calls.map(({ toolCallId }) => answers.get(toolCallId))
}

/** The recorded check of a reply's calls: findings of guardrails, then the plan of each call. */
function checkedAt(
  recorded: readonly RuntimeEvent[],
  from: number,
): { readonly trips: readonly Trip[]; readonly collected?: EventOf<'tool_requests_collected'> } {
  const trips: Trip[] = []
  for (let index = from; index < recorded.length; index++) {
    const event = recorded[index] as RuntimeEvent
    if (event.type === 'tool_requests_collected') return { trips, collected: event }
    if (event.type !== 'guardrail_tripped') break
    trips.push(event)
  }
  return { trips }
}

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

/** The position of a replay in the record. */
interface Place {
  readonly recorded: readonly RuntimeEvent[]
  readonly from: number
}

/** The application's context of a run, which no ledger holds. */
export interface ReplayContext {
  readonly context: unknown
  /** The run had one and the replay has none: what code said with it is taken from the record. */
  readonly isMissing: boolean
}

/** The agent's rules in a replay: its code, or what its code said then. */
export function replayedRules(
  agent: Agent<unknown>,
  { context, isMissing }: ReplayContext,
  place: Place,
): Rules {
  // What the next agent says in a handoff is on record; its instructions are not made again.
  const rules = {
    ...bindRules(agent, context, preparedThen(place)),
    ...omitUndefined({ handOff: agent.rules.handOff }),
  }
  // Where the tools of a source came from may not be there any more.
  const isSourced = rules.sourcedTools !== undefined || agent.toolsInTurn !== undefined
  const sourced = isSourced && { sourcedTools: () => sourcedOf(place) }
  if (!isMissing) return { ...rules, ...sourced }
  const { stopWhen, prepareTurn } = rules
  return {
    ...rules,
    ...sourced,
    ...(stopWhen && { stopWhen: () => hasStopped(place) }),
    ...(prepareTurn && { prepareTurn: (state) => changeOf(place, state) }),
  }
}

/**
 * The agent's tools and policy in a replay: their code, or what they said of each call then. Guardrails look only at what
 * a tool lets run, so a call in which they found something passes its tool's first check.
 */
export function replayedChecks(
  { tools, approval }: Agent<unknown>,
  { isMissing }: ReplayContext,
  place: Place,
): { readonly tools: readonly Tool[]; readonly approval?: NonNullable<Agent<unknown>['approval']> } {
  if (!isMissing) return { tools: [...tools, ...offeredThen(place)], ...omitUndefined({ approval }) }
  const passed = new Set<string>()
  return {
    tools: [...tools, ...offeredThen(place)].map((tool) => ({
      ...tool,
      check: (input, { toolCallId }): CallVerdict => {
        if (isUnrepaired(input, toolCallId, place)) return unrepaired
        if (passed.has(toolCallId) || !hasTripped(toolCallId, place)) return verdictOf(toolCallId, place)
        passed.add(toolCallId)
        return { kind: 'run' }
      },
      repair: ({ toolCallId }) => repairOf(toolCallId, place),
    })),
    approval: ({ toolCallId }): PolicyVerdict => {
      const verdict = verdictOf(toolCallId, place)
      if (verdict.kind === 'ask') return verdict.reason === undefined ? 'ask' : { ask: verdict.reason }
      return verdict.kind === 'refuse' ? { deny: verdict.text } : 'run'
    },
  }
}

/**
 * What `stopWhen` answered. The decision itself records it: it ends the run as `stopped`, with an edit of the history and
 * receipts for input in front at most. Any other event in its place says that the answer was no.
 */
function hasStopped({ recorded, from }: Place): boolean {
  const next = recorded.slice(from).find(({ type }) => type !== 'history_edited' && type !== 'input_settled')
  return next?.type === 'run_finished' && next.reason === 'stopped'
}

/**
 * What `prepareTurn` answered, as the next model call records it. Where a limit is met before the call, no event says the
 * answer of then: that of the call after it is taken.
 */
function changeOf({ recorded, from }: Place, { history }: RunState): TurnChange | undefined {
  const next = recorded.slice(from).find((event) => event.type === 'model_call_started')
  if (next === undefined) return undefined
  const { model, toolChoice, finalizing, change = {} } = next
  const { sourced: _recorded, shown, ...own } = change
  const messages = shown && messagesShown(history, { shown })
  // That the finalizing call asks for no tool is no answer of the agent's.
  return { ...own, ...omitUndefined({ messages }), model, ...(!finalizing && { toolChoice }) }
}

/**
 * A `prepareTurn` that answers at once is asked again. What one answered later is taken from the record: where that says
 * something else than the turn's call, the answer was waited for.
 */
function preparedThen(place: Place): Preparing {
  return ({ agent, state }, prepare) => {
    // It may ask the world.
    const answer = isAsync(agent.rules.prepareTurn) ? Promise.resolve(undefined) : prepare()
    if (!isThenable(answer)) return answer
    answer.then(undefined, () => {})
    return wasAnswered(place.recorded[place.from]) ? changeOf(place, state) : 'pending'
  }
}

/** Returns whether what came next followed from an answer of `prepareTurn`: also the end that says that no call could be paid. */
function wasAnswered(next: RuntimeEvent | undefined): boolean {
  if (next?.type === 'run_finished') return next.detail !== unpreparedClosing
  return next?.type === 'model_call_started' || next?.type === 'limit_reached'
}

/** The tools of a source as the next model call was offered them. */
function sourcedOf({ recorded, from }: Place): readonly ToolDefinition[] {
  const next = recorded.findIndex((event, index) => index >= from && event.type === 'model_call_started')
  return sourcedAt(recorded, next < 0 ? recorded.length : next + 1)
}

/** The tools of a source after so many events: those that the last model call records that changed them. */
function sourcedAt(recorded: readonly RuntimeEvent[], events: number): readonly ToolDefinition[] {
  for (let index = events - 1; index >= 0; index--) {
    const event = recorded[index]
    if (event?.type === 'model_call_started' && event.change?.sourced) return event.change.sourced
  }
  return []
}

/** The tools of a source that the reply was offered, which say of each call what is on record. */
function offeredThen({ recorded, from }: Place): readonly Tool[] {
  const { collected } = checkedAt(recorded, from)
  return sourcedAt(recorded, from).flatMap((definition) => {
    const known = collected?.calls.find(
      ({ name, effect }) => name === definition.name && effect !== undefined,
    )
    if (known?.effect === undefined || known.recovery === undefined) return []
    return [
      {
        ...definition,
        effect: known.effect,
        recovery: known.recovery,
        check: (input, { toolCallId }): CallVerdict =>
          isUnrepaired(input, toolCallId, { recorded, from })
            ? unrepaired
            : verdictOf(toolCallId, { recorded, from }),
        repair: ({ toolCallId }) => repairOf(toolCallId, { recorded, from }),
        run: () => EMPTY,
      } satisfies Tool,
    ]
  })
}

/** The verdict on a call, from the plan that `tool_requests_collected` records. */
function verdictOf(toolCallId: string, { recorded, from }: Place): CallVerdict {
  const { collected } = checkedAt(recorded, from)
  const { refusal, plan, reason } = collected?.calls.find((call) => call.toolCallId === toolCallId) ?? {}
  if (refusal) return { kind: 'refuse', ...refusal } as CallVerdict
  return plan === 'ask' ? { kind: 'ask', ...omitUndefined({ reason }) } : { kind: 'run' }
}

/** The verdict on an input that has to be repaired first. */
const unrepaired: CallVerdict = { kind: 'refuse', outcome: 'invalid_input', text: '' }

/** Returns whether the input is the requested one, before the tool repaired it. */
function isUnrepaired(input: JsonObject, toolCallId: string, place: Place): boolean {
  const repaired = repairOf(toolCallId, place)
  return repaired !== undefined && canonicalJson(input) !== canonicalJson(repaired.input)
}

/** The recorded input of a call, after its tool checked it. */
function repairOf(toolCallId: string, { recorded, from }: Place): RepairedInput | undefined {
  const { collected } = checkedAt(recorded, from)
  const { input = {}, repairs } = collected?.calls.find((call) => call.toolCallId === toolCallId) ?? {}
  return repairs && { input, repairs }
}

/** Returns whether a guardrail found something in the input of a call. */
function hasTripped(toolCallId: string, { recorded, from }: Place): boolean {
  return checkedAt(recorded, from).trips.some((trip) => trip.toolCallId === toolCallId)
}

/** Chooses the definition of a replay, from that of today's code and the recorded one. */
export type DefinitionFields = (
  now: AgentDefinition,
  recorded: AgentDefinition | undefined,
) => AgentDefinition

/** Today's definition at recorded prices: a cost is never computed again. */
export const currentFields: DefinitionFields = (now, recorded) => {
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
export const recordedFields: DefinitionFields = (now, recorded) => recorded ?? now

/** The progress of a replay, and whose definitions apply. */
interface FieldsPosition {
  readonly fields: DefinitionFields
  readonly recorded: readonly RuntimeEvent[]
  readonly from: number
}

/** An agent's rules, by which another takes over in the words that the next handoff on record has. */
export function rulesAsRecorded(
  rules: Rules,
  { handoffs }: Agent<unknown>,
  { fields, recorded, from }: FieldsPosition,
): Rules {
  const { handOff } = rules
  if (handOff === undefined) return rules
  return {
    ...rules,
    handOff: (tool, messages) => {
      const taking = handOff(tool, messages)
      const handed = recorded.slice(from).find((event) => event.type === 'agent_handed_off')
      if (taking === undefined) return undefined
      const next = handoffs.find((target) => target.tool.name === tool)?.agent
      const then = handed?.definition
      const now =
        next && then ? definitionNow({ ...next, definition: taking.definition }, then) : taking.definition
      return { ...taking, definition: fields(now, then) }
    },
  }
}
