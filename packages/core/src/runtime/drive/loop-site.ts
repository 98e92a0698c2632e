import type { Rules } from '../../machine/state/rules.ts'
import type { RunState } from '../../machine/state/state.ts'
import type { Clock, Host } from '../../ports/clock.ts'
import type { Model } from '../../ports/model.ts'
import type { Tool } from '../../ports/tool.ts'
import { ConfigurationError } from '../../vocabulary/errors.ts'
import type { ModelRef } from '../../vocabulary/model/content.ts'
import type { PieceSignal } from '../../vocabulary/signals/signal-schema.ts'
import type { Signal } from '../../vocabulary/signals/signal.ts'
import { answerOf } from '../../vocabulary/options/answer-of.ts'
import { listOf } from '../../vocabulary/options/option.ts'
import type { Agent } from '../agent/agent.ts'
import { requireTools } from '../agent/agent-check.ts'
import { offeredTool } from '../agent/part-check.ts'
import type { ChildRuns } from '../children/child-runs.ts'
import type { EffectOptions } from '../effects/effects.ts'
import type { RecordedResults } from '../fork/recorded-results.ts'
import { drivingAgent, drivingRules, givenModelOf, type TurnParts } from './drivable.ts'
import type { Drive } from './drive.ts'
import type { AttemptPlace, Mailbox } from './mailbox.ts'
import { TurnPreparation } from './turn-preparation.ts'

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

  onPiece(piece: PieceSignal, place: AttemptPlace): void {
    this.#mailbox.postPiece(piece, place)
  }

  onFault(error: unknown): void {
    this.#mailbox.fail(error)
  }

  /** The loop has ended: nothing that is prepared counts any more. */
  stop(): void {
    this.#preparation?.stop()
  }
}

/**
 * The tools that agents name turn by turn, with the run's context. Those of the last turn are kept, so that its calls are
 * run by the tools that were offered; a process that takes the run up asks for them again.
 */
class ToolsOfTurn {
  readonly #context: unknown
  #offered: Map<string, readonly Tool[]> | undefined

  constructor(context: unknown) {
    this.#context = context
  }

  /** The tools of the turn that comes, as a source has them; none of an agent whose tools do not change. */
  next(agent: Agent<unknown>, state: RunState): readonly Tool[] {
    const { toolsInTurn } = agent
    if (toolsInTurn === undefined) return []
    const subject = `tools of the agent ${agent.name}`
    const tools = answerOf(subject, () => toolsInTurn(this.#context, state), listOf(offeredTool))
    requireTools(agent.name, [...agent.tools, ...tools])
    const fixed = tools.find(({ child, handoff }) => child !== undefined || handoff)
    if (fixed) {
      throw new ConfigurationError(
        `${subject}: ${fixed.name} is the work of another agent, which is part of the definition on record. Give the agent a list of tools, or handoffs, for that; a turn may leave some out with prepareTurn.`,
      )
    }
    this.#offered = (this.#offered ?? new Map()).set(agent.name, tools)
    return tools
  }

  /** An agent with the tools of the turn that is under way. */
  within(agent: Agent<unknown>, state: RunState | undefined): Agent<unknown> {
    if (agent.toolsInTurn === undefined || state === undefined) return agent
    const tools = this.#offered?.get(agent.name) ?? this.next(agent, state)
    return { ...agent, toolSource: { tools } }
  }
}
