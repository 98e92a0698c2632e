import type { RunState, RuntimeEvent } from '@tallystick/core'
import { type Phase, phases } from '@tallystick/core/internal'
import { evolve, transitionTable } from '@tallystick/core/machine'
import { type EventType, eventTypes } from '@tallystick/core/vocabulary'
import { sampleFacts, stampFacts } from '@tallystick/testkit'

/** The laws that a simulation can exercise, and the events that do: the number of these is printed. */
const exercisedBy: Readonly<Record<number, (event: RuntimeEvent) => boolean>> = {
  1: ({ type }) => type === 'tool_result',
  2: ({ type }) => type === 'tool_started',
  3: ({ type }) => type === 'tool_results_injected',
  4: () => true,
  5: () => true,
  6: ({ type }) => type === 'run_finished',
  7: ({ type }) => type === 'model_call_started',
  8: ({ type }) => type === 'tool_started' || type === 'model_call_started',
  9: (event) => 'grant' in event && event.grant !== undefined,
  10: (event) => event.type === 'run_resumed' && event.inDoubt.length > 0,
  12: ({ type }) => type === 'assistant_message_finished',
  13: ({ type }) => type === 'approval_decided',
  15: (event) => 'inboxKey' in event && event.inboxKey !== undefined,
}

/**
 * Legal transitions that no machine of today makes: usage is counted while the model streams, or as its attempt ends, and
 * input is settled in front of a model call or of the end. A fold takes them anywhere.
 */
const neverMade: ReadonlySet<string> = new Set([
  ...['idle usage_updated', 'collecting usage_updated', 'executing usage_updated', 'injecting usage_updated'],
  'executing input_settled',
])

/** What a number of simulated worlds have reached. */
export class Coverage {
  readonly happened: Map<string, number> = new Map()
  readonly laws: Map<number, number> = new Map()
  readonly #pairs = new Map<string, number>()
  readonly #states = new Set<string>()
  readonly #samples = new Map<Phase, RunState>()
  events = 0

  /** Takes the events of a run. Throws if they break a law that the machine asserts. */
  addRun(events: readonly RuntimeEvent[]): void {
    let state: RunState | undefined
    for (const event of events) {
      this.events++
      for (const [law, exercises] of Object.entries(exercisedBy))
        if (exercises(event)) this.addLaw(Number(law))
      if (state) this.#add(this.#pairs, nameTransition(state.phase, event.type))
      state = evolve(state, event)
      this.#states.add(describeState(state))
      if (!this.#samples.has(state.phase)) this.#samples.set(state.phase, state)
    }
  }

  addHappened(happened: ReadonlyMap<string, number>): void {
    for (const [what, count] of happened) this.#add(this.happened, what, count)
  }

  addLaw(law: number, count = 1): void {
    this.#add(this.laws, law, count)
  }

  #add<Key>(counts: Map<Key, number>, key: Key, count = 1): void {
    counts.set(key, (counts.get(key) ?? 0) + count)
  }

  /** The legal transitions that no run has made, as `phase event`. */
  get missingTransitions(): readonly string[] {
    return listLegal().filter((pair) => !this.#pairs.has(pair) && !neverMade.has(pair))
  }

  /** The laws that nothing has exercised. */
  get missingLaws(): readonly number[] {
    return [...Object.keys(exercisedBy).map(Number), 11, 14].filter((law) => !this.laws.has(law))
  }

  /** The faults and acts that have not happened. */
  missingOf(names: readonly string[]): readonly string[] {
    return names.filter((name) => !this.happened.has(name))
  }

  /** Asks the fold for every illegal event in every phase that was reached; returns those that it takes. */
  findTakenIllegals(): { readonly refused: number; readonly taken: readonly string[] } {
    const taken: string[] = []
    let refused = 0
    for (const [phase, state] of this.#samples) {
      const facts = sampleFacts(state.runId)
      for (const type of eventTypes) {
        if (Object.hasOwn(transitionTable[phase], type)) continue
        const { seq, epoch, at } = state
        const [stamped] = stampFacts(state.runId, [facts[type]], { afterSeq: seq, epoch })
        try {
          evolve(state, { ...stamped, at } as RuntimeEvent)
          taken.push(nameTransition(phase, type))
        } catch {
          refused++
        }
      }
    }
    return { refused, taken }
  }

  format(): readonly string[] {
    const counts = (map: ReadonlyMap<unknown, number>): string =>
      [...map]
        .map(([name, count]) => `${String(name)} ${count}`)
        .sort()
        .join(', ')
    const legal = listLegal().length - neverMade.size
    const { refused, taken } = this.findTakenIllegals()
    const rare = [...this.#pairs].filter(([, count]) => count <= 3).sort(([, a], [, b]) => a - b)
    const laws = [...this.laws].sort(([a], [b]) => a - b).map(([law, count]) => `${law}: ${count}`)
    return [
      `events      ${this.events} in ${this.#states.size} states`,
      `happened    ${counts(this.happened)}`,
      `transitions ${legal - this.missingTransitions.length} of ${legal} legal ones made, ${refused} of ${refused + taken.length} illegal ones refused`,
      `made rarely ${counts(new Map(rare))}`,
      `laws        ${laws.join(', ')}`,
    ]
  }
}

function nameTransition(phase: Phase, type: EventType): string {
  return `${phase} ${type}`
}

function listLegal(): readonly string[] {
  return phases.flatMap((phase) =>
    (Object.keys(transitionTable[phase]) as EventType[]).map((type) => nameTransition(phase, type)),
  )
}

/** A state without what makes it one of countless: its phase, the kinds of its calls, and what it waits for. */
function describeState(state: RunState): string {
  const calls = 'calls' in state ? [...new Set(state.calls.map(({ status }) => status))].sort() : []
  const flags = [
    state.cancel,
    state.metLimit,
    state.inputCheck,
    state.compacting,
    'blocked' in state && state.blocked,
  ]
  return [state.phase, calls.join('+'), flags.map((flag) => (flag ? 1 : 0)).join('')].join(' ')
}
