import { ConfigurationError, TallystickError } from '../../values/errors.ts'
import type { RecordedRun } from './runtime-parts.ts'
import { answerOf, anyText } from '../../values/option.ts'
import { type AgentDefinition, withInstructions } from '../../events/agent-definition.ts'
import type { Rules, TurnChange, TurnRequest } from '../../machine/rules.ts'
import type { RunState } from '../../machine/state.ts'
import { omitUndefined } from '../../values/json.ts'
import type { Agent, PrepareTurn } from '../agent/agent.ts'
import { requireSendable } from '../agent/turn-change-check.ts'
import { preparedInTurn } from '../agent/prepared-in-turn.ts'

/**
 * What the application passes to a run: the signed-in user, a database handle. It is never recorded. `Context` is the
 * type that the agent needs; if it is not `unknown`, the context is required.
 */
export type ContextOption<Context> = undefined extends Context
  ? { readonly context?: Context | undefined }
  : { readonly context: Context }

/** Returns the definition of an agent in a run with this context, with the run's instructions. */
export function definitionIn(agent: Agent<unknown>, context: unknown): AgentDefinition {
  const { name, instructions, definition } = agent
  if (typeof instructions === 'string') return definition
  const text = answerOf(`instructions of the agent ${name}`, () => instructions(context), anyText)
  return withInstructions(definition, text)
}

/** Returns the definition of an agent's code now, with the instructions that the run has recorded. */
export function definitionNow(agent: Agent<unknown>, recorded: AgentDefinition): AgentDefinition {
  const { instructions, definition } = agent
  return typeof instructions === 'string' ? definition : withInstructions(definition, recorded.instructions)
}

/** A turn that an agent prepares. */
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

/** The rules of an agent in a run with this context. */
export function rulesIn(agent: Agent<unknown>, context: unknown, preparing: Preparing): Rules {
  const { rules, handoffs } = agent
  const { stopWhen, handOff, prepareTurn: own, ...others } = rules
  const prepareTurn = preparedInTurn(instructionsInTurn(agent), own)
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
    return { ...taking, definition: definitionIn({ ...next, definition: taking.definition }, context) }
  }
}

/** Instructions that name the state are made for each turn. */
function instructionsInTurn({ name, instructions }: Agent<unknown>): PrepareTurn | undefined {
  if (typeof instructions === 'string' || instructions.length < 2) return undefined
  return ({ request, ...state }, context) => {
    const subject = `instructions of the agent ${name} for turn ${state.turn + 1}`
    const text = answerOf(subject, () => instructions(context, state), anyText)
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
 * Stands for the context of a run that is made anew each time a process begins to drive it, from what is on record of the
 * run: so that whoever decides about it, or resumes it, lends it nothing of theirs. Pass it as `context`.
 */
export class ContextOfRecord {
  readonly #make: (run: RecordedRun) => unknown

  constructor(make: (run: RecordedRun) => unknown) {
    this.#make = make
  }

  /** Makes the context. Rejects with a `TallystickError` of the code `context_unavailable` where it cannot be had. */
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

/** What is on record of a run that its context may be made of. */
export function recordedRun({
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
