import { ConfigurationError } from '../../values/errors.ts'
import type { Rules } from '../../machine/rules.ts'
import type { RunState } from '../../machine/state.ts'
import type { Model } from '../../models/model.ts'
import type { Tool } from '../../tools/tool.ts'
import { type AgentDefinition, definitionInRun } from '../../events/agent-definition.ts'
import { type ModelRef, sameModel } from '../../events/content.ts'
import { sentenceOfError } from '../../values/text.ts'
import { canonicalJson, type Json } from '../../values/json.ts'
import type { Agent } from '../agent/agent.ts'
import {
  ContextOfRecord,
  definitionNow,
  recordedRun,
  requireContext,
  rulesIn,
  type Preparing,
} from '../definition/run-context.ts'
import { sourcedDefinitions } from '../definition/sourced-tools.ts'
import type { Drive } from './drive.ts'

/** The agent of a run; throws a `ConfigurationError` where this runtime does not know it. */
export function drivingAgent(name: string, { runId, parts }: Drive): Agent<unknown> {
  const agent = parts.agents.find(name)
  if (agent) return agent
  throw new ConfigurationError(
    `Run ${runId} belongs to the agent ${name}, which this runtime does not know. Give it to createRuntime in agents.`,
  )
}

/** What prepares the turns of a run, made with the first that needs it. */
export interface TurnParts {
  readonly preparation: { readonly prepare: Preparing }
  /** Names the tools of the turn that comes. */
  readonly tools: { next(agent: Agent<unknown>, state: RunState): readonly Tool[] }
}

/** The rules of an agent of a run, with the run's context. */
export function drivingRules(agent: Agent<unknown>, { context }: Drive, parts: TurnParts): Rules {
  const rules = rulesIn(agent, context, (turn, prepare) => parts.preparation.prepare(turn, prepare))
  if (agent.toolsInTurn === undefined) return rules
  const offered = (state: RunState): Agent<unknown> => ({
    ...agent,
    toolSource: { tools: parts.tools.next(agent, state) },
  })
  return { ...rules, sourcedTools: (state) => sourcedDefinitions(offered(state), state) }
}

/**
 * What a run that is taken up is driven with: the context that was given, or one that is made of the record, each time
 * anew: by what was given in its place, or by the runtime, where the run was started with one.
 */
export async function withFoundContext(state: RunState, drive: Drive): Promise<Drive> {
  const { contextOf } = drive.parts
  if (drive.context instanceof ContextOfRecord) {
    return { ...drive, context: await drive.context.contextFor(recordedRun(state)) }
  }
  if (contextOf === undefined || !state.withContext || drive.context !== undefined) return drive
  return { ...drive, context: await madeContext(state, contextOf) }
}

async function madeContext(
  state: RunState,
  contextOf: NonNullable<Drive['parts']['contextOf']>,
): Promise<unknown> {
  try {
    return await contextOf(recordedRun(state))
  } catch (error) {
    throw new ConfigurationError(
      `The contextOf of this runtime made no context for run ${state.runId}: ${sentenceOfError(error)} Nothing was written; correct it and resume the run, or give the context to resume.`,
      { cause: error },
    )
  }
}

/** Refuses a run that this runtime cannot drive, or is not to drive. */
export function requireDrivable(state: RunState, drive: Drive): void {
  const { agent, definition } = state
  const own = ownDefinition(state, drive)
  requireContext(state, drive.context)
  if (state.givenModel) requireGivenModel(state.givenModel.model, drive)
  if (drive.parts.onDrift === 'continue' || own.digest === definition.digest) return
  throw new ConfigurationError(
    `Run ${drive.runId} was started with another definition of the agent ${agent}, and onDrift is refuse. What differs: ${driftOf(definition, own).join(', ')}. Resume it with the code that it was started with, or with onDrift: 'continue'.`,
  )
}

/** What the code of the active agent says now, in this run. */
export function ownDefinition({ agent, definition, givenModel }: RunState, drive: Drive): AgentDefinition {
  return definitionInRun(definitionNow(drivingAgent(agent, drive), definition), givenModel)
}

/** The model that a run is given: as this process was handed it with the run, or as its runtime knows it. */
export function givenModelOf(ref: ModelRef, { model, parts }: Drive): Model | undefined {
  return model && sameModel(model, ref) ? model : parts.models.find(ref)
}

function requireGivenModel(ref: ModelRef, drive: Drive): void {
  const { runId, model } = drive
  const name = `${ref.provider} ${ref.api} ${ref.modelId}`
  if (model && !sameModel(model, ref)) {
    throw new ConfigurationError(
      `Run ${runId} was started with the model ${name}, and ${model.provider} ${model.api} ${model.modelId} was given to continue with. Give the model of its start, or none.`,
    )
  }
  if (givenModelOf(ref, drive)) return
  throw new ConfigurationError(
    `Run ${runId} was started with the model ${name}, which this runtime does not know. Give it to createRuntime in models, or to resume as model.`,
  )
}

/** The parts of a definition that are not as they were recorded, by name; of the policy and its parts, each. */
function driftOf(recorded: AgentDefinition, own: AgentDefinition): readonly string[] {
  const { digest: _recorded, price: _then, policy: before, ...recordedBody } = recorded
  const { digest: _own, price: _now, policy: now, ...currentBody } = own
  return [
    ...changedFields(recordedBody, currentBody),
    ...changedFields(before ?? {}, now ?? {}).map((name) => `policy.${name}`),
  ]
}

function changedFields(before: object, now: object): readonly string[] {
  const [a, b] = [before, now] as [Readonly<Record<string, Json>>, Readonly<Record<string, Json>>]
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])]
  return names.filter((name) => canonicalJson(a[name] ?? null) !== canonicalJson(b[name] ?? null))
}
