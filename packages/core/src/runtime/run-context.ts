import type { Agent } from '../agent/agent.ts'
import type { RunHooks } from '../agent/hooks.ts'
import {
  ContextOfRecord,
  definitionNow,
  type Preparing,
  recordedRun,
  requireContext,
  bindRules,
  TurnPreparation,
} from '../agent/prepare-turn.ts'
import { sourcedDefinitions, ToolsOfTurn } from '../agent/source-tools.ts'
import { type AgentDefinition, definitionInRun } from '../events/agent-definition.ts'
import { type ModelRef, sameModel } from '../events/content.ts'
import type { Signal } from '../events/signals.ts'
import type { Rules } from '../machine/rules.ts'
import type { RunState } from '../machine/state.ts'
import type { Model } from '../models/model.ts'
import type { Tool } from '../tools/tool.ts'
import { ConfigurationError } from '../values/errors.ts'
import type { Clock, Host } from '../values/host.ts'
import type { RunId } from '../values/ids.ts'
import { canonicalJson, type Json } from '../values/json.ts'
import { sentenceOfError } from '../values/text.ts'
import type { ChildRuns } from './children.ts'
import { SentCommands } from './commands.ts'
import type { EffectOptions } from './effects.ts'
import type { Mailbox } from './mailbox.ts'
import type { RecordedResults } from './recorded-results.ts'
import { LiveEvents } from './run-streams.ts'
import type { Coordinators, RuntimeParts } from './runtime-parts.ts'

const noHooks: readonly RunHooks[] = []

/** What this process holds of one run: shared by its coordinator, its drive sessions and its command delivery. */
export class HeldRun {
  readonly runId: RunId
  readonly parts: RuntimeParts
  readonly runs: Coordinators
  /** Every event that this process reads or appends. */
  readonly live: LiveEvents = new LiveEvents()
  readonly sent: SentCommands
  /** What the application gives the run from here on. */
  context: unknown
  /** Whether the next drive takes it over also from a process that may live. */
  takesOver = false
  /** The model that the application gives it. */
  model: Model | undefined
  /** The hooks that the application gives it. */
  hooks: readonly RunHooks[] = noHooks

  constructor(runId: RunId, parts: RuntimeParts, runs: Coordinators) {
    this.runId = runId
    this.parts = parts
    this.runs = runs
    this.sent = new SentCommands(runId, parts.ledger, parts.host.clock)
  }

  /** What the run is driven with from here on: a loop keeps the context that it began with. */
  get drive(): Drive {
    const { runId, parts, runs, sent, live, context, model } = this
    const { hooks: defaults } = parts.defaults
    const hooks = this.hooks === noHooks ? defaults : [...defaults, ...this.hooks]
    return {
      runId,
      parts,
      children: runs.children,
      sent,
      live,
      context,
      model,
      hooks,
    }
  }
}

/** What a run is driven with. */
export interface Drive {
  readonly runId: RunId
  readonly parts: RuntimeParts
  readonly children: ChildRuns
  readonly sent: SentCommands
  /** Publishes every event once it is appended. */
  readonly live: LiveEvents
  /** What the application gave this run, or what makes it. */
  readonly context: unknown
  /** The model that the run is given, where this process was handed it. */
  readonly model: Model | undefined
  /** Those of the runtime and of the run. */
  readonly hooks: readonly RunHooks[]
}

/** The agent of a run; throws a `ConfigurationError` where this runtime does not know it. */
function drivingAgent(name: string, { runId, parts }: Drive): Agent<unknown> {
  const agent = parts.agents.find(name)
  if (agent) return agent
  throw new ConfigurationError(
    `Run ${runId} belongs to the agent ${name}, which this runtime does not know. Give it to createRuntime in agents.`,
  )
}

/** What prepares the turns of a run, made with the first that needs it. */
interface TurnParts {
  readonly preparation: { readonly prepare: Preparing }
  /** Names the tools of the turn that comes. */
  readonly tools: { next(agent: Agent<unknown>, state: RunState): readonly Tool[] }
}

/** The rules of an agent of a run, with the run's context. */
function drivingRules(agent: Agent<unknown>, { context }: Drive, parts: TurnParts): Rules {
  const rules = bindRules(agent, context, (turn, prepare) => parts.preparation.prepare(turn, prepare))
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
export async function restoreContext(state: RunState, drive: Drive): Promise<Drive> {
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
function givenModelOf(ref: ModelRef, { model, parts }: Drive): Model | undefined {
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

/** What belongs to the loop of a run. */
interface OfLoop {
  readonly clock: Clock
  readonly mailbox: Mailbox
  readonly results: RecordedResults | undefined
  readonly loop: { readonly state: RunState | undefined }
}

/** What the effects and the rules of a run may use while its loop drives it. What only some runs need is made when they do. */
export class LoopSite implements EffectOptions, TurnParts {
  readonly host: Host
  readonly results: RecordedResults | undefined
  readonly #drive: Drive
  readonly #mailbox: Mailbox
  readonly #loop: OfLoop['loop']
  #preparation: TurnPreparation | undefined
  #tools: ToolsOfTurn | undefined
  #rules: { readonly of: string; readonly rules: Rules } | undefined

  constructor(drive: Drive, { clock, mailbox, results, loop }: OfLoop) {
    this.host = { ...drive.parts.host, clock }
    this.results = results
    this.#drive = drive
    this.#mailbox = mailbox
    this.#loop = loop
  }

  get context(): unknown {
    return this.#drive.context
  }

  get children(): ChildRuns {
    return this.#drive.children
  }

  get preparation(): TurnPreparation {
    const { clock } = this.host
    this.#preparation ??= new TurnPreparation({ clock, wake: () => this.#mailbox.wake() })
    return this.#preparation
  }

  get tools(): ToolsOfTurn {
    this.#tools ??= new ToolsOfTurn(this.#drive.context)
    return this.#tools
  }

  findAgent(name: string): Agent<unknown> {
    const agent = drivingAgent(name, this.#drive)
    return agent.toolsInTurn === undefined ? agent : this.tools.within(agent, this.#loop.state)
  }

  findGivenModel(ref: ModelRef): Model | undefined {
    return givenModelOf(ref, this.#drive)
  }

  /** The rules of the active agent. Those of the one that was active before are not kept. */
  rulesOf(name: string): Rules {
    const { of, rules } = this.#rules ?? {}
    if (rules && of === name) return rules
    const made = drivingRules(drivingAgent(name, this.#drive), this.#drive, this)
    this.#rules = { of: name, rules: made }
    return made
  }

  post(signal: Signal): void {
    this.#mailbox.post({ message: signal })
  }

  onFault(error: unknown): void {
    this.#mailbox.fail(error)
  }

  /** The loop has ended: nothing that is prepared counts any more. */
  stop(): void {
    this.#preparation?.stop()
  }
}
