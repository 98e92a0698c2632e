import type { Model } from '../../models/model.ts'
import { type ModelRef, sameModel } from '../../events/content.ts'
import type { AgentRegistry } from './registered-agents.ts'

/** The models that runs are given, as a runtime finds them by the names on record. */
export class KnownModels {
  readonly #agents: AgentRegistry
  readonly #given: Model[] = []

  constructor(agents: AgentRegistry, given: readonly Model[]) {
    this.#agents = agents
    this.#given.push(...given)
  }

  /** Makes a model known; of several with one name, the last. */
  add(model: Model): void {
    const index = this.#given.findIndex((known) => sameModel(known, model))
    if (index === -1) this.#given.push(model)
    else this.#given[index] = model
  }

  /** A model that was given, or one of an agent. */
  find(ref: ModelRef): Model | undefined {
    const ofAgents = (): Model[] =>
      this.#agents
        .all()
        .flatMap(({ model, fallbacks, summarizer }) => [
          model,
          ...fallbacks,
          ...(summarizer ? [summarizer] : []),
        ])
    const isIt = (model: Model): boolean => sameModel(model, ref)
    return this.#given.find(isIt) ?? ofAgents().find(isIt)
  }
}
