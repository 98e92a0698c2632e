import type { Subject } from 'rxjs'
import type { Agent } from '../agent/agent.ts'
import type { RunHooks } from '../agent/hooks.ts'
import {
  bindRules,
  ContextOfRecord,
  updateDefinition,
  toRecordedRun,
  requireContext,
  TurnPreparation,
} from '../agent/prepare-turn.ts'
import type { AgentRegistry, RuntimeRules } from '../agent/registry.ts'
import { findLackingRules, requireRules, restoreRules } from '../agent/run-rules.ts'
import { listSourcedDefinitions, ToolsOfTurn } from '../agent/source-tools.ts'
import { type AgentDefinition, applyGivenModel, type RunRule } from '../events/agent-definition.ts'
import { type ModelRef, isSameModel } from '../events/content.ts'
import type { Signal } from '../events/signals.ts'
import type { Rules } from '../machine/rules.ts'
import type { RunState } from '../machine/state.ts'
import type { ModelCallOwner } from '../models/model-call.ts'
import type { Model } from '../models/model.ts'
import { ConfigurationError } from '../values/errors.ts'
import { type Host, type SteadyClock, createSteadyClock } from '../values/host.ts'
import type { RunId } from '../values/ids.ts'
import { toCanonicalJson, type Json } from '../values/json.ts'
import { formatErrorSentence } from '../values/text.ts'
import type { SentCommands } from './commands.ts'
import { Mailbox } from './mailbox.ts'
import type { RecordedResults } from './fork.ts'
import type { RunDriver } from './run-driver.ts'
import type { LiveEvents, LiveText } from './run-streams.ts'
import type { RuntimeParts } from './runtime-parts.ts'

/**
 * Everything that one drive of a run works with, shared by its loop, inbox, effects and rules. It is a copy: what the application
 * gives the run later is for the next drive. Parts that only some runs need are made on first use.
 */
export class RunContext implements ModelCallOwner {
  readonly runId: RunId
  readonly parts: RuntimeParts
  /** Publishes every event once it is appended. */
  readonly live: LiveEvents
  readonly liveText: Subject<LiveText> | undefined
  readonly sent: SentCommands
  readonly mailbox: Mailbox = new Mailbox()
  /** The run's own time. */
  readonly clock: SteadyClock
  /** The host, with the run's own time. */
  readonly host: Host
  /** The model that the run is given, where this process was handed it. */
  readonly model: Model | undefined
  /** Those of the runtime and of the run. */
  readonly hooks: readonly RunHooks[]
  /** The agents, with the rules of this run. */
  agents: AgentRegistry
  readonly #given: RuntimeRules
  /** The application's context of this run; until the run is taken up, possibly a `ContextOfRecord`. */
  context: unknown
  /** The state that is on record. */
  state: RunState | undefined
  /** Results that a fork is served instead of running its tools. */
  results: RecordedResults | undefined
  #preparation: TurnPreparation | undefined
  #tools: ToolsOfTurn | undefined
  #rules: { readonly of: string; readonly rules: Rules } | undefined

  constructor({ runId, parts, live, liveText, sent, given }: RunDriver) {
    this.runId = runId
    this.parts = parts
    this.live = live
    this.liveText = liveText
    this.sent = sent
    this.clock = createSteadyClock(parts.host.clock)
    this.host = { ...parts.host, clock: this.clock }
    this.context = given.context
    this.model = given.model
    this.#given = given.rules
    this.agents = parts.agents.inRun(given.rules)
    const { hooks } = parts.defaults
    this.hooks = given.hooks.length === 0 ? hooks : [...hooks, ...given.hooks]
  }

  /** The agent with the tools of its turn; throws a `ConfigurationError` if this runtime does not know it. */
  findAgent(name: string): Agent<unknown> {
    const agent = this.#knownAgent(name)
    return agent.toolsInTurn === undefined ? agent : this.#toolsOfTurn.within(agent, this.state)
  }

  /** The model that the run is given: as this process was handed it with the run, or as its runtime knows it. */
  findModel(ref: ModelRef): Model | undefined {
    return this.model && isSameModel(this.model, ref) ? this.model : this.parts.models.find(ref)
  }

  /** The rules of the active agent. Those of the one that was active before are not kept. */
  readonly findRules = (name: string): Rules => {
    if (this.#rules?.of !== name) this.#rules = { of: name, rules: this.#bindRules(this.#knownAgent(name)) }
    return this.#rules.rules
  }

  /** The definition of the active agent by its code of today, as this run changes it. */
  currentDefinition({ agent, definition, givenModel }: RunState): AgentDefinition {
    return applyGivenModel(updateDefinition(this.#knownAgent(agent), definition), givenModel)
  }

  /**
   * Gives a resumed run its context: the one that was passed, or one made from the record at each resume, by the function
   * that was passed instead or by that of the runtime, if the run was started with a context.
   */
  async restoreContext(state: RunState): Promise<void> {
    const { contextOf } = this.parts
    if (this.context instanceof ContextOfRecord) {
      this.context = await this.context.contextFor(toRecordedRun(state))
    } else if (contextOf && state.withContext && this.context === undefined) {
      try {
        this.context = await contextOf(toRecordedRun(state))
      } catch (error) {
        throw new ConfigurationError(
          `The contextOf of this runtime made no context for run ${state.runId}: ${formatErrorSentence(error)} Nothing was written; correct it and resume the run, or give the context to resume.`,
          { cause: error },
        )
      }
    }
  }

  /** Refuses a run that this runtime cannot drive, or is not to drive. */
  requireDrivable(state: RunState): void {
    const { agent, definition, givenModel, rules = [] } = state
    const { onDrift } = this.parts
    this.agents = this.parts.agents.inRun(restoreRules(rules, this.#given))
    requireRules(this.runId, rules, { given: this.#given, onDrift })
    const current = this.currentDefinition(state)
    requireContext(state, this.context)
    if (givenModel) this.#requireModel(givenModel.model)
    if (onDrift !== 'refuse' || current.digest === definition.digest) return
    throw new ConfigurationError(
      `Run ${this.runId} was started with another definition of the agent ${agent}, and onDrift is refuse. What differs: ${listDrift(definition, current).join(', ')}. Resume it with the code that it was started with, or with onDrift: 'continue'.`,
    )
  }

  /** Code of the run that this process was not given; `undefined` if it has all. */
  findLackingRules({ rules = [] }: RunState): readonly RunRule[] | undefined {
    const lacking = findLackingRules(rules, this.#given)
    return lacking.length > 0 ? lacking : undefined
  }

  post(signal: Signal): void {
    this.mailbox.post({ message: signal })
    if (this.liveText && signal.type === 'model_text') {
      const { turn, attempt, part, text, replaces } = signal
      if (text !== '' || replaces)
        this.liveText.next({ turn, attempt, part, text, ...(replaces && { replaces }) })
    }
  }

  /** Code of the application has failed: the run stops here. */
  onFault(error: unknown): void {
    this.mailbox.fail(error)
  }

  /** The loop has ended: nothing that is prepared counts any more. */
  stop(): void {
    this.#preparation?.stop()
    this.#preparation = undefined
    this.#tools = undefined
    this.#rules = undefined
  }

  get #toolsOfTurn(): ToolsOfTurn {
    return (this.#tools ??= new ToolsOfTurn(this.context))
  }

  #knownAgent(name: string): Agent<unknown> {
    const agent = this.agents.find(name)
    if (agent) return agent
    throw new ConfigurationError(
      `Run ${this.runId} belongs to the agent ${name}, which this runtime does not know. Give it to createRuntime in agents.`,
    )
  }

  #bindRules(agent: Agent<unknown>): Rules {
    const { clock, mailbox } = this
    const rules = bindRules(agent, this.context, (turn, prepare) => {
      this.#preparation ??= new TurnPreparation(clock, () => mailbox.wake())
      return this.#preparation.prepare(turn, prepare)
    })
    if (agent.toolsInTurn === undefined) return rules
    return {
      ...rules,
      sourcedTools: (state) => {
        const tools = this.#toolsOfTurn.next(agent, state)
        return listSourcedDefinitions({ ...agent, toolSource: { tools } }, state)
      },
    }
  }

  #requireModel(ref: ModelRef): void {
    const { runId, model } = this
    const name = `${ref.provider} ${ref.api} ${ref.modelId}`
    if (model && !isSameModel(model, ref)) {
      throw new ConfigurationError(
        `Run ${runId} was started with the model ${name}, and ${model.provider} ${model.api} ${model.modelId} was given to continue with. Give the model of its start, or none.`,
      )
    }
    if (this.findModel(ref)) return
    throw new ConfigurationError(
      `Run ${runId} was started with the model ${name}, which this runtime does not know. Give it to createRuntime in models, or to resume as model.`,
    )
  }
}

/** Names the parts of a definition that are not as they were recorded; of the policy, each part. */
function listDrift(recorded: AgentDefinition, current: AgentDefinition): readonly string[] {
  const { digest: _recorded, price: _then, policy: before, ...recordedBody } = recorded
  const { digest: _own, price: _now, policy: now, ...currentBody } = current
  return [
    ...listChangedFields(recordedBody, currentBody),
    ...listChangedFields(before ?? {}, now ?? {}).map((name) => `policy.${name}`),
  ]
}

function listChangedFields(before: object, now: object): readonly string[] {
  const [a, b] = [before, now] as [Readonly<Record<string, Json>>, Readonly<Record<string, Json>>]
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])]
  return names.filter((name) => toCanonicalJson(a[name] ?? null) !== toCanonicalJson(b[name] ?? null))
}
