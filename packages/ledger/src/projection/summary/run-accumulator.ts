import type { ModelRef, RunId, RuntimeEvent, Usage } from '@tallystick/core'
import { countedCalls, type CallCount } from './call-counts.ts'
import { addAmounts, amountsOf, type Amounts } from '../tables/amounts.ts'

const hourMs = 60 * 60 * 1000

/** Model calls of one agent and model that began within one hour, summed up. */
export interface SpendingLine {
  /** Hours since 1970 UTC. */
  readonly hour: number
  /** The agent that had the conversation. */
  readonly agent: string
  readonly model: ModelRef
  readonly calls: number
  readonly amounts: Amounts
}

/** The hour that a moment is in. */
export function hourOf(at: number): number {
  return Math.floor(at / hourMs)
}

/** The moment that an hour begins at, in milliseconds since 1970 UTC. */
export function beginningOf(hour: number): number {
  return hour * hourMs
}

/** A model call whose numbers may still be replaced. */
interface OpenCall {
  readonly key: string
  readonly turn: number
  readonly agent: string
  readonly model: ModelRef
  readonly at: number
  readonly usage?: Usage
  readonly costUsd?: number
}

/** What has to be known of a run's events beside its state, to tell what it took and who took part. */
export interface RunNotes {
  readonly agents: readonly string[]
  readonly workers: readonly RunId[]
  /** How its tool calls ended. */
  readonly calls: readonly CallCount[]
  /** Attempts of model calls that failed. */
  readonly failedAttempts: number
  /** The last event that a fork shares with the other run, which made the model calls up to there. */
  readonly sharedSeq: number
  readonly summaries: number
  readonly open: readonly OpenCall[]
  readonly settled: readonly SpendingLine[]
}

const nothingHeard: RunNotes = {
  ...{
    agents: [],
    workers: [],
    calls: [],
    failedAttempts: 0,
    sharedSeq: 0,
    summaries: 0,
    open: [],
    settled: [],
  },
}

/**
 * Takes notes of a run's events, in order. What runs that work for it took is theirs, and what a fork shares with the
 * other run was taken by that one.
 */
export class RunNotebook {
  #notes: RunNotes

  constructor(notes: RunNotes = nothingHeard) {
    this.#notes = notes
  }

  get notes(): RunNotes {
    return this.#notes
  }

  hear(event: RuntimeEvent): void {
    this.#hearWho(event)
    this.#hearEndings(event)
    if (event.seq > this.#notes.sharedSeq) this.#hearCall(event)
  }

  #hearWho(event: RuntimeEvent): void {
    const { agents, workers } = this.#notes
    if (event.type === 'run_started') {
      const sharedSeq = event.parent?.relation === 'fork' ? event.parent.seq : 0
      this.#notes = { ...this.#notes, agents: [event.agent], sharedSeq }
    }
    if (event.type === 'agent_handed_off') this.#notes = { ...this.#notes, agents: [...agents, event.to] }
    if (event.type === 'tool_started' && event.child !== undefined && !workers.includes(event.child)) {
      this.#notes = { ...this.#notes, workers: [...workers, event.child] }
    }
  }

  #hearEndings(event: RuntimeEvent): void {
    const calls = countedCalls(this.#notes.calls, event)
    const failedAttempts = this.#notes.failedAttempts + (event.type === 'model_stream_failed' ? 1 : 0)
    if (calls !== this.#notes.calls || failedAttempts !== this.#notes.failedAttempts) {
      this.#notes = { ...this.#notes, calls, failedAttempts }
    }
  }

  #hearCall(event: RuntimeEvent): void {
    const { turn } = event
    if (event.type === 'model_call_started') {
      this.#settle((call) => call.turn !== turn)
      this.#begin(`${turn} ${event.attempt}`, event)
    }
    if (event.type === 'usage_updated') this.#take(`${turn} ${event.attempt}`, event)
    if (event.type === 'compaction_started') {
      this.#notes = { ...this.#notes, summaries: this.#notes.summaries + 1 }
      this.#begin(`summary ${this.#notes.summaries}`, event)
    }
    if (event.type === 'context_compacted') this.#take(`summary ${this.#notes.summaries}`, event)
    if (event.type === 'run_finished') this.#settle(() => true)
  }

  #begin(key: string, { turn, at, model }: Pick<OpenCall, 'turn' | 'at' | 'model'>): void {
    const { open, agents } = this.#notes
    const call = { key, turn, agent: agents.at(-1) ?? '', model, at }
    this.#notes = { ...this.#notes, open: [...open, call] }
  }

  /** Numbers are totals of the call, so a later report replaces an earlier one. */
  #take(key: string, { usage, costUsd }: { readonly usage?: Usage; readonly costUsd?: number }): void {
    if (usage === undefined) return
    const open = this.#notes.open.map((call) =>
      call.key === key
        ? { ...call, usage: { ...call.usage, ...usage }, ...(costUsd !== undefined && { costUsd }) }
        : call,
    )
    this.#notes = { ...this.#notes, open }
  }

  /** The numbers of these calls are final. */
  #settle(isFinal: (call: OpenCall) => boolean): void {
    const { open, settled } = this.#notes
    const final = open.filter(isFinal)
    if (final.length === 0) return
    this.#notes = {
      ...this.#notes,
      open: open.filter((call) => !isFinal(call)),
      settled: mergeLines([...settled, ...final.map(exportedLine)]),
    }
  }
}

/** What a run spent, as far as its notes go. */
export function spendingOf({ settled, open }: RunNotes): readonly SpendingLine[] {
  return mergeLines([...settled, ...open.map(exportedLine)])
}

function exportedLine({ agent, model, at, usage = {}, costUsd }: OpenCall): SpendingLine {
  return { hour: hourOf(at), agent, model, calls: 1, amounts: amountsOf(usage, costUsd) }
}

/** What tells one line from another. */
export function spendingKey({ hour, agent, model }: Pick<SpendingLine, 'hour' | 'agent' | 'model'>): string {
  return JSON.stringify([hour, agent, model.provider, model.api, model.modelId])
}

function mergeLines(lines: readonly SpendingLine[]): readonly SpendingLine[] {
  const merged = new Map<string, SpendingLine>()
  for (const line of lines) {
    const key = spendingKey(line)
    const before = merged.get(key)
    merged.set(
      key,
      before
        ? { ...line, calls: before.calls + line.calls, amounts: addAmounts(before.amounts, line.amounts) }
        : line,
    )
  }
  return [...merged.values()]
}
