import { memoryFolder } from '../../scripts/testing/memory-folder.ts'
import { paramsText, type Case, type Params } from '../cases/case.ts'
import type { ChildReport } from '../child/report.ts'
import { runJob } from './child-process.ts'
import type { BenchOptions } from './options.ts'

/** One line of the table before it is measured: a case with its numbers, and who is measured. */
export interface Entry {
  readonly of: Case
  readonly params: Params
  readonly subjects: readonly string[]
}

/** All that was measured of one subject in one entry. */
export interface Row {
  readonly entry: Entry
  readonly subject: string
  readonly reports: readonly Extract<ChildReport, { readonly measurement: unknown }>[]
  readonly error?: string
}

/** What the measurements need. */
export interface Bench {
  readonly home: string
  readonly options: BenchOptions
  readonly postgres: string | undefined
  readonly say: (what: string) => void
}

/** The entries that were asked for. */
export function entriesOf(
  { cases, subjects, own, smoke }: BenchOptions,
  hasPostgres: boolean,
): readonly Entry[] {
  return cases.flatMap((of) => {
    const all = [...of.own, ...(own ? [] : of.peers)]
    const chosen = all
      .filter((name) => subjects.length === 0 || subjects.includes(name))
      .filter((name) => hasPostgres || !of.onPostgres?.includes(name))
    if (chosen.length === 0) return []
    return (smoke ? of.smokeParams : of.params).map((params) => ({ of, params, subjects: chosen }))
  })
}

/**
 * Measures an entry: subjects take turns within a round, and each round begins with another subject, so that whatever else the
 * machine does meets all of them. A subject that takes long, or fails, is measured once.
 */
export async function measureEntry(entry: Entry, bench: Bench): Promise<readonly Row[]> {
  const { home, options, postgres, say } = bench
  const { of, params, subjects } = entry
  const limitMs = options.limitSeconds * 1000
  const rows = new Map<string, { reports: Row['reports'][number][]; error?: string }>()
  for (let round = 0; round < options.rounds; round++) {
    const first = round % subjects.length
    for (const subject of [...subjects.slice(first), ...subjects.slice(0, first)]) {
      const row = rows.get(subject) ?? { reports: [] }
      rows.set(subject, row)
      const isLong = row.reports.some(({ measurement }) => measurement.wallMs > limitMs / 5)
      if (row.error !== undefined || isLong) continue
      say(`${of.name} ${paramsText(params)}, round ${round + 1} of ${options.rounds}: ${subject}`)
      const trial = {
        of: of.name,
        subject,
        params,
        smoke: false,
        limitMs,
        postgres,
        profile: options.profile,
      }
      const [report] = await runJob({ home, trials: [trial] })
      if (report === undefined) continue
      if ('error' in report) row.error = report.error
      else row.reports.push(report)
    }
  }
  return subjects.map((subject) => ({ entry, subject, ...(rows.get(subject) ?? { reports: [] }) }))
}

/** Runs every subject of the entries once, all in one process, and returns what went wrong. */
export async function smokeEntries(entries: readonly Entry[], bench: Bench): Promise<readonly string[]> {
  const limitMs = bench.options.limitSeconds * 1000
  const trials = entries.flatMap(({ of, params, subjects }) =>
    subjects.map((subject) => ({ of: of.name, subject, params, smoke: true, limitMs })),
  )
  // Nothing is measured, so nothing has to wait for a disk.
  const reports = await runJob({ home: bench.home, trials, files: memoryFolder() })
  return trials.flatMap(({ of, subject }, index) => {
    const report = reports[index]
    return report && 'error' in report ? [`${of}, ${subject}: ${report.error}`] : []
  })
}
