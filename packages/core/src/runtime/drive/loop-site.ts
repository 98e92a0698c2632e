import type { Rules } from '../../machine/rules.ts'
import type { RunState } from '../../machine/state.ts'
import type { Clock, Host } from '../../values/host.ts'
import type { Model } from '../../models/model.ts'
import type { ModelRef } from '../../events/content.ts'
import type { Signal } from '../../events/signals.ts'
import type { Agent } from '../agent/agent.ts'
import type { ChildRuns } from '../children/child-runs.ts'
import type { EffectOptions } from '../effects/begin-effect.ts'
import { ToolsOfTurn } from '../definition/sourced-tools.ts'
import type { RecordedResults } from '../fork/recorded-results.ts'
import { drivingAgent, drivingRules, givenModelOf, type TurnParts } from './drivable.ts'
import type { Drive } from './drive.ts'
import type { Mailbox } from './mailbox.ts'
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

  onFault(error: unknown): void {
    this.#mailbox.fail(error)
  }

  /** The loop has ended: nothing that is prepared counts any more. */
  stop(): void {
    this.#preparation?.stop()
  }
}
