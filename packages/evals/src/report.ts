import type { RunId } from '@tallystick/core'
import { option, requireOptions, unseen } from '@tallystick/core/internal'
import type { EvaluatedRun } from './evaluate.ts'
import { type Estimate, Sample } from './statistics.ts'

/** A measure of each agent, and how far each further agent is from the first one: over the cases that both have. */
export interface Measured {
  readonly agents: { readonly [agent: string]: Estimate }
  readonly differences: { readonly [agent: string]: Estimate }
}

/** Something that went wrong in a run, or a low score. */
export interface NotedRun {
  readonly case: string
  readonly agent: string
  readonly repeat: number
  readonly runId?: RunId
  readonly what: string
}

/** How many of a kind there were, and the first of them, or the lowest. */
export interface NotedRuns {
  readonly count: number
  readonly shown: readonly NotedRun[]
}

/** The result of an evaluation. */
export interface EvaluationReport {
  readonly name: string
  /** False if it was stopped before all cases were done. */
  readonly isComplete: boolean
  readonly agents: readonly string[]
  readonly cases: number
  readonly repeats: number
  readonly scores: { readonly [scorer: string]: Measured }
  /** Per run, in US dollars; absent where no price is known. */
  readonly costUsd?: Measured
  readonly scoringUsd?: Measured
  readonly durationMs?: Measured
  readonly tokens?: Measured
  /** The share of runs whose calls were others than the recorded ones. */
  readonly divergence?: Measured
  /** Runs without an answer: each has the score 0. */
  readonly failures: NotedRuns
  /** Runs without a score of a scorer, which threw, took too long, or returned none. */
  readonly unscored: NotedRuns
  /** Runs with an answer whose scores are under 1, those with the lowest mean first. */
  readonly lowest: NotedRuns
}

const maxShown = 100
const maxLowest = 5

type About = Pick<EvaluationReport, 'name' | 'agents' | 'repeats'> & { readonly scorers: readonly string[] }

/** Adds up an evaluation, case by case, in constant memory. */
export class Tally {
  readonly #about: About
  readonly #measures = new Map<string, Samples>()
  readonly #failures = new Notes()
  readonly #unscored = new Notes()
  #low: { readonly score: number; readonly noted: NotedRun }[] = []
  #lowCount = 0
  #cases = 0

  constructor(about: About) {
    this.#about = about
  }

  /** Adds all runs of a case. */
  addCase(runs: readonly EvaluatedRun[]): void {
    this.#cases++
    const { agents, scorers } = this.#about
    const add = (
      measure: string,
      read: (run: EvaluatedRun) => number | undefined,
      method: Estimate['method'] = 't',
    ): void => {
      const samples = this.#measures.get(measure) ?? new Samples(agents, method)
      this.#measures.set(measure, samples)
      samples.add((agent) => runs.flatMap((run) => (run.agent === agent ? (read(run) ?? []) : [])))
    }
    for (const scorer of scorers) {
      add(
        `score ${scorer}`,
        ({ scores }) => {
          const given = scores[scorer]
          return given && 'score' in given ? given.score : undefined
        },
        'wilson',
      )
    }
    add('costUsd', ({ costUsd }) => costUsd)
    add('scoringUsd', ({ scoringUsd }) => scoringUsd)
    add('durationMs', ({ durationMs }) => durationMs)
    add('tokens', ({ tokens }) => tokens)
    add(
      'divergence',
      ({ isDiverged }) => (isDiverged === undefined ? undefined : Number(isDiverged)),
      'wilson',
    )
    for (const run of runs) this.#note(run)
  }

  #note(run: EvaluatedRun): void {
    const { case: id, agent, repeat, runId } = run
    const noted = (what: string): NotedRun => ({ case: id, agent, repeat, ...(runId && { runId }), what })
    if (run.failure !== undefined) {
      this.#failures.add(noted(run.failure))
      return
    }
    const given: { readonly score: number; readonly what: string }[] = []
    for (const [scorer, score] of Object.entries(run.scores)) {
      if ('error' in score) {
        this.#unscored.add(noted(`${scorer}: ${score.error}`))
        continue
      }
      const note = score.note === undefined ? '' : ` (${score.note})`
      given.push({ score: score.score, what: `${scorer} ${formatNumber(score.score)}${note}` })
    }
    const score = findMean(given.map((each) => each.score))
    if (given.length === 0 || score === 1) return
    this.#lowCount++
    this.#low.push({ score, noted: noted(given.map(({ what }) => what).join(', ')) })
    this.#low.sort((a, b) => a.score - b.score)
    this.#low = this.#low.slice(0, maxLowest)
  }

  report({ isComplete }: Pick<EvaluationReport, 'isComplete'>): EvaluationReport {
    const { name, agents, repeats, scorers } = this.#about
    const measured = (measure: string): Measured =>
      this.#measures.get(measure)?.measured() ?? { agents: {}, differences: {} }
    const others = (['costUsd', 'scoringUsd', 'durationMs', 'tokens', 'divergence'] as const).flatMap(
      (measure) => {
        const found = measured(measure)
        return Object.keys(found.agents).length > 0 ? [[measure, found] as const] : []
      },
    )
    return {
      ...{ name, isComplete, agents, repeats, cases: this.#cases },
      scores: Object.fromEntries(scorers.map((scorer) => [scorer, measured(`score ${scorer}`)])),
      ...Object.fromEntries(others),
      failures: this.#failures.noted,
      unscored: this.#unscored.noted,
      lowest: { count: this.#lowCount, shown: this.#low.map(({ noted }) => noted) },
    }
  }
}

/** A measure of all agents. */
class Samples {
  readonly #agents: ReadonlyMap<string, Sample>
  readonly #differences: ReadonlyMap<string, Sample>

  constructor(agents: readonly string[], method: Estimate['method']) {
    this.#agents = new Map(agents.map((agent) => [agent, new Sample(method)]))
    this.#differences = new Map(agents.slice(1).map((agent) => [agent, new Sample('t')]))
  }

  add(valuesOf: (agent: string) => readonly number[]): void {
    let first: readonly number[] | undefined
    for (const [agent, sample] of this.#agents) {
      const values = valuesOf(agent)
      sample.add(values)
      if (first && first.length > 0 && values.length > 0)
        this.#differences.get(agent)?.add([findMean(values) - findMean(first)])
      first ??= values
    }
  }

  measured(): Measured {
    const estimates = (samples: ReadonlyMap<string, Sample>): { readonly [agent: string]: Estimate } =>
      Object.fromEntries(
        [...samples].flatMap(([agent, sample]) => {
          const estimate = sample.estimate()
          return estimate ? [[agent, estimate]] : []
        }),
      )
    const agents = Object.entries(estimates(this.#agents)).map(([agent, estimate]) => {
      // No measure of an agent is below 0.
      const low = Number.isFinite(estimate.low) ? Math.max(0, estimate.low) : estimate.low
      return [agent, { ...estimate, low }]
    })
    return { agents: Object.fromEntries(agents), differences: estimates(this.#differences) }
  }
}

class Notes {
  #count = 0
  readonly #shown: NotedRun[] = []

  add(run: NotedRun): void {
    this.#count++
    if (this.#shown.length < maxShown) this.#shown.push(run)
  }

  get noted(): NotedRuns {
    return { count: this.#count, shown: this.#shown }
  }
}

function findMean(values: readonly number[]): number {
  return values.reduce((sum, each) => sum + each, 0) / values.length
}

const someReport = option.valueThat(
  'the report of an evaluation, as evaluate returns it',
  (value) => Array.isArray((Object(value) as Partial<EvaluationReport>).agents) && 'lowest' in Object(value),
)

/** The report as a table and the runs to look at, for people. Names and reasons are shown with hidden characters made visible. */
export function formatReport(report: EvaluationReport): string {
  requireOptions('formatReport', someReport, report, 'the report')
  const { agents, cases, repeats, isComplete, failures, unscored, lowest } = report
  const [first = ''] = agents
  const header = ['', ...agents, ...agents.slice(1).map((agent) => `${agent} - ${first}`)]
  const rows: (readonly string[])[] = [header]
  const addRow = (name: string, measured: Measured | undefined, format: (value: number) => string): void => {
    if (measured === undefined) return
    const sign = (value: number): string => `${value < 0 ? '-' : '+'}${format(Math.abs(value))}`
    rows.push([
      name,
      ...agents.map((agent) => formatEstimate(measured.agents[agent], format)),
      ...agents.slice(1).map((agent) => formatEstimate(measured.differences[agent], sign)),
    ])
  }
  for (const [scorer, measured] of Object.entries(report.scores)) addRow(scorer, measured, formatNumber)
  addRow('cost', report.costUsd, formatUsd)
  addRow('cost of scoring', report.scoringUsd, formatUsd)
  addRow('time', report.durationMs, formatTime)
  addRow('tokens', report.tokens, (value) => String(Math.round(value)))
  addRow('other calls', report.divergence, (value) => `${Math.round(value * 100)}%`)
  const runs = cases * repeats * agents.length
  const each = repeats === 1 ? '' : `, ${repeats} runs each`
  return [
    formatTable(rows),
    '',
    `${count(cases, 'case')}${each}, ${count(runs, 'run')}${isComplete ? '' : '; stopped before all cases were done'}.`,
    `Per run, with 95% intervals over the cases: Wilson's for scores and shares, else Student's t.`,
    ...formatNotes('without an answer, which score 0', failures),
    ...formatNotes('without a score', unscored),
    ...formatNotes('with the lowest scores', lowest, true),
    '',
  ].join('\n')
}

function formatNotes(what: string, { count: all, shown }: NotedRuns, isPart = false): readonly string[] {
  if (all === 0) return []
  const head = isPart ? `Runs ${what}:` : `${count(all, 'run')} ${what}:`
  const lines = shown.slice(0, maxLines).map(({ case: id, agent, repeat, runId, what: why }) => {
    const run = runId === undefined ? '' : `  ${runId}`
    return `  ${show(agent)}  ${show(id)} #${repeat}  ${show(why)}${run}`
  })
  const more = all > maxLines && !isPart ? [`  and ${all - maxLines} more`] : []
  return ['', head, ...lines, ...more]
}

const maxLines = 10
const maxLength = 120

/** One line of a text, without what a terminal would obey. */
function show(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').replaceAll(unseen, '\ufffd').trim()
  return line.length > maxLength ? `${line.slice(0, maxLength)}…` : line
}

/** Columns of a terminal, but for wide characters. */
function measure(text: string): number {
  return Array.from(text).length
}

function formatTable(rows: readonly (readonly string[])[]): string {
  const shown = rows.map((row) => row.map(show))
  const widths = (shown[0] ?? []).map((_, place) =>
    Math.max(...shown.map((row) => measure(row[place] ?? ''))),
  )
  return shown
    .map((row) =>
      row
        .map((cell, place) => cell + ' '.repeat((widths[place] ?? 0) - measure(cell)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function formatEstimate(estimate: Estimate | undefined, format: (value: number) => string): string {
  if (estimate === undefined) return '-'
  const { mean, low, high } = estimate
  return Number.isFinite(low) ? `${format(mean)} [${format(low)}, ${format(high)}]` : format(mean)
}

function formatNumber(value: number): string {
  return value.toFixed(2)
}

function formatUsd(value: number): string {
  return `$${value !== 0 && Math.abs(value) < 0.01 ? value.toPrecision(2) : value.toFixed(2)}`
}

function formatTime(ms: number): string {
  return Math.abs(ms) < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
