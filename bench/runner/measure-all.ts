import { memoryFolder } from '../../scripts/testing/memory-folder.ts'
import { type Case, type Params, paramsText, type Trial } from '../cases/case.ts'
import type { ChildReport } from '../child/report.ts'
import { runJob } from './child-process.ts'
import type { BenchOptions } from './options.ts'

/** The person who started the benchmarks. */
export interface Operator {
  /** Tells what is being done. */
  readonly say: (what: string) => void
  /** Aborted when the person wants no more. */
  readonly stop: AbortSignal
}

/** A subject, and the packages on which it is measured. */
interface MeasuredSubject {
  /** Its name in tables. */
  readonly name: string
  /** Its name in the case. */
  readonly subject: string
  /** True if it loads the packages of another commit. */
  readonly isBefore: boolean
}

/** Which subjects of a case are asked for. */
export interface Choice {
  /** Without the peers. */
  readonly own: boolean
  /** True if the packages of another commit are measured, too. */
  readonly before: boolean
}

/** The subjects of a case: each of ours is followed by what it was before. */
export function listSubjects({ own, floors = [], peers }: Case, choice: Choice): readonly MeasuredSubject[] {
  const others = [...floors, ...(choice.own ? [] : peers)]
  return [
    ...own.flatMap((subject) => [today(subject), ...(choice.before ? [before(subject)] : [])]),
    ...others.map(today),
  ]
}

function today(subject: string): MeasuredSubject {
  return { name: subject, subject, isBefore: false }
}

function before(subject: string): MeasuredSubject {
  return { name: `before-${subject.replace(/^tallystick-/, '')}`, subject, isBefore: true }
}

/** One line of the table before it is measured: a case with its numbers, and who is measured. */
export interface Entry {
  readonly of: Case
  readonly params: Params
  readonly subjects: readonly MeasuredSubject[]
}

/** All that was measured of one subject in one entry. */
export interface Row extends MeasuredSubject {
  readonly entry: Entry
  readonly reports: readonly Extract<ChildReport, { readonly measurement: unknown }>[]
  readonly error?: string
}

/** The packages that subjects load, and a server for them. */
export interface Installation {
  /** The folder that holds the cases; they load the packages that are installed there. */
  readonly home: string
  /** A Postgres server of its own. */
  readonly postgres: string | undefined
}

/** The options, the packages and the person of a series of measurements. */
export interface Bench {
  readonly options: BenchOptions
  readonly today: Installation
  /** The packages of another commit. */
  readonly before: Installation | undefined
  /** The two commits, where another one is measured, too. */
  readonly commits: string | undefined
  readonly operator: Operator
}

/** The entries that were asked for. A subject that is named brings along what it was before. */
export function listEntries(options: BenchOptions, hasPostgres: boolean): readonly Entry[] {
  const { cases, subjects, own, smoke, before } = options
  return cases.flatMap((of) => {
    const chosen = listSubjects(of, { own, before: before !== undefined })
      .filter(
        ({ name, subject }) => subjects.length === 0 || subjects.includes(name) || subjects.includes(subject),
      )
      .filter(({ subject }) => hasPostgres || !of.onPostgres?.includes(subject))
    if (chosen.length === 0) return []
    return (smoke ? of.smokeParams : of.params).map((params) => ({ of, params, subjects: chosen }))
  })
}

/**
 * Measures an entry: subjects take turns within a round, and each round begins with another subject, so that whatever else the
 * machine does meets all of them. A subject that takes long, or fails, is measured once.
 */
export async function measureEntry(entry: Entry, bench: Bench): Promise<readonly Row[]> {
  const { options, operator } = bench
  const { of, params, subjects } = entry
  const limitMs = options.limitSeconds * 1000
  const rows = new Map<MeasuredSubject, { reports: Row['reports'][number][]; error?: string }>()
  for (let round = 0; round < options.rounds; round++) {
    const first = round % subjects.length
    for (const measured of [...subjects.slice(first), ...subjects.slice(0, first)]) {
      const row = rows.get(measured) ?? { reports: [] }
      rows.set(measured, row)
      const isLong = row.reports.some(({ measurement }) => measurement.wallMs > limitMs / 5)
      if (row.error !== undefined || isLong) continue
      operator.say(
        `${of.name} ${paramsText(params)}, round ${round + 1} of ${options.rounds}: ${measured.name}`,
      )
      const { home, postgres } = findInstallation(measured, bench)
      const trial = {
        of: of.name,
        subject: measured.subject,
        params,
        smoke: false,
        limitMs,
        postgres,
      }
      const [report] = await runJob({ home, trials: [trial], stop: operator.stop })
      if (report === undefined) continue
      if ('error' in report) row.error = report.error
      else row.reports.push(report)
    }
  }
  return subjects.map((measured) => ({ ...measured, entry, ...(rows.get(measured) ?? { reports: [] }) }))
}

/** Runs every subject of the entries once, those on the same packages in one process, and returns what went wrong. */
export async function smokeEntries(entries: readonly Entry[], bench: Bench): Promise<readonly string[]> {
  const limitMs = bench.options.limitSeconds * 1000
  const faults: string[] = []
  for (const isBefore of [false, true]) {
    const asked = entries.flatMap(({ of, params, subjects }) =>
      subjects
        .filter((measured) => measured.isBefore === isBefore)
        .map((measured) => ({ of: of.name, params, measured })),
    )
    const [first] = asked
    if (first === undefined) continue
    const trials = asked.map(({ of, params, measured: { subject } }): Omit<Trial, 'folder'> => {
      return { of, subject, params, smoke: true, limitMs }
    })
    // Nothing is measured, so nothing has to wait for a disk.
    const files = memoryFolder()
    const { home } = findInstallation(first.measured, bench)
    const reports = await runJob({ home, trials, files, stop: bench.operator.stop })
    for (const [index, { of, measured }] of asked.entries()) {
      const report = reports[index]
      if (report && 'error' in report) faults.push(`${of}, ${measured.name}: ${report.error}`)
    }
  }
  return faults
}

function findInstallation({ isBefore, name }: MeasuredSubject, { today, before }: Bench): Installation {
  const found = isBefore ? before : today
  if (found === undefined) throw new Error(`Nothing is installed for ${name}.`)
  return found
}
