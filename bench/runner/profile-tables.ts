import { paramsText } from '../cases/case.ts'
import type { Row } from './measure-all.ts'

/** The places of a profile that are printed; the rest is one line. */
const shownPlaces = 12

/** Where each subject spent its time: a table each, the largest first. */
export function profileTables(rows: readonly Row[]): string {
  return rows.map(profileTable).join('\n\n')
}

function profileTable({ entry: { of, params }, name, reports, error }: Row): string {
  const title = `${of.name} ${paramsText(params)}, ${name}`
  if (error !== undefined) return `${title}: failed`
  const [report] = reports
  if (report?.profile === undefined) return `${title}: not profiled`
  const { units } = report.measurement
  const places = Object.entries(report.profile).sort(([, one], [, other]) => other - one)
  const total = places.reduce((sum, [, ms]) => sum + ms, 0)
  const shown = places.slice(0, shownPlaces)
  const rest = places.slice(shownPlaces).reduce((sum, [, ms]) => sum + ms, 0)
  const lines = [...shown, ['the rest', rest] as const].map(([place, ms]) => {
    const share = `${((100 * ms) / total).toFixed(1)} %`
    return `${share.padStart(7)}  ${timeText(ms / units).padStart(12)}  ${place}`
  })
  return [`${title}: ${timeText(total / units)} for each ${of.unit}`, ...lines].join('\n')
}

function timeText(ms: number): string {
  return ms < 10 ? `${(1000 * ms).toFixed(2)} µs` : `${ms.toFixed(2)} ms`
}
