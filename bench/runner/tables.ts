import { paramsText } from '../cases/case.ts'
import type { Row } from './measure-all.ts'

/** The figures of a row: medians of its rounds. */
interface Figures {
  readonly cpuMs: number
  readonly wallMs: number
  readonly peakMiB: number
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length / 2
  const [low = NaN, high = NaN] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]]
  return (low + high) / 2
}

function toFigures({ reports }: Row): Figures {
  return {
    cpuMs: median(reports.map(({ measurement: { cpuMs, units } }) => cpuMs / units)),
    wallMs: median(reports.map(({ measurement: { wallMs, units } }) => wallMs / units)),
    peakMiB: median(reports.map(({ peakMiB, measurement }) => measurement.peakMiB ?? peakMiB)),
  }
}

/** Groups of rows with the same case and numbers. */
function groupRows(rows: readonly Row[]): readonly (readonly Row[])[] {
  return [...new Set(rows.map(({ entry }) => entry))].map((entry) =>
    rows.filter((row) => row.entry === entry),
  )
}

/** The ratio of each subject today to the same before; then of the first subject of each case to each of the others. */
export function ratioTable(rows: readonly Row[]): string {
  const sinceBefore = rows
    .filter(({ isBefore }) => isBefore)
    .flatMap((row) => {
      const { entry, subject } = row
      const now = rows.find((each) => each.entry === entry && each.subject === subject && !each.isBefore)
      return now ? [ratioLine(now, row)] : []
    })
  const toOthers = groupRows(rows).flatMap((group) => {
    const [first, ...others] = group.filter(({ isBefore }) => !isBefore)
    if (first === undefined || !first.entry.of.isComparison) return []
    return others.map((other) => ratioLine(first, other))
  })
  const lines = [...sinceBefore, ...toOthers]
  return table(['case', 'one takes, divided by the other', 'CPU', 'clock', 'peak memory', ''], lines)
}

function ratioLine(one: Row, other: Row): readonly string[] {
  const [ours, theirs] = [toFigures(one), toFigures(other)]
  const ratio = (figure: keyof Figures): string => (ours[figure] / theirs[figure]).toFixed(2)
  return [
    `${one.entry.of.name} ${paramsText(one.entry.params)}`,
    `${one.name} / ${other.name}`,
    ...([one, other].some(({ reports }) => reports.length === 0)
      ? [[one, other].some(({ isBefore, error }) => isBefore && error !== undefined) ? 'left out' : 'failed']
      : [ratio('cpuMs'), ratio('wallMs'), ratio('peakMiB'), unevenly(one, other)]),
  ]
}

/** The units of each, if the two were ended at different places: the ratio then says less. */
function unevenly(first: Row, other: Row): string {
  const [ours, theirs] = [first, other].map(countUnits)
  return ours === theirs ? '' : `${ours} and ${theirs} ${first.entry.of.unit}s`
}

function countUnits({ reports }: Row): number {
  return Math.min(...reports.map(({ measurement }) => measurement.units))
}

/** The figures themselves. */
export function absoluteTable(rows: readonly Row[]): string {
  const lines = rows.map((row) => {
    const { of, params } = row.entry
    const { cpuMs, wallMs, peakMiB } = toFigures(row)
    const about = [`${of.name} ${paramsText(params)}`, row.name]
    if (row.reports.length === 0) return [...about, row.isBefore ? 'left out' : 'failed']
    return [
      ...[
        ...about,
        `${time(cpuMs)} ${/^[aeo]/.test(of.unit) ? 'an' : 'a'} ${of.unit}`,
        time(wallMs),
        `${Math.round(peakMiB)} MiB`,
      ],
      [...listFacts(row), ...endedEarly(row), ...(row.reports.length === 1 ? ['one round'] : [])].join('; '),
    ]
  })
  return table(['case', 'subject', 'CPU', 'clock', 'peak memory', 'also'], lines)
}

function listFacts({ reports }: Row): readonly string[] {
  return Object.keys(reports[0]?.measurement.facts ?? {}).map((name) => {
    const value = median(reports.map(({ measurement }) => measurement.facts?.[name] ?? NaN))
    return `${value.toLocaleString('en', { maximumFractionDigits: value < 10 ? 1 : 0 })} ${name}`
  })
}

/** Says where a run was ended by the time limit. */
function endedEarly(row: Row): readonly string[] {
  const { entry } = row
  const { turns } = entry.params
  const units = countUnits(row)
  return turns !== undefined && entry.of.unit === 'turn' && units < turns
    ? [`ended after ${units} turns`]
    : []
}

export function failures(rows: readonly Row[]): readonly string[] {
  return rows.flatMap(({ entry: { of, params }, name, isBefore, error }) =>
    error === undefined || isBefore ? [] : [`${of.name} ${paramsText(params)}, ${name}: ${error}`],
  )
}

/** The measurements that another commit does not allow, a line each: its packages lack something that a case of today needs. */
export function leftOut(rows: readonly Row[]): readonly string[] {
  return rows.flatMap(({ entry: { of, params }, name, isBefore, error }) => {
    if (error === undefined || !isBefore) return []
    return [`${of.name} ${paramsText(params)}, ${name}: ${error.split('\n', 1)[0]}`]
  })
}

function time(ms: number): string {
  if (ms < 1) return `${(ms * 1000).toFixed(ms < 0.01 ? 2 : 1)} µs`
  return ms < 1000 ? `${ms.toFixed(ms < 10 ? 2 : 1)} ms` : `${(ms / 1000).toFixed(1)} s`
}

function table(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const widths = head.map((name, column) =>
    Math.max(name.length, ...lines.map((line) => line[column]?.length ?? 0)),
  )
  const written = (line: readonly string[]): string =>
    line
      .map((cell, column) =>
        column < 2 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd()
  return [written(head), ...lines.map(written)].join('\n')
}
